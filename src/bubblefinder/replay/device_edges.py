"""Dependencies of the GPU: launches, the order in a stream, events between streams, collectives between ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.waits import recorded_events
from bubblefinder.intervals import LONG_AGO, NEVER, begin_and_end, distinct, median
from bubblefinder.lookup import changes, numbered, places, where
from bubblefinder.replay.model import EdgeKind
from bubblefinder.timeline.apis import CallRole

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.replay.numbering import Nodes
    from bubblefinder.timeline.model import Timeline

QUEUED_NS: Final = 5_000
"""Queued gap before a replay or a copy where the capture has no example: the sample captures show 1.3 to 7.8 us."""
KERNEL_QUEUED_NS: Final = 1_200
"""The same before a kernel or a memset: the sample captures show 1.0 to 1.6 us."""
LATENCY_NS: Final = 5_000
"""From a launch call's begin to its work on an idle GPU where the capture has no example."""
SLACK_NS: Final = 20_000
"""A block that starts so much later than its launch and its stream explain waited for something else."""


@dataclass(frozen=True, slots=True)
class Usual:
    """What is usual for each block: launch latency on an idle GPU, and the gap behind work it was queued after."""

    latency: Ints
    queued: Ints


@dataclass(frozen=True, slots=True)
class Launches:
    """The launch call of each block: its position, -1 if unknown; whether it began before it; when it handed it over.

    A call hands its block over at its end, or at its begin where it waits for the block. What idles until then waits
    for the host, however early the call began: it says nothing of gaps in the queue.
    """

    call: Ints
    known: Bools
    handed: Ints


def device_edges(nodes: Nodes, timeline: Timeline, calls: pl.DataFrame, blocks: pl.DataFrame) -> tuple[Usual, int]:
    """Add the dependencies of the blocks; return what is usual, and how many had to be told by the order seen alone."""
    launches = _launches(nodes, calls, blocks)
    before = _previous(blocks)
    usual = _usual(nodes, blocks, launches, before)
    target = np.arange(len(blocks))
    chained = before >= 0
    pairs = [(before[chained], target[chained]), _event_pairs(timeline, calls, blocks)]
    seen = _seen_pairs(nodes, blocks, pairs, launches, usual)
    source, target = (np.concatenate([pair[side] for pair in (*pairs, seen)]) for side in (0, 1))
    _starts(nodes, launches, usual, source, target, len(seen[0]))
    _ends(nodes, before)
    return usual, len(seen[0])


def _previous(blocks: pl.DataFrame) -> Ints:
    """Return the block before each in its stream, the one that ended last, -1 for the first."""
    furthest = pl.when(pl.col("end_ns") == pl.col("end_ns").cum_max()).then(pl.col("block").cast(pl.Int64))
    rows = blocks.with_row_index("block").select(
        previous=furthest.forward_fill().shift(1).over("gpu", "process", "context", "stream"),
    )
    return places(rows["previous"])


def _launches(nodes: Nodes, calls: pl.DataFrame, blocks: pl.DataFrame) -> Launches:
    call = places(blocks["call"])
    if calls.is_empty():
        return Launches(call, call >= 0, np.zeros(len(call), np.int64))
    handed = np.where(calls["waits"].to_numpy(), *(calls[side].to_numpy() for side in ("start_ns", "end_ns")))
    return Launches(call, (call >= 0) & (nodes.calls.starts[call] <= nodes.blocks.starts), handed[call])


def _usual(nodes: Nodes, blocks: pl.DataFrame, launches: Launches, before: Ints) -> Usual:
    """Read usual latencies off blocks launched on an idle GPU, and usual gaps off blocks queued behind others.

    Where work of another stream ended last, or long after the work ahead, the block waited for something else: its gap
    is no example.
    """
    spans, call, known = nodes.blocks, launches.call, launches.known
    reach = pl.DataFrame({"gpu": blocks["gpu"], "end": spans.ends}).select(pl.col("end").cum_max().shift(1).over("gpu"))
    idle_since = reach.to_series().fill_null(NEVER).to_numpy()
    begun = np.where(known, nodes.calls.starts[call], NEVER) if len(nodes.calls.starts) else idle_since
    late = known & (begun >= idle_since)
    kinds = [numbered(blocks[["kind", "role"]])[1], numbered(blocks[["kind"]])[1], np.zeros(len(blocks), np.int64)]
    latency = _typical(kinds, spans.starts - begun, late, LATENCY_NS)
    behind = spans.starts - spans.ends[before]
    queued = known & (before >= 0) & (begun + latency < spans.ends[before]) & (behind >= 0)
    queued &= (launches.handed <= spans.ends[before]) & (_last_ended(blocks) == spans.ends[before])
    queued &= behind <= SLACK_NS
    short = ((blocks["kind"] == "kernel") | (blocks["kind"] == "memset")).to_numpy()
    return Usual(latency, _typical(kinds[1:], behind, queued, np.where(short, KERNEL_QUEUED_NS, QUEUED_NS)))


