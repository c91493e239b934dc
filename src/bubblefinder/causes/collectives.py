"""Collectives across ranks: which operations are one collective, and who came late to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.trace.model import KERNEL

if TYPE_CHECKING:
    from bubblefinder.timeline.model import Timeline

_NAMES: Final = re.compile(
    r"nccl(Dev)?Kernel|ncclSym|cross_device_reduce|all_?reduce|one_?shot|two_?shot|all_?gather|reduce_?scatter"
    r"|multimem|nvshmem|mscclpp",
    re.IGNORECASE,
)


def find_collectives(timeline: Timeline) -> pl.DataFrame:
    """Return the collectives that can be followed across GPUs, one row an operation.

    Operations of two ranks are one collective if each overlaps the other most: neither can end
    before both have begun, and the next begins only after.

    Returns:
        collective (number), op_index, gpu, process, start_ns, end_ns, name, replay_index. Only
        collectives seen on every GPU that has any, in order of time; empty with one GPU.
    """
    names = [name for name, text in timeline.trace.names.items() if _NAMES.search(text)]
    kernels = (
        timeline.operations.lazy()
        .select("kind", "gpu", "process", "start_ns", "end_ns", "name", "replay_index")
        .with_row_index("op_index")
        .filter((pl.col("kind") == KERNEL) & pl.col("name").is_in(names))
        .drop("kind")
        .collect()
    )
    ranks = kernels.sort("gpu", "start_ns").partition_by("gpu", maintain_order=True)
    if len(ranks) < 2:  # noqa: PLR2004 - a collective joins at least two ranks
        return kernels.clear().with_columns(collective=pl.lit(0, dtype=pl.Int64))
    first = ranks[0].with_columns(collective=pl.int_range(pl.len(), dtype=pl.Int64))
    rest = [rank.with_columns(collective=_partners(rank, first)) for rank in ranks[1:]]
    joined = pl.concat([first, *rest]).drop_nulls("collective")
    complete = pl.col("gpu").n_unique().over("collective") == len(ranks)
    return joined.filter(complete).sort("collective", "gpu")


def _partners(rank: pl.DataFrame, first: pl.DataFrame) -> pl.Series:
    """Return for each operation of a rank the operation of the first that it overlaps most, if that is mutual."""
    there, back = _most_overlapping(rank, first), _most_overlapping(first, rank)
    mutual = (there >= 0) & (back[there] == np.arange(len(there)))
    return (
        pl.Series(np.where(mutual, there, -1))
        .to_frame("partner")
        .select(pl.when(pl.col("partner") >= 0).then("partner"))
        .to_series()
    )


def _most_overlapping(these: pl.DataFrame, those: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the position in `those` of the operation that each of `these` overlaps most, -1 where none does."""
    starts, ends = these["start_ns"].to_numpy(), these["end_ns"].to_numpy()
    their_starts, their_ends = those["start_ns"].to_numpy(), those["end_ns"].to_numpy()
    best, chosen = np.zeros(len(starts), np.int64), np.full(len(starts), -1)
    around = np.searchsorted(their_starts, ends, side="left") - 1
    for back in range(3):
        candidate = np.clip(around - back, 0, len(their_starts) - 1)
        shared = np.minimum(ends, their_ends[candidate]) - np.maximum(starts, their_starts[candidate])
        better = (shared > best) & (around - back >= 0)
        best, chosen = np.where(better, shared, best), np.where(better, candidate, chosen)
    return chosen
