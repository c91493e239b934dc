"""Arithmetic on half-open intervals of integer nanoseconds, as pairs of numpy int64 arrays.

No I/O and no loop over rows. A *cover* is a set of disjoint, non-empty intervals sorted by start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

NEVER: Final = np.iinfo(np.int64).max
"""Later than any time."""
LONG_AGO: Final = np.iinfo(np.int64).min
"""Earlier than any time."""
_FEW_CUTS: Final = 4
"""With so many intervals for each cut, the cuts are looked up in the intervals instead of the reverse."""
_FAR: Final = 1 << 61
"""Times of several groups put behind each other reach no further, so that no sum of two of them overflows."""
_TICKED_OFF: Final = 32
"""A list of so many times as many ticks as there are values is still quicker than sorting them."""
_DIGIT_BITS: Final = 16
_DIGIT: Final = (1 << _DIGIT_BITS) - 1


@dataclass(frozen=True, slots=True)
class Cover:
    """Disjoint, non-empty intervals [starts[i], ends[i]), sorted."""

    starts: Ints
    ends: Ints

    def __len__(self) -> int:
        """Return the number of intervals."""
        return len(self.starts)

    @property
    def total_ns(self) -> int:
        """Length of the union."""
        return int((self.ends - self.starts).sum())


def begin_and_end(rows: pl.DataFrame) -> tuple[Ints, Ints]:
    """Return when each row of a frame with start_ns and end_ns begins and ends."""
    return rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()


def empty() -> Cover:
    """Return a cover of nothing."""
    return Cover(np.empty(0, np.int64), np.empty(0, np.int64))


def union(starts: Ints, ends: Ints) -> Cover:
    """Return the union of any intervals; empty and inverted ones are ignored, touching ones merge."""
    keep = ends > starts
    if not keep.all():
        starts, ends = starts[keep], ends[keep]
    if not len(starts):
        return empty()
    if (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts)
        starts, ends = starts[order], ends[order]
    reach = np.maximum.accumulate(ends)
    first = np.concatenate(([True], starts[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return Cover(starts[first], reach[last])


def either(one: Cover, other: Cover) -> Cover:
    """Return when one cover lasts or the other."""
    return union(np.concatenate([one.starts, other.starts]), np.concatenate([one.ends, other.ends]))


def union_of(rows: pl.DataFrame) -> Cover:
    """Return when any row of a frame with start_ns and end_ns lasts."""
    return union(*begin_and_end(rows))


def distinct(values: Ints) -> Ints:
    """Return the values that occur, in order: what `np.unique` does, whose table is many times slower for millions."""
    if (values[1:] < values[:-1]).any():
        values = np.sort(values, kind="stable")  # quick on lists that are sorted each, put together
    new = np.ones(len(values), np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return values[new]


def different(values: Ints, below: int) -> Ints:
    """Return the values that occur, in order, of values in [0, below); ticked off where that list is short."""
    if below > _TICKED_OFF * (len(values) + 1):
        return distinct(values)
    seen = np.zeros(below, np.bool_)
    seen[values] = True
    return np.flatnonzero(seen)


def tallied(values: Ints, below: int) -> tuple[Ints, Ints]:
    """Return the values that occur, in order, and how often each does, of values in [0, below)."""
    if below > _TICKED_OFF * (len(values) + 1):
        return np.unique(values, return_counts=True)
    counts = np.bincount(values, minlength=below)
    found = np.flatnonzero(counts)
    return found, counts[found]


def tallied_in(windows: Ints, symbols: Ints) -> tuple[Ints, Ints, Ints]:
    """Return what occurs in which window: window, symbol, and how often, window by window."""
    kinds = int(symbols.max(initial=0)) + 1
    keys, counts = tallied(windows * kinds + symbols, (int(windows.max(initial=-1)) + 1) * kinds)
    return keys // kinds, keys % kinds, counts


def totals_in(windows: Ints, symbols: Ints, values: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the sum of the values of what occurs in which window: window, symbol and sum, window by window.

    Sums that no float holds exactly, of 2**53 and more, are off in their last bits.
    """
    kinds = int(symbols.max(initial=0)) + 1
    keys, below = windows * kinds + symbols, (int(windows.max(initial=-1)) + 1) * kinds
    found, _ = tallied(keys, below)
    if below > _TICKED_OFF * (len(keys) + 1):
        totals = np.bincount(np.searchsorted(found, keys), values, len(found))
    else:
        totals = np.bincount(keys, values, below)[found]
    return found // kinds, found % kinds, totals.astype(np.int64)