def _last_ended(blocks: pl.DataFrame) -> Ints:
    """Return for each block what ended last on its GPU by its start: what it may have waited for; -1 for nothing."""
    gpus = blocks["gpu"].to_numpy()
    starts, ends = begin_and_end(blocks)
    ended = np.full(len(blocks), -1)
    for gpu in np.unique(gpus).tolist():
        mine = gpus == gpu
        times = np.sort(ends[mine])
        ended[mine] = np.append(times, -1)[np.searchsorted(times, starts[mine], side="right") - 1]
    return ended


def _typical(keys: list[Ints], values: Ints, sampled: Bools, fallback: Ints | int) -> Ints:
    """Return the median of the sampled values by the first key that has any, else the fallback."""
    chosen = np.full(len(values), -1, np.int64)
    for key in keys:
        medians = np.full(int(key.max(initial=0)) + 1, -1)
        for one in distinct(key[sampled]).tolist():
            medians[one] = round(median(values[sampled & (key == one)]))
        chosen = np.where(chosen < 0, medians[key], chosen)
    return np.where(chosen < 0, fallback, chosen)


def _event_ties(timeline: Timeline, waiting: pl.DataFrame) -> pl.DataFrame:
    """Return which streams wait for an event of another one: process, both streams, and when each was told."""
    syncs = timeline.trace.syncs[["process", "correlation", "stream", "event", "event_sync"]]
    return (
        waiting.join(syncs, on=["process", "correlation"])
        .join(recorded_events(timeline).drop_nulls("recorded_ns"), on=["process", "event", "event_sync"])
        .pipe(where, pl.col("stream") != pl.col("recorded_stream"))
    )


def _event_pairs(timeline: Timeline, calls: pl.DataFrame, blocks: pl.DataFrame) -> tuple[Ints, Ints]:
    """Return (earlier, later) blocks of two streams that cudaStreamWaitEvent ties, as far as the capture shows it."""
    asking = (timeline.calls["role"] == CallRole.STREAM_WAIT).to_numpy()
    if not asking.any():
        return np.empty(0, np.int64), np.empty(0, np.int64)
    ties = _event_ties(
        timeline, timeline.calls.select("process", "correlation", asked_ns="start_ns").pipe(where, pl.Series(asking))
    )
    submitted = blocks.select("process", "stream", at=calls["start_ns"][blocks["call"]]).with_row_index("block")
    submitted = submitted.drop_nulls("at").sort("at")
    before = submitted.select("process", recorded_stream="stream", recorded_ns="at", earlier="block")
    behind = submitted.select("process", "stream", asked_ns="at", later="block")
    both = (
        ties.sort("recorded_ns")
        .join_asof(before, on="recorded_ns", by=["process", "recorded_stream"], check_sortedness=False)
        .sort("asked_ns")
        .join_asof(behind, on="asked_ns", by=["process", "stream"], strategy="forward", check_sortedness=False)
        .drop_nulls(["earlier", "later"])
    )
    earlier, later = (places(both[name]) for name in ("earlier", "later"))
    in_order = blocks["end_ns"].to_numpy()[earlier] <= blocks["start_ns"].to_numpy()[later]
    return earlier[in_order], later[in_order]


def _seen_pairs(
    nodes: Nodes,
    blocks: pl.DataFrame,
    pairs: list[tuple[Ints, Ints]],
    launches: Launches,
    usual: Usual,
) -> tuple[Ints, Ints]:
    """Return (earlier, later) blocks of two streams where only the order seen explains the later one's start."""
    spans = nodes.blocks
    ready = np.full(len(blocks), LONG_AGO)
    for source, target in pairs:
        np.maximum.at(ready, target, spans.ends[source] + usual.queued[target])
    if len(nodes.calls.starts):
        launched = nodes.calls.starts[launches.call] + usual.latency
        ready = np.where(launches.known, np.maximum(ready, launched), ready)
    unexplained = np.flatnonzero(spans.starts - ready > SLACK_NS) if len(blocks) else np.empty(0, np.int64)
    if not len(unexplained):
        return unexplained, unexplained
    points = pl.DataFrame(
        {
            "gpu": blocks["gpu"][unexplained],
            "process": blocks["process"][unexplained],
            "at": spans.starts[unexplained],
            "later": unexplained,
        }
    )
    ended = blocks.select("gpu", "process", at="end_ns").with_row_index("earlier").sort("at")
    found = (
        points.sort("at").join_asof(ended, on="at", by=["gpu", "process"], check_sortedness=False).drop_nulls("earlier")
    )
    earlier, later = found["earlier"].to_numpy().astype(np.int64), found["later"].to_numpy().astype(np.int64)
    near = (
        (spans.starts[later] - spans.ends[earlier] < SLACK_NS)
        & (spans.ends[earlier] > ready[later])
        & (earlier != later)
    )
    return earlier[near], later[near]


