"""The ledger: busy and every idle class, for a device or for any windows that tile it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bubblefinder.intervals import Cover, Ints, covered_before
from bubblefinder.timeline.model import IdleClass

if TYPE_CHECKING:
    from bubblefinder.timeline.model import Timeline

COLUMNS = tuple(f"{idle_class.name.lower()}_ns" for idle_class in IdleClass)


def window_ledger(timeline: Timeline, gpu: int, starts: Ints, ends: Ints) -> pl.DataFrame:
    """Return busy_ns and one column an idle class for each window [starts[i], ends[i]) of a GPU.

    Busy and idle tile the GPU's span, so each row sums to the part of its window inside the span.
    """
    columns = {"busy_ns": _inside(cover_of(timeline.busy.filter(pl.col("gpu") == gpu)), starts, ends)}
    pieces = timeline.pieces.filter(pl.col("gpu") == gpu)
    for idle_class, name in zip(IdleClass, COLUMNS, strict=True):
        cover = cover_of(pieces.filter(pl.col("idle_class") == int(idle_class)))
        columns[name] = _inside(cover, starts, ends)
    return pl.DataFrame(columns)


def cover_of(rows: pl.DataFrame) -> Cover:
    """Return rows of disjoint, sorted intervals as a cover."""
    return Cover(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())


def _inside(cover: Cover, starts: Ints, ends: Ints) -> Ints:
    return covered_before(ends, cover) - covered_before(starts, cover)
