"""The facts of sites and groups: how often, how long, what it costs, and what surrounds it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from bubblefinder.causes.decode import RankSteps, call_rows, operation_rows, p50, percentile, spread
from bubblefinder.causes.facts import SiteFacts
from bubblefinder.causes.idle_ranges import idle_ranges
from bubblefinder.causes.places import frame_chain, nvtx_stack
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.launches import LAUNCHES
from bubblefinder.trace.model import COPY_KINDS, GRAPH, KERNEL, MEMORY_KINDS, number_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.causes.model import Causes
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
    mine = causes.sites.filter((pl.col("gpu") == lane.gpu) & (pl.col("process") == lane.process))
    stepwise = pl.col("site").is_in(_in_steps(causes, lane).implode())
    costly = mine.filter(pl.col("drained").any().over("group") & stepwise)
    for group in costly.partition_by("group", maintain_order=True):
        members = tuple(_site(timeline, causes, lane, site) for site in group.iter_rows(named=True))
        found = members[0] if len(members) == 1 else _group(timeline, causes, lane, members)
        if found.steps_affected:
            yield found


def _in_steps(causes: Causes, lane: RankSteps) -> pl.Series:
    """Return the sites with a wait of their own in some decode step; in any step where none is closed."""
    waits = causes.waits.filter(~pl.col("joined"))
    window = lane.own(waits["window_index"])
    steps = lane.decode if lane.steps else lane.counted
    return waits["site"].filter(pl.Series((window >= 0) & steps[window])).unique()


def facts_of_sites(timeline: Timeline, causes: Causes, lane: RankSteps, sites: tuple[int, ...]) -> SiteFacts:
    """Return the record of some sites together, whether or not they drained the GPU."""
    rows = causes.sites.filter(pl.col("site").is_in(sites) & pl.col("site").is_in(_in_steps(causes, lane).implode()))
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
    waits = causes.waits.with_row_index("wait_index").filter(pl.col("site").is_in(sites))
    bubbles, within = _bubbles(causes, lane, waits)
    # A call that holds two launching threads up is two waits, and one call.
    waits = waits.sort("drained", descending=True, maintain_order=True).unique("call_index", keep="first")
    waits = waits.sort("wait_index")
    window, joined = lane.own(waits["window_index"]), waits["joined"].to_numpy()
    drained = waits["drained"].to_numpy() if waits["drained"].any() else ~joined
    counted = (window >= 0) & lane.counted[window]
    hit = np.isin(np.arange(len(lane.starts)), window[drained & counted])
    affected = hit & lane.decode
    blocked = lane.per_window(window, waits["blocked_ns"].to_numpy())
    in_decode = (window >= 0) & lane.decode[window]
    shown = spread(waits.filter(pl.Series(drained))["wait_index"])
    evidence = causes.waits.select("call_index", "copy_index")[shown]
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
        "idle_in": _idle_in(timeline, causes, lane, waits),
        "evidence": (
            *call_rows(timeline, evidence["call_index"]),
            *operation_rows(timeline, evidence["copy_index"]),
        ),
    }


def _idle_in(timeline: Timeline, causes: Causes, lane: RankSteps, waits: pl.DataFrame) -> tuple[str, ...]:
    """Return the ranges in which the idle charged to some waits lies."""
    charged = causes.charges.filter(pl.col("wait_index").is_in(waits["wait_index"].implode())).sort("start_ns")
    window, launcher = lane.windows(charged["start_ns"].to_numpy()), waits["launcher"].drop_nulls()
    starts, ends = (charged[side].to_numpy()[(window >= 0) & lane.counted[window]] for side in ("start_ns", "end_ns"))
    return idle_ranges(timeline, int(launcher[0]), starts, ends) if len(launcher) else ()


def _bubbles(
    causes: Causes, lane: RankSteps, waits: pl.DataFrame
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], float]:
    """Return the idle charged to the waits of each window, wherever it lies, and how much lies in the decode steps.

    What a step's waits cost and how long they block are then told of the same waits.
    """
    charged = causes.charges.filter(pl.col("wait_index").is_in(waits["wait_index"].implode()))
    charged = charged.join(waits.select("wait_index", "window_index"), on="wait_index", maintain_order="left")
    starts, lengths = charged["start_ns"].to_numpy(), (charged["end_ns"] - charged["start_ns"]).to_numpy()
    within = lane.per_step(lane.windows(starts), lengths).sum()
    return lane.per_window(lane.own(charged["window_index"]), lengths), float(within)


def _example(causes: Causes, lane: RankSteps, site: int) -> dict[str, Any]:
    """Return the middle wait of a site in the steps, of those with its commonest size that cost time if any did."""
    window = lane.own(causes.waits["window_index"])
    mine = causes.waits.with_columns(stepwise=(window >= 0) & lane.counted[window]).filter(pl.col("site") == site)
    for wanted in ("stepwise", ~pl.col("joined")):
        mine = mine.filter(pl.any_horizontal(wanted) | ~pl.any_horizontal(wanted).any())
    mine = mine.filter(pl.col("drained").any() == pl.col("drained"))
    usual = mine.filter(pl.col("bytes").eq_missing(pl.lit(mine["bytes"].mode().sort().first(), pl.Int64)))
    return usual.row(len(usual) // 2, named=True)


@dataclass(frozen=True, slots=True)
class _Near:
    """What a thread submitted just before and just after a wait."""

    before: pl.DataFrame
    after: pl.DataFrame


def _surroundings(timeline: Timeline, causes: Causes, wait: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that describe the copy's stream and the eager work around a wait."""
    near = _near(timeline, causes, wait)
    copy = wait["copy_index"]
    stream = timeline.operations["stream"][copy] if copy is not None else None
    following = near.after.filter((pl.col("api_role") != CallRole.COPY).cum_sum() == 0)
    copies = following.filter((pl.col("stream") == stream) if stream is not None else pl.lit(value=True)).head(
        _NEAR_COPIES
    )
    host = copies.select(pl.when(pl.col("copy_kind").is_in([1, 3])).then("src_kind").otherwise("dst_kind")).to_series()
    names = timeline.trace.names
    kernels = pl.col("api_role") == CallRole.LAUNCH_KERNEL
    return {
        "private_stream": _is_private(timeline, wait, copy),
        "event_before": _event_before(timeline, causes, wait, stream),
        "steps_behind": _steps_behind(causes, wait),
        "kernels_before": tuple(
            names.get(name, "") for name in near.before.filter(kernels)["name"].tail(_NEAR_KERNELS)
        ),
        "kernels_after": tuple(names.get(name, "") for name in near.after.filter(kernels)["name"].head(_NEAR_KERNELS)),
        "copies_after": tuple(COPY_KINDS.get(kind, "unknown") for kind in copies["copy_kind"]),
        "memory_after": tuple(MEMORY_KINDS.get(kind, "unknown") for kind in host),
    }


