"""Gaps of one GPU and the class of every nanosecond in them. Pure numpy; see design section 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.intervals import LONG_AGO, NEVER, Bools, Cover, Ints, every_position, inside, split
from bubblefinder.lookup import changes
from bubblefinder.timeline.model import IdleClass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    CallTimes = Callable[[Ints], Ints]
    """From positions of operations to a time of their launch calls, NEVER where it is unknown."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """Maximal idle intervals of one GPU and the operations around them (positions in its arrays)."""

    starts: Ints
    ends: Ints
    before: Ints
    after: Ints


@dataclass(frozen=True, slots=True)
class Pieces:
    """Idle time cut by class: which gap, from when to when, and why."""

    gap: NDArray[np.integer]
    starts: Ints
    ends: Ints
    idle_class: NDArray[np.integer]


def running_end(ends: Ints) -> Ints:
    """Return the running maximum of end before each operation; LONG_AGO for the first."""
    before = np.empty(len(ends), np.int64)
    before[:1] = LONG_AGO
    before[1:] = np.maximum.accumulate(ends)[:-1]
    return before


def find_gaps(starts: Ints, ends: Ints, began: CallTimes) -> Gaps:
    """Return the gaps between operations sorted by (start, end).

    Args:
        starts: operation starts; operations of no length neither fill nor end a gap.
        ends: operation ends.
        began: start of their launch calls. It decides which of several operations that end or begin a
            gap together is named.
    """
    lasting = ends > starts
    if not lasting.all():
        real = np.flatnonzero(lasting)
        found = find_gaps(starts[real], ends[real], lambda positions: began(real[positions]))
        return Gaps(found.starts, found.ends, real[found.before], real[found.after])
    reach = np.maximum.accumulate(ends) if len(ends) else ends
    idle = starts[1:] > reach[:-1]
    before = np.flatnonzero(idle)
    after = before + 1
    opened, closed = reach[before], starts[after]
    reached = np.searchsorted(before, np.flatnonzero(idle[1:] & (reach[1:-1] == reach[:-2])) + 1)
    candidate, group = every_position(np.searchsorted(reach, opened[reached]), after[reached])
    furthest = ends[candidate] == opened[reached][group]
    before[reached] = _first_launched(group[furthest], candidate[furthest], began)
    tied = np.searchsorted(after, np.flatnonzero(idle[:-1] & (starts[2:] == starts[1:-1])) + 1)
    candidate, group = every_position(after[tied], np.searchsorted(starts, closed[tied], side="right"))
    after[tied] = _first_launched(group, candidate, began)
    return Gaps(opened, closed, before, after)


def busy_and_gaps(starts: Ints, ends: Ints, began: CallTimes) -> tuple[Cover, Gaps]:
    """Return when any of the operations ran, and the gaps between, which share the memory of their times.

    Args:
        starts: as for `find_gaps`; at least one operation takes time.
        ends: as for `find_gaps`.
        began: as for `find_gaps`.
    """
    found, lasting = find_gaps(starts, ends, began), ends > starts
    first, last = starts[np.argmax(lasting)], ends.max(where=lasting, initial=LONG_AGO)
    busy = Cover(np.append(first, found.ends), np.append(found.starts, last))
    return busy, Gaps(busy.ends[:-1], busy.starts[1:], found.before, found.after)


def _first_launched(group: Ints, candidate: Ints, began: CallTimes) -> Ints:
    """Return for each group the candidate that was launched first."""
    order = np.lexsort((candidate, began(candidate), group))
    _, earliest = np.unique(group[order], return_index=True)
    chosen: Ints = candidate[order][earliest]
    return chosen


@dataclass(frozen=True, slots=True)
class Side:
    """The launch calls of the operations on one side of the gaps: when each began (NEVER if unknown), and where."""

    began: Ints
    threads: Ints


def tainted(gaps: Gaps, before: Side, after: Side, lost_starts: Ints, lost_threads: Ints) -> Cover:
    """Return the part of each gap in which a launch without record may have kept the GPU busy.

    A lost launch taints the gap whose preceding operation was launched before it and whose ending
    operation was launched after it by the same thread, from its own beginning on.

    Args:
        gaps: the gaps of one GPU.
        before: launch calls of the operations before the gaps.
        after: launch calls of the operations that end them.
        lost_starts: starts of the launch calls without record.
        lost_threads: their threads.
    """
    begin = np.full(len(gaps.starts), NEVER)
    for thread in np.unique(lost_threads):
        lost = np.sort(lost_starts[lost_threads == thread])
        known = (before.began < NEVER) & (after.began < NEVER) & (before.threads == thread) & (after.threads == thread)
        low = np.searchsorted(lost, before.began, side="right")
        high = np.searchsorted(lost, after.began, side="left")
        hit = known & (high > low)
        begin[hit] = np.minimum(begin[hit], lost[low[hit]])
    starts = np.maximum(gaps.starts, begin)
    keep = starts < gaps.ends
    return Cover(starts[keep], gaps.ends[keep])


def classify(gaps: Gaps, began: CallTimes, ended: CallTimes, *, profiler: Cover, replays: Cover, lost: Cover) -> Pieces:
    """Cut every gap into pieces of one class each.

    Args:
        gaps: the gaps of one GPU.
        began: start of the launch calls of operations.
        ended: their end.
        profiler: windows in which the profiler itself held the process up.
        replays: union of the replay spans.
        lost: the tainted parts, from `tainted`.
    """
    whole = _inside_one(gaps, replays) & ~_touched(gaps, profiler)
    rest = np.flatnonzero(~whole)
    after = gaps.after[rest]
    cut = _merged(
        _cut(
            Gaps(gaps.starts[rest], gaps.ends[rest], gaps.before[rest], after),
            began(after),
            ended(after),
            ((lost, IdleClass.UNRECORDED), (replays, IdleClass.INTRA_GRAPH), (profiler, IdleClass.PROFILER)),
        )
    )
    counts = np.ones(len(whole), np.int64)
    counts[rest] = np.bincount(cut.gap, minlength=len(rest))
    place = np.flatnonzero(np.repeat(~whole, counts))
    starts, ends = np.repeat(gaps.starts, counts), np.repeat(gaps.ends, counts)
    idle_class = np.full(len(starts), IdleClass.INTRA_GRAPH, np.uint8)
    starts[place], ends[place], idle_class[place] = cut.starts, cut.ends, cut.idle_class
    return Pieces(np.repeat(np.arange(len(whole), dtype=np.uint32), counts), starts, ends, idle_class)


def _inside_one(gaps: Gaps, replays: Cover) -> Bools:
    """Tell the gaps that lie whole inside one replay span: nearly all of a node capture."""
    low = np.searchsorted(gaps.starts, replays.starts)
    high = np.searchsorted(gaps.ends, replays.ends, side="right")
    return _within(low, high, len(gaps.starts))


def _touched(gaps: Gaps, windows: Cover) -> Bools:
    """Tell the gaps that some window reaches into."""
    low = np.searchsorted(gaps.ends, windows.starts, side="right")
    high = np.searchsorted(gaps.starts, windows.ends)
    return _within(low, high, len(gaps.starts))


def _within(low: Ints, high: Ints, length: int) -> Bools:
    """Tell which of `length` positions lie in any of the ranges [low[i], high[i])."""
    kept = high > low
    steps = np.zeros(length + 1, np.int32)
    np.add.at(steps, low[kept], 1)
    np.subtract.at(steps, high[kept], 1)
    within: Bools = np.cumsum(steps[:-1], dtype=np.int32) > 0
    return within


def _cut(gaps: Gaps, call_starts: Ints, call_ends: Ints, covers: Sequence[tuple[Cover, IdleClass]]) -> Pieces:
    """Return the pieces of gaps whose launch calls are given (NEVER if unknown); later covers win over earlier ones."""
    known = call_starts < NEVER
    begun = np.where(known, np.clip(call_starts, gaps.starts, gaps.ends), gaps.starts)
    returned = np.where(known, np.clip(call_ends, begun, gaps.ends), gaps.starts)
    starts = np.column_stack((gaps.starts, begun, returned)).ravel()
    ends = np.column_stack((begun, returned, gaps.ends)).ravel()
    last = np.where(known, IdleClass.QUEUED, IdleClass.UNATTRIBUTED)
    host_late, launching = np.full(len(last), IdleClass.HOST_LATE), np.full(len(last), IdleClass.LAUNCHING)
    part = np.column_stack((host_late, launching, last)).ravel()
    starts, ends, parent = split(
        starts, ends, np.concatenate([edge for cover, _ in covers for edge in (cover.starts, cover.ends)])
    )
    idle_class = part[parent]
    for cover, name in covers:
        idle_class[inside(starts, cover)] = name
    return Pieces(parent // 3, starts, ends, idle_class)


def _merged(pieces: Pieces) -> Pieces:
    """Join neighbouring pieces of one gap and class."""
    if not len(pieces.gap):
        return pieces
    new = changes(pieces.gap, pieces.idle_class)
    last = np.append(new[1:], True)
    return Pieces(pieces.gap[new], pieces.starts[new], pieces.ends[last], pieces.idle_class[new])
