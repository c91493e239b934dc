"""The same steps without the profiler: host and GPU are run again with every cost taken off where it was paid.

Time moves earlier along two kinds of thread. A host thread gains what its calls lose; a GPU gains what its blocks lose.
They meet in two places: a block begins at the later of what the GPU's queue and its launch call allow, and a wait ends
no sooner than the work it waited for. So a cost that another one hides gains nothing. With no costs everything stays
where it was, exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bubblefinder.overhead.device import SEAM_CLASSES, Added, Work, added_to
from bubblefinder.overhead.host import Host, excess_behind, excess_of
from bubblefinder.timeline.model import IdleClass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
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


def shift(work: Work, host: Host, costs: Costs, factor: float = 1.0) -> Shifted:
    """Return the blocks and seams with `factor` times the costs taken off."""
    added, excess = added_to(work, costs.scaled(factor)), excess_of(host, costs, factor)
    plan = _plan(work, host, added, excess, costs.launch_start.value)
    lost_before = _lost_before(host.thread, excess + excess_behind(host, costs, factor))
    starts, launched = _run(plan, host, lost_before)
    ends = starts + (work.ends - work.starts) - added.block_ns
    return Shifted(starts, ends, _seams(plan, work, host, (starts, ends), (launched, excess)), added)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The recorded run and what is to be taken off it, an entry a block.

    Attributes:
        starts: recorded start.
        ends: recorded end.
        loses: what the block gets shorter by.
        call: launch call of its first operation as position in the host's calls, -1 where unknown.
        launched: whether that call and the queue alone explain the seam before it.
        queue: how long after the end of the block before it begins at the earliest.
        latency: how long after the begin of its call it begins at the earliest; minus infinity without one.
        removed: time in the profiler's own windows in the seam before it.
    """

    starts: Ints
    ends: Ints
    loses: Floats
    call: Ints
    launched: Bools
    queue: Floats
    latency: Floats
    removed: Ints


def _plan(work: Work, host: Host, added: Added, excess: Floats, launch_start_ns: float) -> _Plan:
    call = _places(host.index, work.call_index)
    known = call >= 0
    begun, returned, excess = (_at(values, call) for values in (host.starts, host.ends, excess))
    free = np.concatenate((work.starts[:1], work.ends[:-1]))
    seam, latency = work.starts - free, work.starts - begun
    early = known & (returned <= free)
    usual = float(np.median(seam[early])) if early.any() else 0.0
    queued = early | (known & (begun < free) & (seam <= _QUEUED_FACTOR * usual))
    removed = work.seam_ns[:, _PROFILER]
    launched = known & (work.seam_ns[:, _PARTS].sum(axis=1) == work.seam_ns.sum(axis=1))
    kept = 1.0 - np.divide(excess, returned - begun, out=np.zeros(len(call)), where=returned > begun)
    floor = np.minimum(latency, np.where(work.by_replay, launch_start_ns, 0.0))
    by_call = np.where(queued, floor, np.maximum(floor, np.where(latency > 0, latency * kept, latency)))
    by_queue = np.where(queued | ~launched, np.maximum(seam - removed - added.seam_ns, 0.0), np.minimum(seam, usual))
    by_call = np.where(launched, by_call, -np.inf)
    return _Plan(work.starts, work.ends, added.block_ns, call, launched, by_queue, by_call, removed)


def _places(index: Ints, wanted: Ints) -> Ints:
    """Return where each wanted call lies among the host's, -1 where it doesn't."""
    if not len(index):
        return np.full(len(wanted), -1)
    order = np.argsort(index)
    place = order[np.minimum(np.searchsorted(index[order], wanted), len(index) - 1)]
    return np.where(index[place] == wanted, place, -1)


def _at(values: NDArray[Any], places: Ints) -> NDArray[Any]:
    return values[places] if len(values) else np.zeros(len(places), values.dtype)


def _lost_before(thread: Ints, excess: Floats) -> Floats:
    """Return how much the earlier calls of its thread lost, for each call."""
    order = np.argsort(thread, kind="stable")
    total = np.cumsum(excess[order]) - excess[order]
    first = np.concatenate(([True], thread[order][1:] != thread[order][:-1])) if len(order) else order.astype(bool)
    lost = np.empty(len(order))
    lost[order] = total - np.repeat(total[first], np.diff(np.append(np.flatnonzero(first), len(order))))
    return lost