def places_of(symbols: Ints) -> list[Ints]:
    """Return the positions of each symbol, in order.

    Sorted by two bytes at a time: numpy sorts such small numbers by their digits, many times quicker than large ones.
    """
    order: Ints = np.argsort((symbols & _DIGIT).astype(np.uint16), kind="stable")
    rest = symbols >> _DIGIT_BITS
    small = symbols if rest.any() else symbols.astype(np.uint16)  # gathered several times as quickly
    while rest.any():
        order = order[np.argsort((rest & _DIGIT).astype(np.uint16)[order], kind="stable")]
        rest >>= _DIGIT_BITS
    inorder = small[order]
    return np.split(order, np.flatnonzero(inorder[1:] != inorder[:-1]) + 1)


def classes_of(known: Ints, values: Ints, ratio: float) -> Ints:
    """Return the class of each value: one ends where the next of those known is larger by more than a ratio."""
    inorder = np.sort(known)
    upper = inorder[1:][inorder[1:] > ratio * inorder[:-1]]
    return np.searchsorted(upper, values, side="right").astype(np.int64)


def outermost(groups: Ints, starts: Ints, ends: Ints) -> Bools:
    """Tell which intervals begin when all before them in their group have ended; those of a group are in order."""
    order = np.argsort(groups, kind="stable")
    group, begin = groups[order], starts[order]
    if not len(order):
        return np.zeros(0, np.bool_)
    low, high = int(begin.min()), int(begin.max()) + 1
    number = np.cumsum(np.append(False, group[1:] != group[:-1]))
    if (int(number[-1]) + 1) * (high - low + 1) >= _FAR:
        times = np.unique(begin)
        return outermost(groups, np.searchsorted(times, starts), np.searchsorted(times, ends))
    apart = number * (high - low + 1)
    reach = np.maximum.accumulate(np.clip(ends[order], low, high) + apart)
    outer = np.ones(len(order), np.bool_)
    outer[order[1:]] = (begin + apart)[1:] >= reach[:-1]
    return outer


def median(values: NDArray[np.int64] | NDArray[np.float64]) -> float:
    """Return the median of some values: np.median, which takes four times as long to begin with."""
    middle = (len(values) - 1) // 2, len(values) // 2
    low, high = np.partition(values, middle)[list(middle)].tolist()
    return float((low + high) / 2)


def percentile(values: NDArray[np.int64] | NDArray[np.float64], q: float) -> float:
    """Return numpy's linear percentile of some values: np.percentile, which takes ten times as long to begin with."""
    place = (len(values) - 1) * (q / 100)
    below, part = int(place), place - int(place)
    ordered = np.sort(values)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(values) - 1)])
    return low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part)  # noqa: PLR2004 - as numpy does


def lower_quantile(values: Ints, q: float) -> int:
    """Return numpy's lower quantile of some values, 0 <= q <= 1: np.quantile, which takes ten times as long."""
    place = int((len(values) - 1) * q)
    return int(np.partition(values, place)[place])


def one_of(values: NDArray[np.integer], few: Sequence[int]) -> Bools:
    """Tell which values are one of a few: np.isin, which sorts both."""
    found: Bools = np.logical_or.reduce([values == one for one in few])
    return found


def inside(points: Ints, cover: Cover) -> Bools:
    """Return which points lie in [start, end) of some interval of the cover."""
    if not len(cover):
        return np.zeros(len(points), np.bool_)
    position = last_before(points, cover.starts)
    return (position >= 0) & (points < cover.ends[position])