def _near(timeline: Timeline, causes: Causes, wait: dict[str, Any]) -> _Near:
    """Return what the launching thread submitted between the replays around a wait."""
    mine = _submitted_by(causes, wait, "start_ns", "op_index", "replay_index", "api_role")
    middle = int(mine["start_ns"].search_sorted(wait["start_ns"], side="left"))
    past = int(mine["start_ns"].search_sorted(wait["end_ns"], side="left"))
    replays = mine["replay_index"].is_not_null().arg_true().to_numpy()
    first = int(np.append(-1, replays[replays < middle])[-1]) + 1
    last = int(np.append(replays[replays >= past], len(mine))[0])
    columns = timeline.operations.select("name", "stream", "copy_kind", "src_kind", "dst_kind")
    before, after = mine[first:middle], mine[past:last]
    return _Near(*(part.hstack(columns[part["op_index"]]) for part in (before, after)))


def _submitted_by(causes: Causes, wait: dict[str, Any], *columns: str) -> pl.DataFrame:
    """Return what the thread that a wait holds up submitted to its GPU."""
    mine = (causes.submitted["thread"] == wait["launcher"]) & (causes.submitted["gpu"] == wait["gpu"])
    return causes.submitted.select(columns).filter(mine)


def _is_private(timeline: Timeline, wait: dict[str, Any], copy: int | None) -> bool | None:
    """Tell whether the copy's stream does nothing but copies; an export may lack contexts."""
    context, stream = (None, None) if copy is None else timeline.operations.select("context", "stream").row(copy)
    if stream is None:
        return None
    same = (pl.col("gpu") == wait["gpu"]) & (pl.col("process") == wait["process"]) & (pl.col("stream") == stream)
    work = timeline.operations.lazy().filter(
        same & pl.col("context").eq_missing(pl.lit(context)) & pl.col("kind").is_in([KERNEL, GRAPH])
    )
    return bool(work.select(pl.len() == 0).collect().item())


def _steps_behind(causes: Causes, wait: dict[str, Any]) -> int | None:
    """Return how many steps lie between the awaited copy and the last work launched before the wait."""
    made = pl.col("op_index") == pl.lit(wait["copy_index"], pl.UInt32)
    windows = causes.submitted.filter(made & (pl.col("gpu") == wait["gpu"]))["window_index"].drop_nulls().to_list()
    return wait["window_index"] - windows[0] if windows and wait["window_index"] is not None else None


def _event_before(timeline: Timeline, causes: Causes, wait: dict[str, Any], stream: int | None) -> bool | None:
    """Tell whether the thread made the copy's stream wait for an event between its last launch and the copy."""
    mine = _submitted_by(causes, wait, "start_ns", "end_ns", "op_index", "api_role")
    copied = mine.filter(pl.col("op_index").eq_missing(pl.lit(wait["copy_index"])))["start_ns"].to_list()
    until: int = copied[0] if copied else wait["start_ns"]
    launches = mine.filter(pl.col("api_role").is_in([int(role) for role in LAUNCHES]) & (pl.col("start_ns") < until))
    since: int = max(launches["end_ns"].to_list(), default=0)
    waits_for = (pl.col("thread") == wait["launcher"]) & (pl.col("role") == CallRole.STREAM_WAIT)
    calls = timeline.calls.lazy().filter(waits_for & pl.col("start_ns").is_between(since, until))
    asked = calls.select("process", "correlation").collect()
    if asked.is_empty():
        return False
    streams = asked.join(timeline.trace.syncs.select("process", "correlation", "stream"), on=["process", "correlation"])
    if stream is not None and streams["stream"].count() == len(asked):
        return bool((streams["stream"] == stream).any())
    return True if len(asked) == 1 else None