def _starts(nodes: Nodes, launches: Launches, usual: Usual, source: Ints, target: Ints, seen: int) -> None:
    """A block starts after its launch and after the work before it; what came last when recorded takes the exact lag.

    The last `seen` pairs are those that only the order seen tells.
    """
    spans, call, known = nodes.blocks, launches.call, launches.known
    lowest = LONG_AGO
    launched = (
        np.where(known, nodes.calls.starts[call] + usual.latency, lowest)
        if len(nodes.calls.starts)
        else np.full(len(call), lowest)
    )
    node, distance = spans.after(source, spans.starts[target])
    behind = spans.starts[target] - distance
    freed = np.full(len(call), lowest)
    np.maximum.at(freed, target, behind)
    launching = (launches.handed > freed) & (spans.starts > freed + usual.queued)
    by_launch = known & (launching | (launched >= freed + usual.queued))
    own = np.flatnonzero(known)
    latency = spans.starts[own] - nodes.calls.starts[call[own]]
    lag = np.where(by_launch[own] | (freed[own] == lowest), latency, np.minimum(latency, usual.latency[own]))
    nodes.add(EdgeKind.LAUNCH, nodes.calls.begin[call[own]], spans.begin[own], lag, own)
    exact = ~by_launch[target] & (behind == freed[target])
    gap = np.where(exact, distance, np.minimum(distance, usual.queued[target]))
    told = len(source) - seen
    for kind, part in ((EdgeKind.QUEUE, slice(told)), (EdgeKind.SEEN, slice(told, None))):
        nodes.add(kind, node[part], spans.begin[target[part]], gap[part], target[part])


def _ends(nodes: Nodes, before: Ints) -> None:
    """Work that began before the work ahead of it in its stream was over (PDL) still ends after it, as recorded."""
    spans = nodes.blocks
    early = np.flatnonzero((before >= 0) & (spans.ends[before] > spans.starts) & (spans.ends[before] < spans.ends))
    ahead = before[early]
    nodes.add(EdgeKind.QUEUE, spans.end[ahead], spans.end[early], spans.ends[early] - spans.ends[ahead], early)


def inside_edges(nodes: Nodes, blocks: pl.DataFrame, meets: pl.DataFrame) -> None:
    """Add the insides of the blocks: one stretch each, or the stretches between their collectives, which join ranks."""
    spans, joints = nodes.blocks, nodes.meets
    block = meets["block"].to_numpy().astype(np.int64)
    plain = np.setdiff1d(np.arange(len(blocks)), block)
    nodes.add(EdgeKind.WORK, spans.begin[plain], spans.end[plain], spans.ends[plain] - spans.starts[plain], plain)
    begins = changes(block)
    first, later = np.flatnonzero(begins), np.flatnonzero(~begins)
    last = np.append(first, len(block))[1:] - 1
    nodes.add(
        EdgeKind.WORK,
        spans.begin[block[first]],
        joints.begin[first],
        joints.starts[first] - spans.starts[block[first]],
        block[first],
    )
    source, distance = joints.after(later - 1, joints.starts[later])
    nodes.add(EdgeKind.WORK, source, joints.begin[later], distance, block[later])
    source, distance = joints.after(last, spans.ends[block[last]])
    nodes.add(EdgeKind.WORK, source, spans.end[block[last]], distance, block[last])
    _meet(nodes, meets, block)


def _meet(nodes: Nodes, meets: pl.DataFrame, block: Ints) -> None:
    """A collective ends on every rank a fixed time after the last has arrived."""
    joints = nodes.meets
    rows = meets[["collective"]].with_row_index("mine")
    pairs = rows.join(rows.rename({"mine": "theirs"}), on="collective")
    mine, theirs = pairs["mine"].to_numpy().astype(np.int64), pairs["theirs"].to_numpy().astype(np.int64)
    arrived = np.full(len(meets), LONG_AGO)
    np.maximum.at(arrived, mine, joints.starts[theirs])
    nodes.add(EdgeKind.MEET, joints.begin[theirs], joints.end[mine], joints.ends[mine] - arrived[mine], block[mine])
