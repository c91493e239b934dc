"""The facts of sites and groups: how often, how long, what it costs, and what surrounds it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from bubblefinder.causes.decode import RankSteps, call_rows, operation_rows, p50, percentile, spread
from bubblefinder.causes.facts import SiteFacts
from bubblefinder.causes.idle_ranges import idle_ranges
from bubblefinder.causes.places import frame_chain, nvtx_stack
from bubblefinder.intervals import begin_and_end, one_of
from bubblefinder.lookup import NOWHERE, column_of, kept, on_gpu, places, taken
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.launches import LAUNCHES
from bubblefinder.trace.model import COPY_KINDS, GRAPH, KERNEL, MEMORY_KINDS, number_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.causes.model import Causes
    from bubblefinder.intervals import Ints
    from bubblefinder.timeline.model import Timeline

_NEAR_KERNELS: Final = 4
_NEAR_COPIES: Final = 8
_DESCRIPTION: Final = ("api", "copy_kind", "memory_kind", "nvtx", "frame", "after_role", "before_role")
_INHERITED: Final = (
    *_DESCRIPTION, "awaits", "bytes", "nvtx_stack", "frames", "thread", "other_thread", "private_stream",
    "event_before", "steps_behind", "kernels_before", "kernels_after", "copies_after", "memory_after",
)  # fmt: skip


def site_facts(timeline: Timeline, causes: Causes, lane: RankSteps) -> Iterator[SiteFacts]:
    """Yield one record a group of a lane's sites that cost the GPU time in a step; several sites are its members.

    Sites without a wait in any step (start-up, what lies between requests) lend a group neither words nor figures.
    """
    mine = lane.rows_of(causes.sites)
    draining = mine["group"].filter(mine["drained"]).to_numpy()
    stepwise = np.isin(mine["site"].to_numpy(), _in_steps(causes, lane))
    costly = kept(mine, np.isin(mine["group"].to_numpy(), draining) & stepwise)
    for group in costly.partition_by("group", maintain_order=True):
        members = tuple(_site(timeline, causes, lane, site) for site in group.iter_rows(named=True))
        found = members[0] if len(members) == 1 else _group(timeline, causes, lane, members)
        if found.steps_affected:
            yield found


def _in_steps(causes: Causes, lane: RankSteps) -> Ints:
    """Return the sites with a wait of their own in some decode step; in any step where none is closed."""
    window = lane.own(causes.waits["window_index"])
    steps = lane.decode if lane.steps else lane.counted
    own = ~causes.waits["joined"].to_numpy() & (window >= 0) & steps[window]
    return np.unique(causes.waits["site"].to_numpy()[own])


def facts_of_sites(timeline: Timeline, causes: Causes, lane: RankSteps, sites: tuple[int, ...]) -> SiteFacts:
    """Return the record of some sites together, whether or not they drained the GPU."""
    known = causes.sites["site"].to_numpy()
    rows = kept(causes.sites, np.isin(known, sites) & np.isin(known, _in_steps(causes, lane)))
    members = tuple(_site(timeline, causes, lane, row) for row in rows.iter_rows(named=True))
    found = members[0] if len(members) == 1 else _group(timeline, causes, lane, members)
    return replace(found, held=not rows["drained"].any())


def _site(timeline: Timeline, causes: Causes, lane: RankSteps, site: dict[str, Any]) -> SiteFacts:
    example = _example(causes, lane, site["site"])
    return SiteFacts(
        gpu=lane.gpu,
        process=lane.process,
        sites=(site["site"],),
        **{name: site[name] for name in _DESCRIPTION},
        bytes=example["bytes"],
        awaits=example["awaits"],
        nvtx_stack=nvtx_stack(timeline, site["thread"], example["start_ns"]),
        frames=frame_chain(timeline, example["call_index"]),
        thread=timeline.trace.thread_names.get(site["thread"]),
        other_thread=_other_thread(timeline, example),
        **_surroundings(timeline, causes, example),
        **_figures(timeline, causes, lane, (site["site"],)),
    )


def _other_thread(timeline: Timeline, wait: dict[str, Any]) -> str | None:
    """Return number and name of the thread that waits, None where it launches as well."""
    if wait["thread"] == wait["launcher"]:
        return None
    name = timeline.trace.thread_names.get(wait["thread"])
    return f"{number_of(wait['thread'])}{f' ({name})' if name else ''}"


def _group(timeline: Timeline, causes: Causes, lane: RankSteps, members: tuple[SiteFacts, ...]) -> SiteFacts:
    """Return the record of several sites together, described by the costliest."""
    costliest = max(members, key=lambda member: member.bubble_share or 0)
    sites = tuple(site for member in members for site in member.sites)
    figures = _figures(timeline, causes, lane, sites)
    return replace(
        SiteFacts(gpu=lane.gpu, process=lane.process, sites=sites, api=costliest.api, **figures),
        members=members,
        **{name: getattr(costliest, name) for name in _INHERITED},
    )


def _figures(timeline: Timeline, causes: Causes, lane: RankSteps, sites: tuple[int, ...]) -> dict[str, Any]:
    """Return counts, percentiles per affected decode step, shares and evidence of some sites together."""
    index = np.flatnonzero(np.isin(causes.waits["site"].to_numpy(), sites))
    bubbles, within = _bubbles(causes, lane, index)
    index = _calls_apart(causes, index)
    waits = taken(causes.waits[["window_index", "joined", "drained", "blocked_ns"]], index)
    window, joined = lane.own(waits["window_index"]), waits["joined"].to_numpy()
    drained = waits["drained"].to_numpy() if waits["drained"].any() else ~joined
    counted = (window >= 0) & lane.counted[window]
    hit = np.isin(np.arange(len(lane.starts)), window[drained & counted])
    affected = hit & lane.decode
    blocked = lane.per_window(window, waits["blocked_ns"].to_numpy())
    in_decode = (window >= 0) & lane.decode[window]
    evidence = taken(causes.waits[["call_index", "copy_index"]], spread(pl.Series(index[drained])))
    return {
        "steps": int(lane.counted.sum()),
        "steps_affected": int(hit.sum()),
        "steps_share": float(affected.sum()) / lane.steps if lane.steps else None,
        "occurrences": int((drained & counted).sum()),
        "per_step_count": float((in_decode & ~joined).sum()) / lane.steps if lane.steps else None,
        "blocked_p50_ns": p50(blocked[affected]),
        "blocked_p95_ns": percentile(blocked[affected], 95),
        "bubble_p50_ns": p50(bubbles[affected]),
        "bubble_p95_ns": percentile(bubbles[affected], 95),
        "bubble_share": lane.share(within),
        "idle_in": _idle_in(timeline, causes, lane, index),
        "evidence": (
            *call_rows(timeline, evidence["call_index"]),
            *operation_rows(timeline, evidence["copy_index"]),
        ),
    }


def _calls_apart(causes: Causes, waits: Ints) -> Ints:
    """Return the waits with those that are one call once: a call that holds two launching threads up is two waits."""
    order = waits[np.argsort(~causes.waits["drained"].to_numpy()[waits], kind="stable")]
    first = np.unique(causes.waits["call_index"].to_numpy()[order], return_index=True)[1]
    return np.sort(order[first])


def _charged(causes: Causes, waits: Ints) -> tuple[Ints, pl.DataFrame]:
    """Return the idle charged to some waits, and to which of all waits each."""
    blamed = places(causes.charges["wait_index"])
    mine = np.isin(blamed, waits)
    return blamed[mine], kept(causes.charges[["start_ns", "end_ns"]], mine)


def _idle_in(timeline: Timeline, causes: Causes, lane: RankSteps, waits: Ints) -> tuple[str, ...]:
    """Return the ranges in which the idle charged to some waits lies."""
    starts, ends = begin_and_end(_charged(causes, waits)[1].sort("start_ns"))
    window = lane.windows(starts)
    counted = (window >= 0) & lane.counted[window]
    launcher = causes.waits["launcher"][waits].drop_nulls()
    return idle_ranges(timeline, int(launcher[0]), starts[counted], ends[counted]) if len(launcher) else ()


def _bubbles(causes: Causes, lane: RankSteps, waits: Ints) -> tuple[np.ndarray[Any, np.dtype[np.float64]], float]:
    """Return the idle charged to the waits of each window, wherever it lies, and how much lies in the decode steps.

    What a step's waits cost and how long they block are then told of the same waits.
    """
    blamed, charged = _charged(causes, waits)
    starts, ends = begin_and_end(charged)
    within = lane.per_step(lane.windows(starts), ends - starts).sum()
    return lane.per_window(lane.own(causes.waits["window_index"])[blamed], ends - starts), float(within)


def _example(causes: Causes, lane: RankSteps, site: int) -> dict[str, Any]:
    """Return the middle wait of a site in the steps, of those with its commonest size that cost time if any did."""
    waits, window = causes.waits, lane.own(causes.waits["window_index"])
    mine = np.flatnonzero(waits["site"].to_numpy() == site)
    stepwise = (window >= 0) & lane.counted[window]
    for wanted in (stepwise, ~waits["joined"].to_numpy(), waits["drained"].to_numpy()):
        mine = mine[wanted[mine]] if wanted[mine].any() else mine
    sizes = waits["bytes"][mine].to_list()
    counts = Counter(sizes)
    usual = min(
        (size for size in counts if counts[size] == max(counts.values())), key=lambda size: -1 if size is None else size
    )
    alike = [place for place, size in zip(mine.tolist(), sizes, strict=True) if size == usual]
    return waits.row(alike[len(alike) // 2], named=True)


@dataclass(frozen=True, slots=True)
class _Near:
    """What a thread submitted just before and just after a wait."""

    before: pl.DataFrame
    after: pl.DataFrame


def _surroundings(timeline: Timeline, causes: Causes, wait: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that describe the copy's stream and the eager work around a wait."""
    mine = _submitted_by(causes, wait)
    near = _near(timeline, mine, wait)
    copy = wait["copy_index"]
    stream = column_of(timeline.operations, "stream")[copy] if copy is not None else None
    roles = near.after["api_role"].to_numpy()
    following = kept(near.after, np.logical_and.accumulate(roles == CallRole.COPY))
    copies = (following if stream is None else kept(following, following["stream"] == stream)).head(_NEAR_COPIES)
    sides = copies[["copy_kind", "src_kind", "dst_kind"]].rows()
    names = timeline.trace.names
    launched = [part["name"].filter(part["api_role"] == CallRole.LAUNCH_KERNEL) for part in (near.before, near.after)]
    return {
        "private_stream": _is_private(timeline, wait, copy),
        "event_before": _event_before(timeline, mine, wait, stream),
        "steps_behind": _steps_behind(causes, wait),
        "kernels_before": tuple(names.get(name, "") for name in launched[0].tail(_NEAR_KERNELS)),
        "kernels_after": tuple(names.get(name, "") for name in launched[1].head(_NEAR_KERNELS)),
        "copies_after": tuple(COPY_KINDS.get(kind, "unknown") for kind, _, _ in sides),
        "memory_after": tuple(
            MEMORY_KINDS.get(source if kind in (1, 3) else target, "unknown") for kind, source, target in sides
        ),
    }


