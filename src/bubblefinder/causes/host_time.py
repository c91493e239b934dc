"""Where the launching thread's time goes in a step: between which roles, in which calls, in which ranges.

A host step lasts from the first launch of a step to the first of the next. It is cut where calls, ranges and phases
begin and end; every piece then has one phase, at most one call (the outermost) and at most one range (the innermost),
so that the parts of each table sum to the step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.host_record import HostCall, HostPhase, HostRange, HostTime
from bubblefinder.causes.places import general
from bubblefinder.intervals import distinct
from bubblefinder.lookup import NOWHERE
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.launches import LAUNCHES
from bubblefinder.units import duration, plural

if TYPE_CHECKING:
    from bubblefinder.causes.decode import RankSteps
    from bubblefinder.causes.model import Causes
    from bubblefinder.intervals import Ints
    from bubblefinder.timeline.model import Timeline

_STEPS_LOOKED_INTO: Final = 64
"""Steps around the middle of a capture: more don't change a median."""
_MOST_RANGES: Final = 30
_MOST_CALLS: Final = 30
_NAMED: Final = 3
"""Phases or calls that a finding names."""


def main_thread(causes: Causes, rank: RankSteps) -> int | None:
    """Return the thread that launches most of a rank's work."""
    mine = causes.submitted.filter((pl.col("gpu") == rank.gpu) & (pl.col("process") == rank.process))
    threads = mine["thread"].value_counts(sort=True)
    return None if threads.is_empty() else int(threads["thread"][0])


def host_time(timeline: Timeline, causes: Causes, rank: RankSteps, thread: int) -> HostTime | None:
    """Return where a thread's step goes; None without two steps of it."""
    edges = _middle_starts(causes, rank, thread)
    if len(edges) < 2:  # noqa: PLR2004 - one step has two edges
        return None
    pieces = host_pieces(timeline, causes, rank, thread, edges)
    steps = len(edges) - 1
    called, waiting = pl.col("api").is_not_null(), pl.col("waiting")
    return HostTime(
        thread=timeline.trace.thread_names.get(thread),
        steps=steps,
        step_p50_ns=float(np.median(np.diff(edges))),
        waiting_p50_ns=_per_step(pieces.filter(waiting), steps),
        calls_p50_ns=_per_step(pieces.filter(called & ~waiting), steps),
        between_p50_ns=_per_step(pieces.filter(~called), steps),
        phases=tuple(_phases(pieces, steps)),
        calls=tuple(_calls(pieces, steps)),
        ranges=tuple(_ranges(pieces, steps)),
    )


def longest(host: HostTime) -> tuple[str, ...]:
    """Return where the thread's own work goes, most first, in words: phases where there are several, else calls."""
    if len(host.phases) > 1:
        return tuple(_told(phase) for phase in sorted(host.phases, key=lambda phase: -phase.work_ns)[:_NAMED])
    calls = [call for call in host.calls if not call.waits][:_NAMED]
    counted = [(call, plural(round(call.per_step_count), "call")) for call in calls]
    named = tuple(f"{call.api} {duration(call.p50_ns)} ({number})" for call, number in counted)
    return (f"between the calls {duration(host.between_p50_ns)}", *named)


def _told(phase: HostPhase) -> str:
    launches = plural(round(phase.launches), "launch", "launches")
    copies = plural(round(phase.copies), "copy", "copies")
    inside = f"{duration(phase.calls_p50_ns)} of it in CUDA calls, with {launches} and {copies}"
    return f"{phase.after_role} to {phase.before_role} {duration(phase.work_ns)} ({inside})"


def host_starts(causes: Causes, rank: RankSteps, thread: int) -> Ints:
    """Return when the thread began each of its steps, and the end of the last closed decode step."""
    return distinct(_starts(causes, rank, thread)[0])