def _events(plan: _Plan, host: Host) -> Iterator[tuple[int, int]]:
    """Return kind and place of what matters, in order of time: blocks, the calls that launched them, and waits."""
    launching = np.zeros(len(host.starts), np.bool_)
    launching[plan.call[plan.call >= 0]] = True
    calls, waits = np.flatnonzero(launching | host.held | host.settled), np.flatnonzero(host.held)
    blocks = np.arange(1, len(plan.starts))
    places = np.concatenate((calls, blocks, waits))
    kinds = np.repeat((_CALL, _BLOCK, _RETURN), (len(calls), len(blocks), len(waits)))
    times = np.concatenate((host.starts[calls], plan.starts[blocks], host.ends[waits]))
    order = np.lexsort((places, kinds, times))
    return zip(kinds[order].tolist(), places[order].tolist(), strict=True)


def _run(plan: _Plan, host: Host, lost_before: Floats) -> tuple[Floats, Floats]:
    """Return where each block begins now, and how far each call that launches or waits moved to earlier times.

    A thread has moved by what its calls lost, and by what its last wait changed in that; a block by what those before
    it lost, unless its call holds it back.
    """
    starts, ends, loses, queue, latency = (
        values.tolist() for values in (plan.starts, plan.ends, plan.loses, plan.queue, plan.latency)
    )
    call, removed, thread = plan.call.tolist(), plan.removed.tolist(), host.thread.tolist()
    call_starts, call_ends, settled = host.starts.tolist(), host.ends.tolist(), host.settled.tolist()
    lost, begins, moved = lost_before.tolist(), plan.starts.astype(float).tolist(), [0.0] * len(thread)
    waited = dict.fromkeys(thread, 0.0)
    block, block_moved = 0, 0.0
    for kind, place in _events(plan, host):
        if kind == _BLOCK:
            begin = ends[block] - block_moved - loses[block] + queue[place]
            launch = call[place]
            if launch >= 0:
                begin = max(begin, call_starts[launch] - moved[launch] + latency[place])
                waited[thread[launch]] += removed[place]
            block, block_moved, begins[place] = place, starts[place] - begin, begin
        elif kind == _CALL:
            moved[place] = waited[thread[place]] + lost[place]
            if settled[place] and ends[block] <= call_starts[place]:
                moved[place] = min(moved[place], call_starts[place] - ends[block] + block_moved + loses[block])
                waited[thread[place]] = moved[place] - lost[place]
        else:
            end, length = call_ends[place], ends[block] - starts[block]
            part = max(min((end - starts[block]) / length, 1.0), 0.0) if length else 1.0
            now = max(call_starts[place] - moved[place], end - block_moved - loses[block] * part)
            waited[thread[place]] = end - now - lost[place]
    return np.array(begins), np.array(moved)


def _seams(plan: _Plan, work: Work, host: Host, blocks: tuple[Floats, Floats], calls: tuple[Floats, Floats]) -> Floats:
    """Cut every seam into its classes again: by its launch call where that is all there is, else in proportion."""
    free = np.concatenate((blocks[0][:1], blocks[1][:-1]))
    length = np.maximum(blocks[0] - free, 0.0)
    kept = work.seam_ns.astype(float)
    kept[:, _PROFILER] = 0.0
    whole = kept.sum(axis=1)
    seams: Floats = kept * np.divide(length, whole, out=np.zeros(len(length)), where=whole > 0)[:, None]
    moved, excess = calls
    begun = _at(host.starts, plan.call) - _at(moved, plan.call) - free
    returned = begun + _at(host.ends, plan.call) - _at(host.starts, plan.call) - _at(excess, plan.call)
    late = np.clip(begun, 0.0, length)
    until = np.clip(returned, late, length)
    parts = np.column_stack((late, until - late, length - until))
    for column, values in zip(_PARTS, parts.T, strict=True):
        seams[plan.launched, column] = values[plan.launched]
    seams[:1] = 0.0
    return seams
