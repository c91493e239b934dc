"""Waits that outlast all GPU work on record: the sign of work that left none.

Of a graph with a WHILE node some drivers record the first pass only; graphs launched by the GPU itself, kernels
launched by kernels and memory that the driver moves leave nothing. A wait that returns long after the last operation
has ended was waiting for such work, so the GPU is not known to have been idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import Cover, begin_and_end, empty, union, union_of
from bubblefinder.lookup import column_of, kept, where
from bubblefinder.timeline.apis import CallRole

if TYPE_CHECKING:
    from collections.abc import Sequence

BEYOND_NS: Final = 1_000_000
"""A wait that outlasts all recorded work by so much was waiting for something else.

A thread that sleeps in a wait is woken late: by 0.05 to 0.75 ms, 0.21 in the middle, in `vllm/sync.graph`, whose every
operation is on record, and by less than 0.1 ms on most machines.
"""


def outlived(operations: pl.DataFrame, calls: pl.DataFrame, processes: Sequence[int]) -> Cover:
    """Return when a thread of some processes still waited for the GPU though all recorded work of the process was over.

    Args:
        operations: of all GPUs.
        calls: with api and role.
        processes: those that use the GPU in question.
    """
    waits = calls.pipe(
        where,
        (pl.col("role") == CallRole.WAIT)
        & (pl.col("return_value").fill_null(0) == 0)
        & pl.col("process").is_in(processes),
    )[["process", "thread", "api", "start_ns", "end_ns"]]
    if waits.is_empty():
        return empty()
    parts = [_beyond(operations, mine, int(process)) for (process,), mine in waits.group_by("process")]
    late = pl.concat(parts)
    length = pl.col("end_ns") - pl.col("over_ns")
    found = late.pipe(where, length >= BEYOND_NS)
    return union(found["over_ns"].to_numpy(), found["end_ns"].to_numpy())


def _beyond(operations: pl.DataFrame, waits: pl.DataFrame, process: int) -> pl.DataFrame:
    """Return the waits that ended while nothing of the process ran, with `over_ns`: since when that was so for them."""
    times = operations[["start_ns", "end_ns"]]
    busy = union_of(kept(times, column_of(operations, "process") == process))
    starts, ends = begin_and_end(waits)
    position = np.searchsorted(busy.starts, ends, side="left") - 1
    known = position >= 0
    over = np.where(known, busy.ends[np.maximum(position, 0)] if len(busy) else ends, ends)
    return waits.with_columns(over_ns=np.maximum(over, starts)).pipe(where, pl.Series(known & (over < ends)))
