"""Regimes: runs of steps that do the same in another way, by graphs or kernel by kernel, or at another batch size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.intervals import held_by, places_of, totals_in
from bubblefinder.lookup import NOWHERE
from bubblefinder.steps import thresholds
from bubblefinder.steps.events import REPLAY

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.events import Events

_EAGER, _NOTHING = -1, -2


def regimes_of(events: Events, windows: tuple[Ints, Ints], steps: Bools, requests: Ints) -> tuple[Ints, Ints]:
    """Return the regime of each window, and the way in which its steps run; -1 for windows that are no steps.

    Regimes are numbered as they come: by the graph that usually takes longest, or kernel by kernel for so many
    requests. Ways are told by the kind of that graph alone: another batch size is another regime of the same way.

    Args:
        events: the lane's.
        windows: their starts and their ends.
        steps: which windows are decode steps.
        requests: how many each window serves, negative where unknown; a graph takes as long for fewer than it is for.
    """
    starts, ends = windows
    work = np.flatnonzero(events.what <= REPLAY)
    window = held_by(events.start_ns[work], starts, ends)
    work, window = work[window != NOWHERE], window[window != NOWHERE]
    exact, alike = (_longest(events, symbols, work, window, len(starts)) for symbols in (events.exact, events.alike))
    chosen = np.flatnonzero(steps)
    exact = np.where((exact == _EAGER) & (requests > 0), _NOTHING - requests, exact)
    found = np.full((2, len(steps)), -1, np.int64)
    for row, labels in enumerate((exact, alike)):
        found[row, chosen] = _numbered(_settled(labels[chosen]))
    return found[0], found[1]


def _longest(events: Events, symbols: Ints, work: Ints, window: Ints, windows: int) -> Ints:
    """Return the symbol of the graph of each window that usually takes longest, or _EAGER where kernels take longer.

    Usually: a rank waits for others inside its graphs, now in this one and now in that, and runs them the same way.
    `window` is that of each event in `work`.
    """
    found = np.full(windows, _NOTHING, np.int64)
    replays = events.what[work] == REPLAY
    if not replays.any():
        found[window] = _EAGER
        return found
    labels = np.where(replays, symbols[work] + 1, 0)
    place, label, total = totals_in(window, labels, (events.end_ns - events.start_ns)[work])
    usual = np.full(int(labels.max()) + 1, -1)
    for mine in places_of(label):
        usual[label[mine[0]]] = np.partition(total[mine], len(mine) // 2)[len(mine) // 2]
    usual[0] = -1  # kernels come before all graphs
    order = np.argsort(usual, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    longest, best = np.zeros(windows, np.int64), np.full(windows, -1)
    np.maximum.at(longest, place, total)
    np.maximum.at(best, place, rank[label])
    found[best >= 0] = order[best[best >= 0]] - 1
    found[place[(label == 0) & (total == longest[place])]] = _EAGER
    return found


def _settled(labels: Ints) -> Ints:
    """Give runs too short for a regime the label of the steps before them, or else of those behind."""
    if not len(labels):
        return labels
    bounds = np.concatenate(([0], np.flatnonzero(np.diff(labels)) + 1, [len(labels)]))
    lengths = np.repeat(np.diff(bounds), np.diff(bounds))
    kept = np.where(lengths >= thresholds.REGIME, labels, _NOTHING)
    last = np.maximum.accumulate(np.where(kept == _NOTHING, -1, np.arange(len(kept))))
    if last[-1] < 0:
        return np.zeros(len(labels), np.int64)
    return kept[np.where(last < 0, int(np.argmax(last >= 0)), last)]


def _numbered(labels: Ints) -> Ints:
    """Number labels as they come."""
    different, first, places = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(different), np.int64)
    rank[np.argsort(first)] = np.arange(len(different))
    return rank[places.reshape(-1)]
