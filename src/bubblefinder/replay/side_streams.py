"""Streams whose work ran beside that of others: how much more of it may do so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.intervals import Cover, covered_before, union_of

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.intervals import Ints

MOST: Final = 0.5
"""A stream that others kept company for so much of its work is taken to need no GPU of its own for the rest: kernels
took the recorded time side by side. With less, both may have had the GPU in turns because there was no room."""


def alone_ns(blocks: pl.DataFrame, starts: Ints, ends: Ints) -> Ints:
    """Return for how long of each window a stream that mostly ran beside others was alone at work.

    The stream with most work is none of these: what it does takes its time.

    Args:
        blocks: the work of one process on one GPU: context, stream, start_ns and end_ns.
        starts: the windows' starts.
        ends: the windows' ends.
    """
    lanes = [union_of(mine) for mine in blocks.partition_by("context", "stream")]
    if len(lanes) < 2:  # noqa: PLR2004 - nothing beside it
        return np.zeros(len(starts), np.int64)
    begins, lengths, lane = _alone(lanes)
    total = np.array([cover.total_ns for cover in lanes])
    company = total - np.bincount(lane, weights=lengths, minlength=len(lanes))
    beside = company >= MOST * total
    beside[np.argmax(total)] = False
    chosen = beside[lane]
    cover = Cover(begins[chosen], (begins + lengths)[chosen])
    return covered_before(ends, cover) - covered_before(starts, cover)


def _alone(lanes: list[Cover]) -> tuple[Ints, Ints, Ints]:
    """Return the stretches in which one stream alone is at work: start, length, and which stream."""
    number = np.repeat(np.arange(len(lanes)), [len(cover) for cover in lanes])
    times = np.concatenate([cover.starts for cover in lanes] + [cover.ends for cover in lanes])
    change = np.concatenate((np.ones(len(number), np.int64), -np.ones(len(number), np.int64)))
    order = np.argsort(times, kind="stable")
    at_work = np.cumsum(change[order])[:-1]
    which = np.cumsum((change * np.concatenate((number, number)))[order])[:-1]
    lengths = np.diff(times[order])
    single = (at_work == 1) & (lengths > 0)
    return times[order][:-1][single], lengths[single], which[single]
