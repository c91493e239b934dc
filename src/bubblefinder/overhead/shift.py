"""The same steps without the profiler: host and GPU are run again with every cost taken off where it was paid.

Time moves earlier along two kinds of thread. A host thread gains what its calls lose; a GPU gains what its blocks lose.
They meet in two places: a block begins at the later of what the GPU's queue and its launch call allow, and a wait ends
no sooner than the work it waited for. So a cost that another one hides gains nothing. With no costs everything stays
where it was, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.overhead.device import SEAM_CLASSES, Added, Work, added_to
from bubblefinder.overhead.host import Host, excess_of
from bubblefinder.timeline.model import IdleClass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.intervals import Ints
    from bubblefinder.overhead.model import Costs

    Floats = NDArray[np.float64]

_BLOCK, _CALL, _RETURN = 1, 0, 2
_QUEUED_FACTOR: Final = 2.0
_PARTS: Final = tuple(SEAM_CLASSES.index(part) for part in (IdleClass.HOST_LATE, IdleClass.LAUNCHING, IdleClass.QUEUED))
_PROFILER: Final = SEAM_CLASSES.index(IdleClass.PROFILER)


@dataclass(frozen=True, slots=True)
class Shifted:
    """Where everything lies without the profiler, on the capture's clock.

    Attributes:
        starts: of each block.
        ends: of each block.
        seam_ns: one row a seam, one column a class of `SEAM_CLASSES`, summing to the seam.
        added: what was taken off each block.
    """

    starts: Floats
    ends: Floats
    seam_ns: Floats
    added: Added


@dataclass(slots=True)
class _Clock:
    """How far host threads and the GPU have moved to earlier times so far.

    `threads` holds what a thread moved beyond what its calls lost since the start.
    """

    threads: dict[int, float]
    launched: dict[int, float]
    block: int
    block_shift: float


def shift(work: Work, host: Host, costs: Costs, factor: float = 1.0) -> Shifted:
    """Return the blocks and seams with `factor` times the costs taken off."""
    added, excess = added_to(work, costs.scaled(factor)), excess_of(host, costs, factor)
    plan = _Plan(work, host, added, excess, costs.launch_start.value)
    clock = _Clock({}, {}, 0, 0.0)
    starts = work.starts.astype(float)
    for _, kind, position in _events(work, host, work.call_index):
        if kind == _CALL:
            _begin_call(plan, clock, position)
        elif kind == _RETURN:
            _end_wait(plan, clock, position)
        else:
            starts[position] = _begin_block(plan, clock, position)
    ends = starts + (work.ends - work.starts) - added.block_ns
    return Shifted(starts, ends, _seams(plan, clock, starts, ends), added)


class _Plan:
    """The recorded run and what is to be taken off it, as plain lists for the loop."""

    def __init__(self, work: Work, host: Host, added: Added, excess: Floats, launch_start_ns: float) -> None:
        position = {index: place for place, index in enumerate(host.index.tolist())}
        parts = work.seam_ns[:, _PARTS].sum(axis=1)
        self.starts: list[int] = work.starts.tolist()
        self.ends: list[int] = work.ends.tolist()
        self.block_added: list[float] = added.block_ns.tolist()
        self.seam_added: list[float] = added.seam_ns.tolist()
        self.seams = work.seam_ns
        self.removed: list[int] = work.seam_ns[:, _PROFILER].tolist()
        self.pure: list[bool] = (parts == work.seam_ns.sum(axis=1)).tolist()
        self.calls = [position.get(index, -1) for index in work.call_index.tolist()]
        self.by_replay: list[bool] = work.by_replay.tolist()
        self.call_starts: list[int] = host.starts.tolist()
        self.call_ends: list[int] = host.ends.tolist()
        self.thread: list[int] = host.thread.tolist()
        self.settled: list[bool] = host.settled.tolist()
        self.excess: list[float] = excess.tolist()
        self.lost_before: list[float] = _lost_before(host.thread, excess).tolist()
        self.launch_start_ns = launch_start_ns
        self.usual_queue = self._usual_queue()

    def _usual_queue(self) -> float:
        """Return the usual seam of work that was submitted before the GPU was free."""
        waiting = [
            self.starts[block] - self.ends[block - 1]
            for block in range(1, len(self.starts))
            if (call := self.calls[block]) >= 0 and self.call_ends[call] <= self.ends[block - 1]
        ]
        return float(np.median(waiting)) if waiting else 0.0


def _lost_before(thread: Ints, excess: Floats) -> Floats:
    """Return how much the earlier calls of its thread lost, for each call."""
    order = np.argsort(thread, kind="stable")
    total = np.cumsum(excess[order]) - excess[order]
    first = np.concatenate(([True], thread[order][1:] != thread[order][:-1])) if len(order) else order.astype(bool)
    lost = np.empty(len(order))
    lost[order] = total - np.repeat(total[first], np.diff(np.append(np.flatnonzero(first), len(order))))
    return lost


def _events(work: Work, host: Host, launching: Ints) -> list[tuple[int, int, int]]:
    """Return what matters in order of time: blocks, the calls that launched them, and waits."""
    blocks = [(time, _BLOCK, place) for place, time in enumerate(work.starts.tolist()) if place]
    chosen = np.flatnonzero(np.isin(host.index, launching) | host.held | host.settled).tolist()
    calls = [(int(host.starts[place]), _CALL, place) for place in chosen]
    waits = [(int(host.ends[place]), _RETURN, int(place)) for place in np.flatnonzero(host.held)]
    return sorted([*blocks, *calls, *waits])


def _begin_call(plan: _Plan, clock: _Clock, place: int) -> None:
    thread, start, block = plan.thread[place], plan.call_starts[place], clock.block
    moved = clock.threads.get(thread, 0.0) + plan.lost_before[place]
    if plan.settled[place] and plan.ends[block] <= start:
        done = plan.ends[block] - clock.block_shift - plan.block_added[block]
        moved = min(moved, start - done)
        clock.threads[thread] = moved - plan.lost_before[place]
    clock.launched[place] = moved


def _end_wait(plan: _Plan, clock: _Clock, place: int) -> None:
    """End a wait as long after its work as it did, but not before it began."""
    end, begun = plan.call_ends[place], plan.call_starts[place] - clock.launched[place]
    block, length = clock.block, plan.ends[clock.block] - plan.starts[clock.block]
    part = min((end - plan.starts[block]) / length, 1.0) if length else 1.0
    gpu_shift = clock.block_shift + plan.block_added[block] * max(part, 0.0)
    moved = end - max(begun, end - gpu_shift)
    clock.threads[plan.thread[place]] = moved - plan.lost_before[place]


def _begin_block(plan: _Plan, clock: _Clock, block: int) -> float:
    """Begin a block at the later of what the queue and its launch call allow."""
    start, free = plan.starts[block], plan.ends[block - 1]
    free_now = free - clock.block_shift - plan.block_added[block - 1]
    seam, call = start - free, plan.calls[block]
    if call < 0 or not plan.pure[block]:
        begin = free_now + max(seam - plan.removed[block] - plan.seam_added[block], 0.0)
    else:
        begin = _launched(plan, clock, block, free_now)
    if call >= 0 and plan.removed[block]:
        clock.threads[plan.thread[call]] = clock.threads.get(plan.thread[call], 0.0) + plan.removed[block]
    clock.block, clock.block_shift = block, start - begin
    return begin


def _launched(plan: _Plan, clock: _Clock, block: int, free_now: float) -> float:
    start, free, call = plan.starts[block], plan.ends[block - 1], plan.calls[block]
    seam, latency = start - free, start - plan.call_starts[call]
    begun = plan.call_starts[call] - clock.launched.get(call, 0.0)
    floor = min(latency, plan.launch_start_ns if plan.by_replay[block] else 0.0)
    was_queued = plan.call_ends[call] <= free
    soon = plan.call_starts[call] < free and seam <= _QUEUED_FACTOR * plan.usual_queue
    if was_queued or soon:
        return max(free_now + max(seam - plan.seam_added[block], min(seam, 0.0)), begun + floor)
    length = plan.call_ends[call] - plan.call_starts[call]
    kept = 1.0 - plan.excess[call] / length if length else 1.0
    return max(free_now + min(seam, plan.usual_queue), begun + max(floor, latency * kept if latency > 0 else latency))


def _seams(plan: _Plan, clock: _Clock, starts: Floats, ends: Floats) -> Floats:
    """Cut every seam into its classes again: by its launch call where that is all there is, else in proportion."""
    seams = np.zeros(plan.seams.shape)
    for block in range(1, len(starts)):
        length = max(starts[block] - ends[block - 1], 0.0)
        call = plan.calls[block]
        if call >= 0 and plan.pure[block]:
            begun = plan.call_starts[call] - clock.launched.get(call, 0.0)
            returned = begun + plan.call_ends[call] - plan.call_starts[call] - plan.excess[call]
            late = min(max(begun - ends[block - 1], 0.0), length)
            until = min(max(returned - ends[block - 1], late), length)
            seams[block, list(_PARTS)] = late, until - late, length - until
        else:
            kept = plan.seams[block].astype(float)
            kept[_PROFILER] = 0.0
            seams[block] = kept * (length / kept.sum()) if kept.sum() else kept
    return seams