def _near(timeline: Timeline, mine: pl.DataFrame, wait: dict[str, Any]) -> _Near:
    """Return what the launching thread submitted between the replays around a wait."""
    middle, past = np.searchsorted(mine["start_ns"].to_numpy(), (wait["start_ns"], wait["end_ns"])).tolist()
    replays = np.flatnonzero(places(mine["replay_index"]) != NOWHERE)
    first = int(np.append(-1, replays[replays < middle])[-1]) + 1
    last = int(np.append(replays[replays >= past], len(mine))[0])
    columns = timeline.operations[["name", "stream", "copy_kind", "src_kind", "dst_kind"]]
    before, after = mine[first:middle], mine[past:last]
    return _Near(*(part.hstack(columns[part["op_index"]]) for part in (before, after)))


def _submitted_by(causes: Causes, wait: dict[str, Any]) -> pl.DataFrame:
    """Return what the thread that a wait holds up submitted to its GPU."""
    submitted = on_gpu(causes.submitted, wait["gpu"])
    mine = column_of(submitted, "thread") == wait["launcher"]
    return kept(submitted[["start_ns", "end_ns", "op_index", "replay_index", "api_role"]], mine)


def _is_private(timeline: Timeline, wait: dict[str, Any], copy: int | None) -> bool | None:
    """Tell whether the copy's stream does nothing but copies; an export may lack contexts."""
    if copy is None:
        return None
    operations = on_gpu(timeline.operations, wait["gpu"])
    context, stream = (timeline.operations[copy, name] for name in ("context", "stream"))
    if stream is None:
        return None
    on_stream = (pl.col("process") == wait["process"]) & (pl.col("stream") == stream)
    works = pl.col("kind").is_in((KERNEL, GRAPH)) & pl.col("context").eq_missing(context)
    return not operations.select((on_stream & works).any()).item()


