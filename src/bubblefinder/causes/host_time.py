"""Where the launching thread's time goes in a step: between which roles, in which calls, in which ranges.

A host step lasts from the first launch of a step to the first of the next. It is cut where calls, ranges and phases
begin and end; every piece then has one phase, at most one call (the outermost) and at most one range (the innermost),
so that the parts of each table sum to the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.host_record import HostCall, HostPhase, HostRange, HostTime
from bubblefinder.causes.places import general
from bubblefinder.intervals import begin_and_end, distinct, held_by, one_of, outermost
from bubblefinder.lookup import NOWHERE, changes, column_of, kept, nullable, numbered, on_gpu, places, taken
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.launches import LAUNCHES
from bubblefinder.units import duration, plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.causes.decode import RankSteps
    from bubblefinder.causes.model import Causes
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.timeline.model import Timeline

_STEPS_LOOKED_INTO: Final = 64
"""Steps around the middle of a capture: more don't change a median."""
_MOST_RANGES: Final = 30
_MOST_CALLS: Final = 30
_NAMED: Final = 3
"""Phases or calls that a finding names."""


def main_thread(causes: Causes, rank: RankSteps) -> int | None:
    """Return the thread that launches most of a rank's work."""
    mine = rank.rows_of(on_gpu(causes.submitted, rank.gpu))
    threads = mine["thread"].value_counts(sort=True)
    return None if threads.is_empty() else int(threads["thread"][0])


def host_time(timeline: Timeline, causes: Causes, rank: RankSteps, thread: int) -> HostTime | None:
    """Return where a thread's step goes; None without two steps of it."""
    edges = _middle_starts(causes, rank, thread)
    if len(edges) < 2:  # noqa: PLR2004 - one step has two edges
        return None
    pieces = host_pieces(timeline, causes, rank, thread, edges)
    told = _Columns(
        steps=len(edges) - 1,
        step=pieces["step"].to_numpy(),
        ns=pieces["ns"].to_numpy(),
        called=pieces["call"].is_not_null().to_numpy(),
        waiting=pieces["waiting"].to_numpy(),
    )
    whole = told.parts(np.zeros(len(pieces), np.int64))
    return HostTime(
        thread=timeline.trace.thread_names.get(thread),
        steps=told.steps,
        step_p50_ns=float(np.median(np.diff(edges))),
        **{name: medians[0] for name, medians in whole.items()},
        phases=tuple(_phases(pieces, told)),
        calls=tuple(_calls(pieces, told)),
        ranges=tuple(_ranges(pieces, told)),
    )


@dataclass(frozen=True, slots=True)
class _Columns:
    """What is added up of the pieces of so many steps: each one's step and length, and which are calls, or waits."""

    steps: int
    step: Ints
    ns: Ints
    called: Bools
    waiting: Bools

    def parts(self, group: Ints) -> dict[str, list[float]]:
        """Return for each group the medians of what waits, of the other calls, and of what lies between calls."""
        chosen = {"waiting": self.waiting, "calls": self.called & ~self.waiting, "between": ~self.called}
        return {f"{name}_p50_ns": self.p50(group, mine) for name, mine in chosen.items()}

    def p50(self, group: Ints, chosen: Bools | slice = slice(None), *, count: bool = False) -> list[float]:
        """Return for each group the median over the steps of what its chosen pieces take, or of their number."""
        groups = int(group.max(initial=0)) + 1
        place = (group * self.steps + self.step)[chosen]
        sums = np.bincount(place, None if count else self.ns[chosen], minlength=groups * self.steps)
        medians: list[float] = np.median(sums.reshape(groups, self.steps), axis=1).tolist()
        return medians

    def usual(self, group: Ints) -> Bools:
        """Tell the groups that are in at least every other step."""
        groups = int(group.max(initial=0)) + 1
        place = np.bincount(group * self.steps + self.step, minlength=groups * self.steps)
        return np.asarray(2 * np.count_nonzero(place.reshape(groups, self.steps), axis=1) >= self.steps)


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
    submitted = on_gpu(causes.submitted, rank.gpu)
    mine = kept(submitted[["start_ns", "window_index"]], column_of(submitted, "thread") == thread)
    windows = rank.own(mine["window_index"])
    keep = np.flatnonzero(windows >= 0)
    first_of = np.full(len(rank.starts), NOWHERE)
    first_of[windows[keep][::-1]] = keep[::-1]
    numbers = np.flatnonzero(first_of != NOWHERE)
    starts = np.maximum.accumulate(mine["start_ns"].to_numpy()[first_of[numbers]])
    return starts, np.flatnonzero(rank.decode[numbers])


def phase_starts(causes: Causes, rank: RankSteps, thread: int) -> pl.DataFrame:
    """Return start_ns, after_role and before_role of each phase: from the launch of one role to that of the next."""
    submitted = on_gpu(causes.submitted, rank.gpu)
    own = column_of(submitted, "thread") == thread
    launched = kept(submitted[["start_ns", "role", "phase"]], own & submitted["role"].is_not_null())
    first = np.flatnonzero(changes(launched["phase"].to_numpy()))
    firsts = taken(launched[["start_ns", "role"]], first)
    following = launched["role"][nullable(np.append(first[1:], NOWHERE)[: len(first)])]
    return firsts.rename({"role": "after_role"}).hstack([following.rename("before_role")])


