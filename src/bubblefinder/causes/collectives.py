"""Collectives across ranks: which operations are one collective, and who came late to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.collective_names import is_collective
from bubblefinder.intervals import begin_and_end
from bubblefinder.lookup import NOWHERE, nullable, where
from bubblefinder.trace.model import KERNEL

if TYPE_CHECKING:
    from bubblefinder.timeline.model import Timeline

_ENOUGH: Final = 3
_CLOSER: Final = 0.25
"""Ranks that meet inside a replay leave it so much closer together than they enter it, or closer."""


def find_collectives(timeline: Timeline) -> pl.DataFrame:
    """Return the collectives that can be followed across GPUs, one row an operation.

    Operations of two ranks are one collective if each overlaps the other most: neither can end
    before both have begun, and the next begins only after.

    Returns:
        collective (number), op_index, gpu, process, start_ns, end_ns, name, replay_index. Only
        collectives seen on every GPU that has any, in order of time; empty with one GPU.
    """
    names = [name for name, text in timeline.trace.names.items() if is_collective(text)]
    kernels = (
        timeline.operations.lazy()
        .select("kind", "gpu", "process", "start_ns", "end_ns", "name", "replay_index")
        .with_row_index("op_index")
        .filter((pl.col("kind") == KERNEL) & pl.col("name").is_in(names))
        .drop("kind")
        .collect()
    )
    return _paired(kernels)


def find_joint_replays(timeline: Timeline, roles: pl.Series) -> pl.DataFrame:
    """Return the replays recorded as one block that ranks leave together though they enter apart, as if collectives.

    A role counts if its ends lie far closer to each other than its starts: then the ranks wait for each
    other inside, where a capture in graph mode doesn't look.

    Args:
        timeline: the timeline.
        roles: the role of every replay.
    """
    blocks = timeline.replays[["gpu", "process", "start_ns", "end_ns", "nodes"]].with_row_index("replay_index")
    blocks = blocks.with_columns(role=roles).pipe(where, pl.col("nodes").is_null() & pl.col("role").is_not_null())
    found = [_paired(same.drop("nodes")) for same in blocks.partition_by("role", maintain_order=True)]
    joint = [pairs for pairs in found if _leave_together(pairs)]
    return (
        pl.concat([part.with_columns(pl.col("collective") + n * len(blocks)) for n, part in enumerate(joint)])
        if joint
        else _paired(blocks.clear())
    )


def _leave_together(pairs: pl.DataFrame) -> bool:
    apart = pl.col("start_ns", "end_ns")
    spread = pairs.group_by("collective").agg(apart.max() - apart.min())
    enter, leave = (int(spread[side].to_numpy().sum()) for side in ("start_ns", "end_ns"))
    return len(spread) >= _ENOUGH and leave < _CLOSER * enter


def _paired(events: pl.DataFrame) -> pl.DataFrame:
    """Number the events that overlap each other most on every GPU that has any, in order of time."""
    if events["gpu"].n_unique() < 2:  # noqa: PLR2004 - it takes at least two ranks to meet
        return events.clear().with_columns(collective=pl.lit(0, dtype=pl.Int64))
    ranks = events.sort("gpu", "start_ns").partition_by("gpu", maintain_order=True)
    first = ranks[0].with_columns(collective=pl.int_range(pl.len(), dtype=pl.Int64))
    rest = [rank.with_columns(collective=_partners(rank, first)) for rank in ranks[1:]]
    joined = pl.concat([first, *rest]).drop_nulls("collective")
    complete = pl.col("gpu").n_unique().over("collective") == len(ranks)
    return joined.pipe(where, complete).sort("collective", "gpu")


def _partners(rank: pl.DataFrame, first: pl.DataFrame) -> pl.Series:
    """Return for each operation of a rank the operation of the first that it overlaps most, if that is mutual."""
    there, back = _most_overlapping(rank, first), _most_overlapping(first, rank)
    mutual = (there != NOWHERE) & (back[there] == np.arange(len(there)))
    return nullable(np.where(mutual, there, NOWHERE)).cast(pl.Int64)


def _most_overlapping(these: pl.DataFrame, those: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the position in `those` of the operation that each of `these` overlaps most, NOWHERE where none does."""
    starts, ends = begin_and_end(these)
    their_starts, their_ends = begin_and_end(those)
    best, chosen = np.zeros(len(starts), np.int64), np.full(len(starts), NOWHERE)
    around = np.searchsorted(their_starts, ends, side="left") - 1
    for back in range(3):
        candidate = np.clip(around - back, 0, len(their_starts) - 1)
        shared = np.minimum(ends, their_ends[candidate]) - np.maximum(starts, their_starts[candidate])
        better = (shared > best) & (around - back >= 0)
        best, chosen = np.where(better, shared, best), np.where(better, candidate, chosen)
    return chosen
