"""What one rank did on its GPU, which is where a cadence is looked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import distinct
from bubblefinder.lookup import kept, on_gpu, taken, where
from bubblefinder.steps import thresholds
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.launches import blocked_calls
from bubblefinder.timeline.rank import Rank

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.intervals import Ints
    from bubblefinder.timeline.model import Timeline


_FOUND_BY: Final = (
    "kind", "start_ns", "end_ns", "name", "bytes", "copy_kind", "call_index", "replay_index", "graph_node", "blocking",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Waits:
    """The waits of a timeline's threads, blocking copies among them."""

    timeline: Timeline

    @cached_property
    def _in_order(self) -> pl.DataFrame:
        """When each ended, in order, and how long it took, by thread."""
        calls = self.timeline.calls
        waits = kept(
            calls[["thread", "start_ns", "end_ns"]],
            (calls["role"].to_numpy() == CallRole.WAIT) | blocked_calls(self.timeline),
        )
        return waits.hstack([(waits["end_ns"] - waits["start_ns"]).rename("length")]).sort("end_ns")

    def until(self, threads: Ints, times: Ints) -> Ints:
        """Return how long each thread has spent in waits that ended by then."""
        total = np.zeros(len(threads), np.int64)
        for thread in distinct(threads).tolist():
            rows = kept(self._in_order, self._in_order["thread"] == thread)
            summed = np.concatenate(([0], np.cumsum(rows["length"].to_numpy())))
            mine = threads == thread
            total[mine] = summed[np.searchsorted(rows["end_ns"].to_numpy(), times[mine], side="right")]
        return total


@dataclass(frozen=True, eq=False)
class RankWork:
    """The operations and replays of one process on one GPU, in time order.

    Attributes:
        gpu: physical GPU.
        process: process key.
        start_ns: first operation of the GPU (not of the lane): where the windows begin.
        end_ns: last end on the GPU.
        operations: the columns of timeline.operations that steps are found by, with their position as `op_index`.
        replays: rows of timeline.replays with their position as `replay_index`.
        waits: of all threads of the capture.
    """

    gpu: int
    process: int
    start_ns: int
    end_ns: int
    operations: pl.DataFrame
    replays: pl.DataFrame
    waits: Waits

    @property
    def rank(self) -> Rank:
        """The process and the GPU."""
        return Rank(self.gpu, self.process)

    @cached_property
    def passes(self) -> pl.DataFrame:
        """replay_index, start_ns and end_ns of every pass of graphs that run all their nodes several times a launch.

        So does a graph with a WHILE node; one launch of it is several steps.
        """
        one_each = self.replays.pipe(where, pl.col("nodes").is_not_null()).unique(
            "graph", keep="first", maintain_order=True
        )
        nodes = self.operations[["replay_index", "graph_node", "start_ns", "end_ns"]]
        sampled = nodes.pipe(where, pl.col("replay_index").is_in(one_each["replay_index"].implode()))
        counted = sampled.group_by("replay_index").agg(pl.len(), different=pl.col("graph_node").n_unique())
        several = counted.pipe(where, counted["len"] >= thresholds.PASSES * counted["different"])["replay_index"]
        if several.is_empty():
            return nodes.clear().drop("graph_node")
        graphs = one_each.filter(pl.col("replay_index").is_in(several.implode()))["graph"]
        chosen = self.replays.filter(pl.col("graph").is_in(graphs.implode()))["replay_index"]
        mine = nodes.filter(pl.col("replay_index").is_in(chosen.implode()))
        begins = pl.col("graph_node") == pl.col("graph_node").first().over("replay_index")
        return (
            mine.with_columns(number=begins.cum_sum().over("replay_index"))
            .group_by("replay_index", "number", maintain_order=True)
            .agg(pl.col("start_ns").min(), pl.col("end_ns").max())
            .drop("number")
        )


def lanes(timeline: Timeline) -> Iterator[RankWork]:
    """Yield every (GPU, process) with operations, lowest GPU first."""
    operations = timeline.operations[["gpu", "process", *_FOUND_BY]].with_row_index("op_index")
    replays, waits = timeline.replays.with_row_index("replay_index"), Waits(timeline)
    for device in timeline.devices:
        for process in device.processes:
            work, graphs = (on_gpu(rows, device.gpu) for rows in (operations, replays))
            if len(device.processes) > 1:
                work, graphs = (kept(rows, rows["process"] == process) for rows in (work, graphs))
            yield RankWork(device.gpu, process, device.start_ns, device.end_ns, work, graphs, waits)


def eager_operations(lane: RankWork, chosen: pl.Expr) -> pl.DataFrame:
    """Return those of the lane's operations outside any replay for which something else holds."""
    return lane.operations.pipe(where, pl.col("replay_index").is_null() & chosen)


def host_work_before(timeline: Timeline, lane: RankWork) -> Ints:
    """Return, before each replay, the host time since the previous replay's launch call ended, without waits.

    The waits are those of the launching thread; blocking copies count as waits. -1 where a launch
    call is unknown, and for the first replay.
    """
    work = np.full(len(lane.replays), -1, np.int64)
    launches = taken(timeline.calls[["start_ns", "end_ns", "thread"]], lane.replays["call_index"])
    known = launches["thread"].is_not_null().to_numpy()
    if not known.all():
        launches = launches.fill_null(0)
    begin, end, thread = (launches[name].to_numpy() for name in ("start_ns", "end_ns", "thread"))
    if len(work) > 1:
        waited = lane.waits.until(thread[1:], begin[1:]) - lane.waits.until(thread[1:], end[:-1])
        work[1:] = np.where(known[1:] & known[:-1], np.maximum(begin[1:] - end[:-1] - waited, 0), -1)
    return work