def _middle_starts(causes: Causes, rank: RankSteps, thread: int) -> Ints:
    """Return the same of the steps around the middle of the decode steps."""
    starts, decode = _starts(causes, rank, thread)
    if not len(decode):
        return np.empty(0, np.int64)
    low = max(decode[0], len(starts) // 2 - _STEPS_LOOKED_INTO // 2)
    high = min(decode[-1] + 1, low + _STEPS_LOOKED_INTO, len(starts) - 1)
    return distinct(starts[low : high + 1])


def _starts(causes: Causes, rank: RankSteps, thread: int) -> tuple[Ints, Ints]:
    """Return the first launch of each step of the thread, and the positions of those that are decode steps."""
    here = (pl.col("thread") == thread) & (pl.col("gpu") == rank.gpu)
    mine = causes.submitted.lazy().filter(here).select("start_ns", "window_index").collect()
    windows = rank.own(mine["window_index"])
    keep = np.flatnonzero(windows >= 0)
    first_of = np.full(len(rank.starts), NOWHERE)
    first_of[windows[keep][::-1]] = keep[::-1]
    numbers = np.flatnonzero(first_of != NOWHERE)
    starts = np.maximum.accumulate(mine["start_ns"].to_numpy()[first_of[numbers]])
    return starts, np.flatnonzero(rank.decode[numbers])


def phase_starts(causes: Causes, rank: RankSteps, thread: int) -> pl.DataFrame:
    """Return start_ns, after_role and before_role of each phase: from the launch of one role to that of the next."""
    mine = (pl.col("thread") == thread) & (pl.col("gpu") == rank.gpu) & pl.col("role").is_not_null()
    launched = causes.submitted.lazy().filter(mine).select("start_ns", "role", "phase")
    begins = pl.col("phase").ne_missing(pl.col("phase").shift(1))
    firsts = launched.filter(begins).collect().unique("phase", keep="first", maintain_order=True).sort("start_ns")
    return firsts.select("start_ns", after_role="role", before_role=pl.col("role").shift(-1))


def host_pieces(timeline: Timeline, causes: Causes, rank: RankSteps, thread: int, edges: Ints) -> pl.DataFrame:
    """Return the pieces of a thread's steps.

    Returns:
        step, start_ns, ns, after_role and before_role (its phase), call (a number), api, api_role and waiting of the
        call, nvtx and range_index (a number) of the range; null where there is none.
    """
    calls = _outermost_calls(timeline, causes, thread, edges)
    ranges = timeline.ranges.of_thread(thread)
    phases = phase_starts(causes, rank, thread)
    times = [edges, phases["start_ns"].to_numpy()]
    times += [frame[side].to_numpy() for frame in (calls, ranges) for side in ("start_ns", "end_ns")]
    cuts = distinct(np.concatenate(times))
    cuts = cuts[(cuts >= edges[0]) & (cuts <= edges[-1])]
    starts, lengths = cuts[:-1], np.diff(cuts)
    call = _open_at(calls, starts)
    place = pl.Series(timeline.ranges.innermost(np.full(len(starts), thread), starts)).replace(-1, None)
    phase = pl.Series(np.searchsorted(phases["start_ns"].to_numpy(), starts, side="right") - 1).replace(-1, None)
    step = np.searchsorted(edges, starts, side="right") - 1
    return (
        pl.DataFrame({"step": step, "start_ns": starts, "ns": lengths})
        .hstack(phases.select(pl.col("after_role", "before_role").gather(phase)))
        .hstack(calls.select(pl.col("api", "api_role", "waiting").gather(call)))
        .with_columns(pl.col("waiting").fill_null(value=False))
        .with_columns(call=call, nvtx=timeline.ranges.rows["text"].gather(place), range_index=place)
    )


def _outermost_calls(timeline: Timeline, causes: Causes, thread: int, edges: Ints) -> pl.DataFrame:
    """Return a thread's outermost calls in the steps, with `waiting`: whether they waited for the GPU."""
    waits = causes.waits.filter(pl.col("thread") == thread)["call_index"].unique()
    reach = pl.col("end_ns").cum_max().shift(1)
    return (
        timeline.calls.select("thread", "start_ns", "end_ns", "api", api_role="role")
        .with_row_index("call_index")
        .filter(pl.col("thread") == thread, pl.col("end_ns") > edges[0], pl.col("start_ns") < edges[-1])
        .filter((pl.col("start_ns") >= reach).fill_null(value=True))
        .with_columns(
            pl.col("api").cast(pl.String).fill_null("unnamed"), waiting=pl.col("call_index").is_in(waits.implode())
        )
    )


def _open_at(calls: pl.DataFrame, times: Ints) -> pl.Series:
    """Return the position of the call that is open at each time, null for none."""
    if calls.is_empty():
        return pl.Series([None] * len(times), dtype=pl.Int64)
    position = np.searchsorted(calls["start_ns"].to_numpy(), times, side="right") - 1
    inside = (position >= 0) & (times < calls["end_ns"].to_numpy()[np.maximum(position, 0)])
    return pl.Series(np.where(inside, position, -1)).replace(-1, None)


def _per_step(pieces: pl.DataFrame, steps: int) -> float:
    """Return the median over the steps of what some pieces take in each."""
    return float(np.median(np.bincount(pieces["step"].to_numpy(), weights=pieces["ns"].to_numpy(), minlength=steps)))


def _count(calls: pl.DataFrame, steps: int) -> float:
    """Return the median number of calls over the steps."""
    return float(np.median(np.bincount(calls["step"].to_numpy(), minlength=steps)))


def _phases(pieces: pl.DataFrame, steps: int) -> list[HostPhase]:
    """Return the phases in the order in which the step runs through them."""
    found = []
    for (after, before), mine in (
        pieces.drop_nulls("after_role")
        .partition_by("after_role", "before_role", as_dict=True, maintain_order=True)
        .items()
    ):
        if before is None or mine["step"].n_unique() * 2 < steps:
            continue
        called = mine.filter(pl.col("api").is_not_null())
        counted = called.unique("call")
        launches = counted.filter(pl.col("api_role").is_in([int(role) for role in LAUNCHES]))
        copies = counted.filter(pl.col("api_role").is_in([int(CallRole.COPY), int(CallRole.MEMSET)]))
        found.append(
            HostPhase(
                after_role=after,
                before_role=before,
                p50_ns=_per_step(mine, steps),
                waiting_p50_ns=_per_step(called.filter("waiting"), steps),
                calls_p50_ns=_per_step(called.filter(~pl.col("waiting")), steps),
                between_p50_ns=_per_step(mine.filter(pl.col("api").is_null()), steps),
                launches=_count(launches, steps),
                copies=_count(copies, steps),
            )
        )
    return found


def _calls(pieces: pl.DataFrame, steps: int) -> list[HostCall]:
    """Return the calls by what they are, the longest first."""
    called = pieces.drop_nulls("api")
    found = []
    for (api, waiting), mine in called.partition_by("api", "waiting", as_dict=True, maintain_order=True).items():
        lengths = mine.group_by("call").agg(pl.col("ns").sum())["ns"].to_numpy()
        found.append(
            HostCall(
                api=api,
                waits=waiting,
                per_step_count=len(lengths) / steps,
                call_p50_ns=float(np.median(lengths)),
                p50_ns=_per_step(mine, steps),
            )
        )
    return sorted(found, key=lambda call: (-call.p50_ns, call.api))[:_MOST_CALLS]


def _ranges(pieces: pl.DataFrame, steps: int) -> list[HostRange]:
    """Return the ranges of at least every other step, the longest first; names that differ in numbers only are one."""
    if not pieces["nvtx"].count():
        return []
    found = []
    for mine in pieces.with_columns(place=general(pl.col("nvtx"))).partition_by("place", maintain_order=True):
        if mine["step"].n_unique() * 2 < steps:
            continue
        waiting, called = pl.col("waiting"), pl.col("api").is_not_null()
        found.append(
            HostRange(
                nvtx=mine["nvtx"][0],
                per_step_count=mine["range_index"].drop_nulls().n_unique() / steps if mine["nvtx"][0] else None,
                p50_ns=_per_step(mine, steps),
                waiting_p50_ns=_per_step(mine.filter(waiting), steps),
                calls_p50_ns=_per_step(mine.filter(called & ~waiting), steps),
                between_p50_ns=_per_step(mine.filter(~called), steps),
            )
        )
    return sorted(found, key=lambda item: (-item.p50_ns, item.nvtx or ""))[:_MOST_RANGES]
