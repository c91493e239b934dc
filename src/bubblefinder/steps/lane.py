"""A lane: what one process did on one GPU, which is where a cadence is looked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.timeline.apis import CallRole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.intervals import Ints
    from bubblefinder.timeline.model import Timeline


@dataclass(frozen=True, slots=True)
class Lane:
    """The operations and replays of one process on one GPU, in time order.

    Attributes:
        gpu: physical GPU.
        process: process key.
        start_ns: first operation of the GPU (not of the lane): where the windows begin.
        end_ns: last end on the GPU.
        operations: rows of timeline.operations with their position as `op_index`.
        replays: rows of timeline.replays with their position as `replay_index`.
    """

    gpu: int
    process: int
    start_ns: int
    end_ns: int
    operations: pl.DataFrame
    replays: pl.DataFrame


def lanes(timeline: Timeline) -> Iterator[Lane]:
    """Yield every (GPU, process) with operations, lowest GPU first."""
    operations = timeline.operations.with_row_index("op_index")
    replays = timeline.replays.with_row_index("replay_index")
    for device in timeline.devices:
        for process in device.processes:
            mine = (pl.col("gpu") == device.gpu) & (pl.col("process") == process)
            yield Lane(device.gpu, process, device.start_ns, device.end_ns, operations.filter(mine), replays.filter(mine))


def eager_operations(lane: Lane) -> pl.DataFrame:
    """Return the lane's operations outside any replay."""
    return lane.operations.filter(pl.col("replay_index").is_null())


def host_work_before(timeline: Timeline, lane: Lane) -> Ints:
    """Return, before each replay, the host time since the previous replay's launch call ended, without waits.

    The waits are those of the launching thread; blocking copies count as waits. -1 where a launch
    call is unknown, and for the first replay.
    """
    calls = timeline.calls.select("start_ns", "end_ns", "thread")
    index = lane.replays["call_index"]
    launch = calls[index.fill_null(0)] if len(index) else calls.clear()
    known = index.is_not_null().to_numpy()
    begin, end, thread = (launch[name].to_numpy() for name in ("start_ns", "end_ns", "thread"))
    waited = _waited_before(timeline, thread)
    work = np.full(len(index), -1, np.int64)
    if len(index) > 1:
        host = begin[1:] - end[:-1]
        waits = waited(thread[1:], begin[1:]) - waited(thread[1:], end[:-1])
        work[1:] = np.where(known[1:] & known[:-1], np.maximum(host - waits, 0), -1)
    return work


def _waited_before(timeline: Timeline, threads: Ints):  # noqa: ANN202 - a closure over cumulated waits
    blocking = timeline.operations.filter(pl.col("blocking"))["call_index"].drop_nulls().unique()
    waits = timeline.calls.with_row_index("call_index").filter(
        (pl.col("role") == CallRole.WAIT) | pl.col("call_index").is_in(blocking.implode()),
    )
    by_thread = {
        int(thread): waits.filter(pl.col("thread") == thread).sort("end_ns") for thread in np.unique(threads)
    }

    def waited(of: Ints, until: Ints) -> Ints:
        total = np.zeros(len(of), np.int64)
        for thread, rows in by_thread.items():
            summed = np.concatenate(([0], np.cumsum((rows["end_ns"] - rows["start_ns"]).to_numpy())))
            mine = of == thread
            total[mine] = summed[np.searchsorted(rows["end_ns"].to_numpy(), until[mine], side="right")]
        return total

    return waited
