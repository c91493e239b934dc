"""Segmentations by what comes once a step: things that alternate with each other, over and over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.steps import thresholds
from bubblefinder.steps.events import REPLAY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.events import Events


@dataclass(frozen=True, slots=True)
class Segmentation:
    """A way to cut the events into cycles.

    Attributes:
        begins: positions in the events at which cycles begin.
        members: how many different things come once in each.
        solid: one of them is a thing, not a succession of two.
        mark: the NVTX range that cuts them, else null.
        bonus: points for the name of the range.
    """

    begins: Ints
    members: int
    solid: bool
    mark: str | None = None
    bonus: float = 0.0

    def at(self, considered: Bools) -> Segmentation:
        """Return the segmentation of all events from one of some of them."""
        return replace(self, begins=np.flatnonzero(considered)[self.begins])

    def __len__(self) -> int:
        """Return the number of cycles."""
        return len(self.begins)


def recurring(events: Events) -> list[Segmentation]:
    """Return every segmentation by things that come once a cycle, the one with the most cycles first."""
    classes: list[tuple[list[Ints], list[bool]]] = []
    for positions, single in _candidates(events):
        same = next((one for one in reversed(classes) if alternate(one[0][0], positions)), None)
        if same is None:
            classes.append(([positions], [single]))
        elif len(same[0]) < thresholds.MOST_MEMBERS:
            same[0].append(positions)
            same[1].append(single)
    found = [Segmentation(_begins(events, members), sum(single), any(single)) for members, single in classes]
    return sorted(found, key=len, reverse=True)


def _candidates(events: Events) -> Iterator[tuple[Ints, bool]]:
    """Yield the positions of everything that comes often enough over most of the events, most frequent first."""
    if len(events) < thresholds.FEWEST:
        return
    pairs = events.alike[:-1] * (int(events.alike.max()) + 1) + events.alike[1:]
    found = []
    for symbols, single in ((events.exact, True), (events.alike, True), (pairs, False)):
        order = np.argsort(symbols, kind="stable")
        bounds = np.flatnonzero(np.diff(symbols[order])) + 1
        found += [(part, single) for part in np.split(order, bounds) if len(part) >= thresholds.FEWEST]
    told = [np.flatnonzero(events.links), np.flatnonzero(events.what == REPLAY)]
    told = [one for one in told if len(one) >= thresholds.FEWEST] or [np.arange(len(events))]
    wide = [(part, single) for part, single in found if all(_spread(part, one) for one in told)]
    yield from sorted(wide, key=lambda one: (-len(one[0]), int(one[0][0])))


def _spread(part: Ints, events: Ints) -> bool:
    """Tell whether a good part of the events lies in cycles of a usual size, or the events are too few to tell."""
    if len(events) < thresholds.FEWEST:
        return True
    sizes, length = np.diff(np.searchsorted(events, part)), np.diff(part)
    usual = length <= thresholds.LONG * np.median(length)
    return bool(sizes[usual].sum() >= thresholds.SPREAD * len(events) - 1)


def alternate(one: Ints, other: Ints) -> bool:
    """Tell whether two things come by turns."""
    if abs(len(one) - len(other)) > max(1, (1 - thresholds.BY_TURNS) * max(len(one), len(other))):
        return False
    between = np.diff(np.searchsorted(other, one))
    return bool(np.mean(between == 1) >= thresholds.BY_TURNS)


def _begins(events: Events, members: list[Ints]) -> Ints:
    """Begin the cycle where the host works longest, at or a few events from one of the things that come once in it.

    At a thing itself, if the host works about as long there.
    """
    best, most = members[0], -1.0
    for distance in thresholds.NEARBY:
        for one in members:
            place = one + distance
            place = place[(place >= 0) & (place < len(events))]
            worked = float(np.median(events.host_ns[place])) if len(place) else -1.0
            if worked * (thresholds.AT_A_THING if distance else 1.0) > most:
                best, most = place, worked if distance else worked / thresholds.AT_A_THING
    return best


def agree(one: Ints, other: Ints) -> bool:
    """Tell whether two lists of moments come once in each other's cycles, nearly all of them."""
    return alternate(one, other) or alternate(other, one)


def with_first(begins: Ints) -> Ints:
    """Add the cycle before the first begin, if what precedes it is as long as a cycle."""
    usual = float(np.median(np.diff(begins))) if len(begins) > 1 else 0.0
    whole = begins[0] > 0 and abs(begins[0] - usual) <= thresholds.WHOLE_CYCLE * usual
    return np.concatenate(([0], begins)) if whole else begins
