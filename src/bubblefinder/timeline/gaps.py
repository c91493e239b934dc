"""Gaps of one GPU and the class of every nanosecond in them. Pure numpy; see design section 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.intervals import Bools, Cover, Ints, inside, overlap_with, split
from bubblefinder.timeline.model import IdleClass

if TYPE_CHECKING:
    from collections.abc import Sequence

NEVER = np.iinfo(np.int64).max
LONG_AGO = np.iinfo(np.int64).min


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

    gap: Ints
    starts: Ints
    ends: Ints
    idle_class: Ints


def running_end(ends: Ints) -> Ints:
    """Return the running maximum of end before each operation; LONG_AGO for the first."""
    before = np.empty(len(ends), np.int64)
    before[:1] = LONG_AGO
    before[1:] = np.maximum.accumulate(ends)[:-1]
    return before


def find_gaps(starts: Ints, ends: Ints, call_starts: Ints) -> Gaps:
    """Return the gaps between operations sorted by (start, end).

    Args:
        starts: operation starts; operations of no length neither fill nor end a gap.
        ends: operation ends.
        call_starts: start of each operation's launch call, NEVER where unknown. It decides which of
            several operations that end or begin a gap together is named.
    """
    real = np.flatnonzero(ends > starts)
    begin, reach = starts[real], np.maximum.accumulate(ends[real]) if len(real) else ends[:0]
    opens = np.flatnonzero(begin[1:] > reach[:-1])
    reaches = ends[real] == reach
    reaching = np.flatnonzero(reaches)
    higher = np.concatenate(([True], reach[1:] > reach[:-1]))[: len(reach)]
    furthest = (np.cumsum(reaches) - 1)[np.maximum.accumulate(np.where(higher, np.arange(len(reach)), 0))[opens]]
    before = reaching[_first_launched(reach[reaching], call_starts[real][reaching], furthest)]
    after = _first_launched(begin, call_starts[real], opens + 1)
    return Gaps(reach[opens], begin[opens + 1], real[before], real[after])


def _first_launched(times: Ints, call_starts: Ints, first: Ints) -> Ints:
    """Of the operations whose sorted `times` equal that of each position `first`, return the one launched first."""
    tied = np.flatnonzero(times[np.minimum(first + 1, len(times) - 1)] == times[first])
    tied = tied[first[tied] + 1 < len(times)]
    if not len(tied):
        return first
    together = np.searchsorted(times, times[first[tied]], side="right") - first[tied]
    gap = np.repeat(tied, together)
    rank = np.arange(len(gap)) - np.repeat(np.cumsum(together) - together, together)
    candidate = first[gap] + rank
    order = np.lexsort((candidate, call_starts[candidate], gap))
    _, earliest = np.unique(gap[order], return_index=True)
    chosen = first.copy()
    chosen[tied] = candidate[order][earliest]
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


def classify(gaps: Gaps, call_starts: Ints, call_ends: Ints, *, profiler: Cover, replays: Cover, lost: Cover) -> Pieces:
    """Cut every gap into pieces of one class each.

    Args:
        gaps: the gaps of one GPU.
        call_starts: start of the launch call of the operation that ends each gap, NEVER if unknown.
        call_ends: its end.
        profiler: windows in which the profiler itself held the process up.
        replays: union of the replay spans.
        lost: the tainted parts, from `tainted`.
    """
    simple = _inside_one_replay(gaps, replays) & (overlap_with(gaps.starts, gaps.ends, profiler) == 0)
    rest = np.flatnonzero(~simple)
    gap, starts, ends, idle_class = _cut(
        Gaps(gaps.starts[rest], gaps.ends[rest], gaps.before[rest], gaps.after[rest]),
        call_starts[rest],
        call_ends[rest],
        ((lost, IdleClass.UNRECORDED), (replays, IdleClass.INTRA_GRAPH), (profiler, IdleClass.PROFILER)),
    )
    whole = np.flatnonzero(simple)
    order = np.argsort(np.concatenate((rest[gap], whole)), kind="stable")
    return _merged(
        Pieces(
            np.concatenate((rest[gap], whole))[order],
            np.concatenate((starts, gaps.starts[whole]))[order],
            np.concatenate((ends, gaps.ends[whole]))[order],
            np.concatenate((idle_class, np.full(len(whole), IdleClass.INTRA_GRAPH)))[order],
        )
    )


def _inside_one_replay(gaps: Gaps, replays: Cover) -> Bools:
    """Tell the gaps that lie whole inside one replay span: nearly all of a node capture."""
    if not len(replays):
        return np.zeros(len(gaps.starts), np.bool_)
    span = np.searchsorted(replays.starts, gaps.starts, side="right") - 1
    return (span >= 0) & (gaps.ends <= replays.ends[np.maximum(span, 0)])


def _cut(
    gaps: Gaps, call_starts: Ints, call_ends: Ints, covers: Sequence[tuple[Cover, IdleClass]]
) -> tuple[Ints, Ints, Ints, Ints]:
    """Return gap, start, end and class of the pieces; later covers win over earlier ones."""
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
    return parent // 3, starts, ends, idle_class


def _merged(pieces: Pieces) -> Pieces:
    """Join neighbouring pieces of one gap and class."""
    if not len(pieces.gap):
        return pieces
    new = np.concatenate(
        ([True], (pieces.gap[1:] != pieces.gap[:-1]) | (pieces.idle_class[1:] != pieces.idle_class[:-1])),
    )
    last = np.concatenate((new[1:], [True]))
    return Pieces(pieces.gap[new], pieces.starts[new], pieces.ends[last], pieces.idle_class[new])