def _steps_behind(causes: Causes, wait: dict[str, Any]) -> int | None:
    """Return how many steps lie between the awaited copy and the last work launched before the wait."""
    if wait["copy_index"] is None or wait["window_index"] is None:
        return None
    submitted = on_gpu(causes.submitted, wait["gpu"])
    made = submitted["op_index"] == wait["copy_index"]
    windows = [window for window in submitted["window_index"].filter(made) if window is not None]
    return wait["window_index"] - windows[0] if windows else None


def _event_before(timeline: Timeline, mine: pl.DataFrame, wait: dict[str, Any], stream: int | None) -> bool | None:
    """Tell whether the thread made the copy's stream wait for an event between its last launch and the copy."""
    asking = timeline.calls["role"] == CallRole.STREAM_WAIT
    if not asking.any():
        return False
    starts, ends = begin_and_end(mine)
    copied = starts[mine["op_index"].to_numpy() == wait["copy_index"]] if wait["copy_index"] is not None else starts[:0]
    until = int(copied[0]) if len(copied) else wait["start_ns"]
    launches = one_of(mine["api_role"].to_numpy(), LAUNCHES) & (starts < until)
    asked = kept(timeline.calls[["process", "correlation", "thread", "start_ns"]], asking)
    within = asked["start_ns"].is_between(int(ends[launches].max(initial=0)), until)
    asked = kept(asked, (asked["thread"] == wait["launcher"]) & within)
    if asked.is_empty():
        return False
    streams = asked.join(timeline.trace.syncs[["process", "correlation", "stream"]], on=["process", "correlation"])
    if stream is not None and streams["stream"].count() == len(asked):
        return bool((streams["stream"] == stream).any())
    return True if len(asked) == 1 else None