def split(starts: Ints, ends: Ints, cuts: Ints) -> tuple[Ints, Ints, Ints]:
    """Cut intervals at every point of `cuts` that lies strictly inside them.

    Returns:
        starts and ends of the pieces, in the order of the intervals, and the position of the
        interval each piece came from. Empty intervals vanish.
    """
    keep = np.flatnonzero(ends > starts)
    if len(keep) < len(starts):
        starts, ends = starts[keep], ends[keep]
    cuts = distinct(cuts)
    if _FEW_CUTS * len(cuts) < len(starts) and (starts[1:] >= ends[:-1]).all():
        return _split_here_and_there(starts, ends, keep, cuts)
    low = np.searchsorted(cuts, starts, side="right")
    inner = np.maximum(np.searchsorted(cuts, ends, side="left") - low, 0)
    parent = np.repeat(np.arange(len(starts)), inner + 1)
    rank = np.arange(len(parent)) - (np.cumsum(inner + 1) - (inner + 1))[parent]
    padded = np.append(cuts, 0)
    lower = np.where(rank == 0, starts[parent], padded[low[parent] + rank - 1])
    upper = np.where(rank == inner[parent], ends[parent], padded[low[parent] + rank])
    return lower, upper, keep[parent]


def _split_here_and_there(starts: Ints, ends: Ints, numbers: Ints, cuts: Ints) -> tuple[Ints, Ints, Ints]:
    """Cut intervals that lie one behind the other at a few points."""
    owner = np.searchsorted(starts, cuts) - 1
    inner = (owner >= 0) & (cuts < ends[owner])
    owner, cuts = owner[inner], cuts[inner]
    if not len(cuts):
        return starts, ends, numbers
    return (
        np.insert(starts, owner + 1, cuts),
        np.insert(ends, owner, cuts),
        np.insert(numbers, owner + 1, numbers[owner]),
    )


def within(starts: Ints, ends: Ints, lows: Ints, highs: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the parts of intervals that lie in windows: the interval's position, the part's length, and the window.

    Neither intervals nor windows [lows[i], highs[i]) overlap each other, and both are sorted. Parts without length, of
    empty intervals, stay.
    """
    first, last = np.searchsorted(ends, lows, side="right"), np.searchsorted(starts, highs, side="left")
    position, window = every_position(first, last)
    lengths = np.minimum(ends[position], highs[window]) - np.maximum(starts[position], lows[window])
    return position, lengths, window


def last_before(points: Ints, starts: Ints) -> Ints:
    """Return for each point the position of the last of sorted starts at or before it, -1 if none.

    Of more points than starts, if they are sorted, only those are looked up behind which the answer changes.
    """
    if len(points) <= len(starts) or (points[1:] < points[:-1]).any():
        return np.searchsorted(starts, points, side="right") - 1
    edges = np.concatenate(([0], np.searchsorted(points, starts), [len(points)]))
    return np.repeat(np.arange(-1, len(starts)), np.diff(edges))


def held_by(points: Ints, starts: Ints, ends: Ints) -> Ints:
    """Return for each point the position of the last interval begun by then, -1 if that has ended.

    The intervals are sorted by start.
    """
    position = last_before(points, starts)
    position[points >= np.append(ends, LONG_AGO)[position]] = -1
    return position


def every_position(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """Return all positions of the ranges [low[i], high[i]), and the i that each belongs to."""
    lengths = np.maximum(high - low, 0)
    group = np.repeat(np.arange(len(low)), lengths)
    return np.arange(len(group)) - np.repeat(np.cumsum(lengths) - lengths - low, lengths), group


def overlap_with(starts: Ints, ends: Ints, cover: Cover) -> Ints:
    """Return how much of each interval the cover covers."""
    return covered_before(ends, cover) - covered_before(np.minimum(starts, ends), cover)


def covered_before(points: Ints, cover: Cover) -> Ints:
    """Return how much of the cover lies before each point."""
    if not len(cover):
        return np.zeros(len(points), np.int64)
    lengths = np.zeros(len(cover) + 1, np.int64)
    np.subtract(cover.ends, cover.starts, out=lengths[1:])
    np.cumsum(lengths, out=lengths)
    position = last_before(points, cover.starts)
    last = np.maximum(position, 0)
    partial = np.clip(points - cover.starts[last], 0, cover.ends[last] - cover.starts[last])
    return np.where(position < 0, 0, lengths[last] + partial)
