"""Whether shorter cycles do different work by turns: the parts of a step, as a draft and its target are, and no steps.

Another batch size, or a second buffer, does the same work: as many operations of the same names, a little longer. Where
only the length of graphs was recorded, that tells neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.intervals import distinct, lower_quantile, median, tallied_in
from bubblefinder.steps import thresholds
from bubblefinder.steps.events import COMPUTE, REPLAY

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.events import Events


@dataclass(frozen=True, eq=False)
class Turns:
    """What tells the shorter cycles of longer ones apart; each thing is looked at when it is first asked for."""

    events: Events
    shorter: Ints
    longer: Ints

    @cached_property
    def parts(self) -> bool:
        """Whether hardly any shorter cycle where a longer one begins computes what the one before it does.

        And most longer ones do; where there are more than two of each, the longest of them comes once.
        """
        events, shorter, longer = self.events, self.shorter, self.longer
        if not _differ(events, shorter, longer, by_graphs=bool(median(self._replays))):
            return False
        longest = shorter[_longest(self._took, shorter, longer)]
        return shares_work(events, longer) and (_even(shorter, longer, 2) or once_each(longest, longer))

    @cached_property
    def deeper(self) -> bool:
        """Whether one shorter cycle of each longer one runs the same layers, and more of them."""
        return _deeper(self.events, self.shorter, self.longer)

    @cached_property
    def uneven(self) -> bool:
        """Whether one takes longer than the others, by more than batch sizes make of the same graph.

        Where nodes were recorded, one of as many, for larger batches come at any time.
        """
        usual = lower_quantile(self._took, thresholds.RARE)
        more = thresholds.LENGTH_RATIO if self.told else thresholds.ANOTHER_LENGTH
        even = _even(self.shorter, self.longer) or not self.told
        return even and once_each(self.shorter[self._took >= more * usual], self.longer)

    @cached_property
    def told(self) -> bool:
        """Whether nodes were recorded, so that kinds of graphs are told by what they do."""
        return bool(self.events.layers[self.events.what == REPLAY].all())

    @cached_property
    def apart(self) -> bool:
        """Whether threads launch them by turns, as they do for two engines in one process."""
        return _apart(self.events, self.shorter)

    @cached_property
    def pieces(self) -> bool:
        """Whether one of each longer one launches many graphs for each of the others, as of no captured size."""
        few = max(lower_quantile(self._replays, thresholds.RARE), 1)
        return once_each(self.shorter[self._replays > thresholds.PIECES * few], self.longer)

    @cached_property
    def whole(self) -> bool:
        """Whether each is a forward pass behind the one before, of one graph and so of the same weights, if graphs run.

        Those where longer ones begin compute less than a pass besides.
        """
        return _whole(self.events, self.shorter, self.longer, self._took)

    @cached_property
    def _took(self) -> Ints:
        """How long each shorter cycle computes."""
        length = self.events.end_ns - self.events.start_ns
        return np.add.reduceat(np.where(self.events.what <= REPLAY, length, 0), self.shorter)

    @cached_property
    def _replays(self) -> Ints:
        """How many graphs each shorter cycle launches."""
        return np.add.reduceat(self.events.what == REPLAY, self.shorter, dtype=np.int64)

    @property
    def different(self) -> bool:
        """Whether the shorter cycles do different work for one step, as far as is known."""
        return not (self.apart or self.pieces) and (self.parts or self.deeper)

    @property
    def untold(self) -> bool:
        """Whether it may as well be another batch size, or another engine."""
        by_turns = self.parts and (self.pieces or not self.told)
        return self.apart or by_turns or (self.uneven and not self.different)


def shares_work(events: Events, begins: Ints, of: Callable[[Ints, Ints], Ints] = np.maximum) -> bool:
    """Tell whether many a cycle computes most of what the one before it does, or of what the smaller of both does.

    So do steps, of whatever batch size and with prefills between them, and layers. Parts of a step share little.
    """
    alike = _shared(events.alike, events.what <= REPLAY, begins, of) >= thresholds.ONE_MAKE
    return bool(len(alike)) and bool(np.mean(alike) > thresholds.RARE)


def _shared(alike: Ints, chosen: Bools, begins: Ints, of: Callable[[Ints, Ints], Ints]) -> NDArray[np.float64]:
    """Return the share of kinds of some events that each cycle but the first has of those of the one before it."""
    cycles = max(len(begins) - 1, 1)
    cycle = np.repeat(np.arange(len(begins) - 1), np.diff(begins))
    first, last = begins[0], begins[-1]
    kinds = int(alike.max()) + 1
    pairs = distinct((cycle * kinds + alike[first:last])[chosen[first:last]])
    again = pairs[np.isin(pairs, pairs + kinds)]
    had, shared = (np.bincount(found // kinds, minlength=cycles) for found in (pairs, again))
    return np.asarray(shared[1:] / np.maximum(of(had[1:], had[:-1]), 1), np.float64)


def _differ(events: Events, shorter: Ints, longer: Ints, *, by_graphs: bool) -> bool:
    """Tell whether hardly any shorter cycle where a longer one begins shares graphs, or else kernels, with the last."""
    place = _those(np.searchsorted(shorter, longer) - 1, len(shorter) - 2)
    chosen = events.what == REPLAY if by_graphs else events.what <= REPLAY
    shared = _shared(events.alike, chosen, shorter, np.minimum)[place]
    return bool(len(shared)) and bool(np.mean(shared >= thresholds.ONE_MAKE) <= thresholds.RARE)


def whole_passes(events: Events, shorter: Ints) -> bool:
    """Tell whether usual cycles run graphs, the kernels of several layers, or one kernel that takes most of their time.

    Layers do none of this.
    """
    if median(np.add.reduceat(events.what == REPLAY, shorter, dtype=np.int64)):
        return True
    took = np.where(events.what == COMPUTE, events.end_ns - events.start_ns, 0)
    longest, total = (times.reduceat(took, shorter) for times in (np.maximum, np.add))
    cycle = np.repeat(np.arange(len(shorter)), np.diff(np.append(shorter, len(events))))
    computes = events.what[shorter[0] :] == COMPUTE
    cycle, _, counts = tallied_in(cycle[computes], events.alike[shorter[0] :][computes])
    layers = np.zeros(len(shorter), np.int64)
    np.maximum.at(layers, cycle, counts)
    return median(layers) >= thresholds.LAYERS or median(longest / np.maximum(total, 1)) > thresholds.HALF


def in_each(chosen: Ints, longer: Ints) -> bool:
    """Tell whether nearly each longer cycle has some of the shorter ones; the last may end early."""
    held = distinct(np.searchsorted(longer, chosen, side="right"))
    return len(held) >= max(thresholds.FILLED * (len(longer) - 1), 1)


def once_each(chosen: Ints, longer: Ints) -> bool:
    """Tell whether some shorter cycles come once in nearly each longer one."""
    return in_each(chosen, longer) and len(chosen) * thresholds.FILLED <= len(longer)


def _even(shorter: Ints, longer: Ints, many: int | None = None) -> bool:
    """Tell whether nearly each longer cycle holds as many of the shorter ones, or so many."""
    held = np.diff(np.searchsorted(shorter, longer))
    return bool(np.mean(held == (np.median(held) if many is None else many)) >= thresholds.FILLED)


def _longest(took: Ints, shorter: Ints, longer: Ints) -> Bools:
    """Tell which shorter cycles compute about as long as the longest of a longer one usually does."""
    held = np.searchsorted(longer, shorter, side="right")
    most = np.zeros(len(longer) + 1, np.int64)
    np.maximum.at(most, held, took)
    return np.asarray(took * thresholds.ANOTHER_LENGTH >= median(most[1:]), np.bool_)


def _apart(events: Events, shorter: Ints) -> bool:
    """Tell whether hardly any shorter cycle is launched by the thread that launched the one before it."""
    launches = np.flatnonzero(events.what <= REPLAY)
    thread = events.thread[launches[np.searchsorted(launches, shorter[:-1])]]
    return bool(len(thread) > 1) and bool(np.mean(thread[1:] == thread[:-1]) <= thresholds.RARE)


def _whole(events: Events, shorter: Ints, longer: Ints, took: Ints) -> bool:
    """Tell whether each shorter cycle is a forward pass, and what comes with some of them takes less than one.

    Layers have weights of their own, so that none runs the same graph as the next; kernel by kernel a few cycles are
    none, for models have more layers.
    """
    place = np.searchsorted(shorter, longer)
    near = [_those(place - side, len(shorter) - 1) for side in (0, 1)]
    alone = np.ones(len(shorter) - 1, np.bool_)
    alone[np.concatenate(near)] = False
    others = np.flatnonzero(alone)
    if not len(others) or _side_by_side(events, shorter):
        return False
    if any(not len(one) or median(took[one]) >= 2 * median(took[others]) for one in near):
        return False
    replays = np.flatnonzero(events.what == REPLAY)
    if not len(replays):
        few = len(shorter) <= thresholds.DRAFTS * len(longer)
        return few and whole_passes(events, shorter) and shares_work(events, shorter, np.minimum)
    same = replays[events.exact[replays] == np.bincount(events.exact[replays]).argmax()]
    holds = np.isin(np.arange(len(shorter)), np.searchsorted(shorter, same, side="right") - 1)
    return bool(min(np.mean(holds[one]) for one in (*near, others)) >= thresholds.FILLED)


def _those(positions: Ints, below: int) -> Ints:
    """Return those of some positions in order that are of so many."""
    return distinct(positions[(positions >= 0) & (positions < below)])


def _side_by_side(events: Events, begins: Ints) -> bool:
    """Tell whether most cycles begin to compute before those before them have ended."""
    computes = np.flatnonzero(events.what <= REPLAY)
    first = np.searchsorted(computes, begins)
    first = first[(first > 0) & (first < len(computes))]
    reach = np.maximum.accumulate(events.end_ns[computes])
    return bool(len(first)) and bool(np.mean(events.start_ns[computes][first] < reach[first - 1]) > thresholds.MOSTLY)


def _deeper(events: Events, shorter: Ints, longer: Ints) -> bool:
    """Tell whether one shorter cycle of each longer one runs most kernels of its layers more often than the others.

    Neither a batch size nor a prompt does: the layers are those of the model.
    """
    layers = np.maximum.reduceat(events.layers, shorter)
    if (usual := lower_quantile(layers, thresholds.RARE)) >= thresholds.LAYERS:
        return once_each(shorter[layers >= thresholds.DEEPER * usual], longer)
    cycle = np.repeat(np.arange(len(shorter)), np.diff(np.append(shorter, len(events))))
    computes = events.what[shorter[0] :] == COMPUTE
    if not computes.any():
        return False
    kinds = int(events.alike.max()) + 1
    windows, symbols, counts = tallied_in(cycle[computes], events.alike[shorter[0] :][computes])
    often, many = np.bincount(symbols, minlength=kinds), int(counts.max()) + 1
    lower = np.cumsum(often) - often + np.floor(thresholds.RARE * (often - 1)).astype(np.int64)
    often_in = np.sort(symbols * many + counts)[lower] % many  # the quantile of each kind that there is
    layered = counts >= thresholds.LAYERS
    more = layered & (counts >= thresholds.DEEPER * often_in[symbols])
    of_all, of_more = (np.bincount(windows[mine], minlength=len(shorter)) for mine in (layered, more))
    deep: Bools = (of_all > 0) & (of_more > thresholds.USUAL * of_all)
    return once_each(shorter[deep], longer)
