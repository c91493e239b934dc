"""In which of the program's own ranges a thread was while a GPU idled for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.places import by_name
from bubblefinder.lookup import NOWHERE
from bubblefinder.units import share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.intervals import Ints
    from bubblefinder.timeline.model import Timeline

    Floats = NDArray[np.float64]

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
    held, ns = _ranges_at_moments(timeline, thread, starts, lengths)
    whole = float(lengths.sum())
    told = by_name(timeline.ranges.rows["text"][held], pl.Series(ns))[:MOST]
    return tuple(f"{text} ({share(spent / whole, 0)})" for text, spent in told if spent >= LEAST * whole)


def _ranges_at_moments(timeline: Timeline, thread: int, starts: Ints, lengths: Ints) -> tuple[Ints, Floats]:
    """Return the ranges in the order of the moments, and for how much idle time each one's moments stand.

    One moment stands for all of a stretch during which no range opens or closes.
    """
    parts = 2 * np.arange(_MOMENTS) + 1
    first, last = starts + lengths // (2 * _MOMENTS), starts + lengths * parts[-1] // (2 * _MOMENTS)
    still = timeline.ranges.steady(thread, first, last)
    each = np.where(still, 1, _MOMENTS)
    times = np.repeat(first, each)
    moving = ~still
    times[np.repeat(moving, each)] = (starts[moving, None] + lengths[moving, None] * parts // (2 * _MOMENTS)).ravel()
    inside = timeline.ranges.innermost(np.full(len(times), thread), times)
    open_then = inside != NOWHERE
    held, first, place = np.unique(inside[open_then], return_index=True, return_inverse=True)
    order = np.argsort(first)
    ns: Floats = np.bincount(place, np.repeat(lengths / each, each)[open_then], minlength=len(held)).astype(np.float64)
    return held[order], ns[order]
