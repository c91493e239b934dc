"""In which of the program's own ranges a thread was while a GPU idled for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.places import general
from bubblefinder.units import share

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.timeline.model import Timeline

MOST: Final = 3
_MOMENTS: Final = 32
"""So finely each stretch of idle time is looked at: a part of 3 % shows."""
LEAST: Final = 0.1
"""Ranges that hold less of the idle are not worth a name."""


def idle_ranges(timeline: Timeline, thread: int, starts: Ints, ends: Ints) -> tuple[str, ...]:
    """Return the innermost ranges of a thread in which some idle time lies, most first: ``update halo (99 %)``.

    Told by moments spread evenly over each stretch, however many ranges there are. Names that differ in numbers only
    are one. Nothing where none of it lies in a range.
    """
    if timeline.ranges.rows.is_empty() or not len(starts):
        return ()
    lengths = ends - starts
    moments = (starts[:, None] + lengths[:, None] * (2 * np.arange(_MOMENTS) + 1) // (2 * _MOMENTS)).ravel()
    place = timeline.ranges.innermost(np.full(len(moments), thread), moments)
    texts = timeline.ranges.rows["text"].gather(pl.Series(place).replace(-1, None))
    pieces = pl.DataFrame({"text": texts, "ns": np.repeat(lengths / _MOMENTS, _MOMENTS)})
    whole = float(lengths.sum())
    named = pieces.drop_nulls("text").group_by(place=general(pl.col("text")))
    told = named.agg(pl.col("text").first(), pl.col("ns").sum()).filter(pl.col("ns") >= LEAST * whole)
    ordered = told.sort("ns", "place", descending=[True, False]).head(MOST)
    return tuple(f"{text} ({share(ns / whole, 0)})" for _, text, ns in ordered.rows())
