"""The GPU of a lane as blocks of work with gaps between, and what the profiler added to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import covered_before, held_by, last_before, union
from bubblefinder.timeline.ledger import cover_of
from bubblefinder.timeline.model import IdleClass, on_gpu
from bubblefinder.trace.model import GRAPH, KERNEL, MEMCPY, MEMSET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.overhead.model import Costs
    from bubblefinder.timeline.model import Timeline

    Floats = NDArray[np.float64]

SEAM_CLASSES: Final = (
    IdleClass.PROFILER,
    IdleClass.UNRECORDED,
    IdleClass.HOST_LATE,
    IdleClass.LAUNCHING,
    IdleClass.QUEUED,
    IdleClass.UNATTRIBUTED,
    IdleClass.INTRA_GRAPH,
)
"""The last only where an operation of no length begins or ends a replay inside a gap."""
_MEMSET_BY_KERNEL_BYTES: Final = 16_384


@dataclass(frozen=True, slots=True)
class Work:
    """What one GPU did: blocks without idle time outside graphs, the seams between them, and their graph nodes.

    Attributes:
        starts: start of each block.
        ends: end of each block.
        idle_ns: idle time inside each block: the intra-graph gaps.
        call_index: launch call of the operation that ends the seam before each block, -1 where unknown or none.
        by_replay: whether a graph replay ends that seam.
        seam_ns: one row a seam (block), one column a class of `SEAM_CLASSES`.
        nodes: how many graph nodes each block has, one column a kind of `NODE_KINDS`.
    """

    starts: Ints
    ends: Ints
    idle_ns: Ints
    call_index: Ints
    by_replay: Bools
    seam_ns: Ints
    nodes: Ints


@dataclass(frozen=True, slots=True)
class Added:
    """What the profiler added to each block, split by where it is taken from, and to the seam before it."""

    gaps_ns: Floats
    busy_ns: Floats
    unplaced_ns: Floats
    seam_ns: Floats

    @property
    def block_ns(self) -> Floats:
        """What each block gets shorter by."""
        return self.gaps_ns + self.busy_ns


_TOLD_BY: Final = ("kind", "start_ns", "end_ns", "stream", "bytes", "replay_index")
NODE_KINDS: Final = ("kernel_node", "branch_node", "dependent_node", "memset_node", "copy_node")


def work_of(timeline: Timeline, gpu: int) -> Work:
    """Return the blocks, seams and graph nodes of a GPU."""
    gaps = on_gpu(timeline.gaps.with_row_index("gap_index"), gpu)
    spans = on_gpu(timeline.replays, gpu)
    replays = union(spans["start_ns"].to_numpy(), spans["end_ns"].to_numpy())
    outside = held_by(gaps["start_ns"].to_numpy(), replays.starts, replays.ends) < 0
    seams = gaps.filter(pl.Series(outside, dtype=pl.Boolean))
    device = next(one for one in timeline.devices if one.gpu == gpu)
    starts = np.concatenate(([device.start_ns], seams["end_ns"].to_numpy()))
    ends = np.concatenate((seams["start_ns"].to_numpy(), [device.end_ns]))
    idle = cover_of(gaps.select("start_ns", "end_ns").filter(pl.Series(~outside, dtype=pl.Boolean)))
    ending = timeline.operations["replay_index"].gather(seams["after_index"])
    return Work(
        starts=starts,
        ends=ends,
        idle_ns=covered_before(ends, idle) - covered_before(starts, idle),
        call_index=np.concatenate(([-1], seams["call_index"].fill_null(-1).to_numpy())).astype(np.int64),
        by_replay=np.concatenate(([False], ending.is_not_null().to_numpy())),
        seam_ns=_seam_classes(timeline, seams["gap_index"]),
        nodes=_nodes_of(timeline, gpu, starts),
    )


def _nodes_of(timeline: Timeline, gpu: int, starts: Ints) -> Ints:
    """Return how many nodes of each kind each block has."""
    nodes = graph_nodes(timeline, gpu)
    block = np.maximum(last_before(nodes["start_ns"].to_numpy(), starts), 0)
    both = block * len(NODE_KINDS) + nodes["node_kind"].to_numpy()
    return np.bincount(both, minlength=len(starts) * len(NODE_KINDS)).reshape(len(starts), -1)


def graph_nodes(timeline: Timeline, gpu: int) -> pl.DataFrame:
    """Return replay_index, start_ns and node_kind (position in `NODE_KINDS`) of the graph nodes of a GPU, by start."""
    operations = on_gpu(timeline.operations.select("gpu", *_TOLD_BY), gpu)
    nodes = operations.filter(pl.col("replay_index").is_not_null() & (pl.col("kind") != GRAPH))
    return nodes.select("replay_index", "start_ns", node_kind=_node_kinds(nodes))


def _seam_classes(timeline: Timeline, gap_index: pl.Series) -> Ints:
    """Return the length of every class in every seam; the first block has none before it."""
    lengths = np.zeros((len(gap_index) + 1, len(SEAM_CLASSES)), np.int64)
    pieces = timeline.pieces.join(
        pl.DataFrame({"gap_index": gap_index, "seam": np.arange(1, len(gap_index) + 1)}), on="gap_index"
    )
    for column, idle_class in enumerate(SEAM_CLASSES):
        chosen = pieces.filter(pl.col("idle_class") == int(idle_class))
        np.add.at(lengths[:, column], chosen["seam"].to_numpy(), (chosen["end_ns"] - chosen["start_ns"]).to_numpy())
    return lengths


def _node_kinds(nodes: pl.DataFrame) -> pl.Series:
    """Tell what kind of node each is: by its table, and by whether and where its predecessor still ran."""
    if nodes["replay_index"].is_sorted():
        return _kinds_by_replay(nodes)
    order = np.argsort(nodes["replay_index"].to_numpy(), kind="stable")
    kinds = np.empty(len(order), np.int8)
    kinds[order] = _kinds_by_replay(nodes[order]).to_numpy()
    return pl.Series(kinds)


def _kinds_by_replay(nodes: pl.DataFrame) -> pl.Series:
    """Tell the kinds of nodes that are sorted by replay."""
    first = (pl.col("replay_index") != pl.col("replay_index").shift(1)).fill_null(value=True)
    early = ~first & (pl.col("start_ns") < _reach_before(nodes))
    same_stream = first | (pl.col("stream") == pl.col("stream").shift(1))
    number = {name: pl.lit(position, pl.Int8) for position, name in enumerate(NODE_KINDS)}
    kind = (
        pl.when(pl.col("kind") == MEMCPY)
        .then(number["copy_node"])
        .when((pl.col("kind") == MEMSET) & (pl.col("bytes").fill_null(0) < _MEMSET_BY_KERNEL_BYTES))
        .then(number["memset_node"])
        .when(early & same_stream & (pl.col("kind") == KERNEL))
        .then(number["dependent_node"])
        .when(early)
        .then(number["branch_node"])
        .otherwise(number["kernel_node"])
    )
    return nodes.select(kind).to_series()


def _reach_before(nodes: pl.DataFrame) -> pl.Series:
    """Return the running maximum of end before each node of its replay; anything before the first.

    Each replay is laid beyond those before it, so that one running maximum serves them all.
    """
    ends = nodes["end_ns"].to_numpy()
    if not len(ends):
        return pl.Series(ends)
    beyond = nodes["replay_index"].rle_id().to_numpy().astype(np.int64) * (int(ends.max()) - int(ends.min()) + 1)
    reach = np.maximum.accumulate(ends + beyond)
    return pl.Series(np.append(reach[:1], reach[:-1]) - beyond)


def added_to(work: Work, costs: Costs) -> Added:
    """Return what the costs add to each block and seam; nothing is taken from where there isn't enough."""
    prices = np.array([getattr(costs, name).value for name in NODE_KINDS])
    total = work.nodes @ prices
    busy = (work.ends - work.starts) - work.idle_ns
    wanted_gaps = total * costs.gap_share.value
    gaps = np.minimum(wanted_gaps, work.idle_ns)
    inside_kernels = np.minimum(total - wanted_gaps, busy)
    seam = np.where(work.by_replay, costs.replay.value, costs.eager_operation.value)
    seam[:1] = 0.0
    return Added(gaps, inside_kernels, total - gaps - inside_kernels, seam)