def host_pieces(timeline: Timeline, causes: Causes, rank: RankSteps, thread: int, edges: Ints) -> pl.DataFrame:
    """Return the pieces of a thread's steps.

    Returns:
        step, start_ns, ns, after_role and before_role (its phase), call (a number), api, api_role and waiting of the
        call, nvtx and range_index (a number) of the range and whether it opened in these steps; null where there is
        none.
    """
    calls = _outermost_calls(timeline, causes, thread, edges)
    ranges = timeline.ranges.by_thread.of(thread, "start_ns", "end_ns")
    phases = phase_starts(causes, rank, thread)
    begun = phases["start_ns"].to_numpy()
    cuts = np.concatenate([edges, begun, *begin_and_end(calls), *begin_and_end(ranges)])
    cuts = distinct(cuts[(cuts >= edges[0]) & (cuts <= edges[-1])])
    starts, lengths = cuts[:-1], np.diff(cuts)
    call = held_by(starts, *begin_and_end(calls))
    place = nullable(timeline.ranges.innermost(np.full(len(starts), thread), starts))
    phase = nullable(np.searchsorted(begun, starts, side="right") - 1)
    opened = (timeline.ranges.rows["start_ns"] >= int(edges[0])).rename("opened")
    columns = {"step": np.searchsorted(edges, starts, side="right") - 1, "start_ns": starts, "ns": lengths}
    return pl.DataFrame(
        columns
        | taken(phases[["after_role", "before_role"]], phase).to_dict()
        | taken(calls[["api", "api_role"]], nullable(call)).to_dict()
        | {"waiting": np.append(calls["waiting"].to_numpy(), False)[call], "call": nullable(call)}
        | {"nvtx": timeline.ranges.rows["text"][place], "opened": opened[place]}
        | {"range_index": place}
    )


def _outermost_calls(timeline: Timeline, causes: Causes, thread: int, edges: Ints) -> pl.DataFrame:
    """Return a thread's outermost calls in the steps, with `waiting`: whether they waited for the GPU."""
    waits = causes.waits["call_index"].filter(causes.waits["thread"] == thread)
    waiting = np.zeros(len(timeline.calls), np.bool_)
    waiting[waits.to_numpy()] = True
    calls = timeline.calls_of.of(thread, "start_ns", "end_ns", "api", "role")
    calls = calls.hstack([timeline.calls_of.at(thread).rename("call_index")])
    calls = kept(calls, (calls["end_ns"] > edges[0]) & (calls["start_ns"] < edges[-1]))
    outer = kept(calls, outermost(np.zeros(len(calls), np.int64), *begin_and_end(calls)))
    api = outer["api"].cast(pl.String)
    return outer[["start_ns", "end_ns"]].hstack(
        [
            api.fill_null("unnamed") if api.null_count() else api,
            outer["role"].rename("api_role"),
            pl.Series("waiting", waiting[outer["call_index"].to_numpy()]),
        ]
    )


def _phases(pieces: pl.DataFrame, told: _Columns) -> Iterator[HostPhase]:
    """Yield the phases in the order in which the step runs through them."""
    pairs, group = numbered(pieces[["after_role", "before_role"]])
    call, role = places(pieces["call"]), places(pieces["api_role"])
    calls = int(call.max(initial=0)) + 2
    first = np.unique(group * calls + call, return_index=True)[1]  # a call is counted once in a phase
    first = first[told.called[first]]
    found = {
        "p50_ns": told.p50(group),
        **told.parts(group),
        "launches": told.p50(group, first[one_of(role[first], LAUNCHES)], count=True),
        "copies": told.p50(group, first[one_of(role[first], (CallRole.COPY, CallRole.MEMSET))], count=True),
    }
    for number in np.flatnonzero(told.usual(group)).tolist():
        after, before = pairs[number]
        if None not in (after, before):
            figures = {name: medians[number] for name, medians in found.items()}
            yield HostPhase(after_role=after, before_role=before, **figures)


def _calls(pieces: pl.DataFrame, told: _Columns) -> list[HostCall]:
    """Return the calls by what they are, the longest first."""
    kinds, group = numbered(pieces[["api", "waiting"]])
    call, p50 = places(pieces["call"]), told.p50(group)
    lengths = np.bincount(call + 1, told.ns)[1:]
    kind = np.full(len(lengths), NOWHERE)
    kind[call[told.called]] = group[told.called]
    found = [
        HostCall(
            api=api,
            waits=waiting,
            per_step_count=int((kind == number).sum()) / told.steps,
            call_p50_ns=float(np.median(lengths[kind == number])),
            p50_ns=p50[number],
        )
        for number, (api, waiting) in enumerate(kinds)
        if api is not None
    ]
    return sorted(found, key=lambda call: (-call.p50_ns, call.api))[:_MOST_CALLS]


def _ranges(pieces: pl.DataFrame, told: _Columns) -> list[HostRange]:
    """Return the ranges of at least every other step, the longest first; names that differ in numbers only are one."""
    if not pieces["nvtx"].count():
        return []
    _, group = numbered(pieces.select(general(pl.col("nvtx"))))
    names = pieces["nvtx"][np.unique(group, return_index=True)[1]]
    opened = pieces["opened"].fill_null(value=False).to_numpy()
    each = np.stack((group, places(pieces["range_index"])))[:, opened]
    once = np.unique(each, axis=1)[0]  # each range of a group
    found = {"p50_ns": told.p50(group), **told.parts(group)}
    ranges = [
        HostRange(
            nvtx=names[number],
            per_step_count=int((once == number).sum()) / told.steps if names[number] else None,
            **{name: medians[number] for name, medians in found.items()},
        )
        for number in np.flatnonzero(told.usual(group)).tolist()
    ]
    return sorted(ranges, key=lambda item: (-item.p50_ns, item.nvtx or ""))[:_MOST_RANGES]
