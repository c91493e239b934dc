"""Segmentations by what comes once a step: things that alternate with each other, over and over."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.intervals import classes_of, distinct, median, places_of, tallied_in
from bubblefinder.steps import thresholds
from bubblefinder.steps.events import COMPUTE, READ, REPLAY, UPLOAD, WAIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.events import Events


_SOME: Final = 1 << 10
"""So many cycles are looked at no slower than one."""


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
        return self if considered.all() else replace(self, begins=np.flatnonzero(considered)[self.begins])

    def __len__(self) -> int:
        """Return the number of cycles."""
        return len(self.begins)


def recurring(events: Events) -> list[Segmentation]:
    """Return every segmentation by things that come once a cycle, the one with the most cycles first."""
    classes: list[tuple[list[Ints], list[bool]]] = []
    links = events.links
    for positions, single in _candidates(events):
        same = next((one for one in reversed(classes) if alternate(one[0][0], positions)), None)
        if same is None:
            classes.append(([positions], [single]))
        elif len(same[0]) < thresholds.MOST_MEMBERS or links[positions[0]]:
            same[0].append(positions)
            same[1].append(single)
    found = [Segmentation(_begins(events, *one), sum(one[1]), any(one[1])) for one in classes]
    return sorted(found, key=len, reverse=True)


def _candidates(events: Events) -> Iterator[tuple[Ints, bool]]:
    """Yield the positions of everything that comes often enough over most of the events, most frequent first."""
    if len(events) < thresholds.FEWEST:
        return
    exact = places_of(events.exact)
    alike = _joined(exact, events.alike)
    following = [part for one in alike for part in _by_next(one, events.alike)]
    found = [(part, single) for parts, single in ((exact, True), (alike, True), (following, False)) for part in parts]
    known = {(len(part), int(part[0])): part for part, _ in found}  # those of both alike are the same
    runs = [part for part in (*_passes(events), _uploads(events)) if len(part) >= thresholds.FEWEST]
    found += [(run, True) for run in runs if not np.array_equal(known.get((len(run), int(run[0])), []), run)]
    links, replays = (counted(chosen) for chosen in (events.links, events.what == REPLAY))
    told = ([links, replays], [links])
    often = {id(part): part for part, _ in found if len(part) >= thresholds.FEWEST}
    wide = {one for one, part in often.items() if _wide(part, told[int(events.links[part[0]])], len(events))}
    chosen = (one for one in found if id(one[0]) in wide)
    yield from sorted(chosen, key=lambda one: (-len(one[0]), int(one[0][0])))


def _joined(parts: list[Ints], symbols: Ints) -> list[Ints]:
    """Return the positions of each symbol, from parts each of which has one; the very part where it is all."""
    of_symbol: dict[int, list[Ints]] = {}
    for part in parts:
        of_symbol.setdefault(int(symbols[part[0]]), []).append(part)
    return [one[0] if len(one) == 1 else np.sort(np.concatenate(one), kind="stable") for one in of_symbol.values()]


def _by_next(part: Ints, symbols: Ints) -> list[Ints]:
    """Return the positions of a symbol by the symbol behind each, or the very part if that is always the same."""
    if len(part) < thresholds.FEWEST:
        return []
    if part[-1] == len(symbols) - 1:
        part = part[:-1]
    behind = places_of(symbols[part + 1])
    return [part] if len(behind) == 1 else [part[at] for at in behind]


def _passes(events: Events) -> list[Ints]:
    """Return what follows forward passes that compute the same, as often, or as long, each between two reads or waits.

    A target's kernels may be called as its draft's are: only the whole pass is another, or has more layers.
    """
    waits = events.waits
    between: Ints = np.cumsum(waits) - waits
    computes = events.what == COMPUTE
    holder, kind, counts = tallied_in(between[computes], events.alike[computes])
    layered = distinct(holder[counts >= thresholds.LAYERS])
    mine = np.isin(holder, layered)
    holder, counts = np.searchsorted(layered, holder[mine]), counts[mine]
    weights = np.random.default_rng(0).integers(1, 2**62, int(events.alike.max()) + 1)[kind[mine]]
    contents = np.zeros((2, len(layered)), np.int64)
    for content, values in zip(contents, (weights, weights * counts), strict=True):
        np.add.at(content, holder, values)
    took = np.bincount(between[computes], (events.end_ns - events.start_ns)[computes])[layered]
    bounds = np.concatenate(([0], np.flatnonzero(waits) + 1, [len(events)]))
    numbers = [np.unique(content, return_inverse=True)[1].reshape(-1) for content in contents]
    numbers.append(classes_of(took, took, thresholds.LENGTH_RATIO))
    alike = [layered[part] for number in numbers for part in places_of(number)]
    ends = [bounds[one + 1] for one in alike if len(one) < len(bounds) - 1]
    return [place[place < len(events)] for place in ends]


def _uploads(events: Events) -> Ints:
    """Return the first of the uploads in a row."""
    uploads = events.what == UPLOAD
    return np.flatnonzero(uploads & ~np.append(False, uploads[:-1]))


def counted(chosen: Bools) -> Ints:
    """Return how many are chosen before each position, and in all."""
    return np.concatenate(([0], np.cumsum(chosen)))


def _wide(part: Ints, told: list[Ints], events: int) -> bool:
    """Tell whether something comes over most of the events, by those of which there are enough to tell.

    Links that come far less often than the thing are those of prefills, in a program whose steps have none; a link is
    judged by links alone, since some steps may launch many graphs for the one of others. `told` counts them up to each
    position.
    """
    enough = [one for one in told if one[-1] >= max(thresholds.FEWEST, thresholds.TELLING * len(part))]
    length = np.diff(part)
    usual = length <= thresholds.LONG * median(length)
    held = [(np.diff(one[part]), int(one[-1])) for one in enough] or [(length, events)]
    return all(sizes[usual].sum() >= thresholds.SPREAD * of_all - 1 for sizes, of_all in held)


def alternate(one: Ints, other: Ints) -> bool:
    """Tell whether two things come by turns."""
    if abs(len(one) - len(other)) > max(1, (1 - thresholds.BY_TURNS) * max(len(one), len(other))):
        return False
    return share_by_turns(one, other, thresholds.BY_TURNS) >= thresholds.BY_TURNS


def share_by_turns(one: Ints, other: Ints, least: float) -> float:
    """Return the share of cycles of one in which the other begins once, or no more than may be, if below `least`.

    Those that don't come by turns show it soon: then no more of them is looked at.
    """
    if _each_in_its_own(one, other):
        return 1.0
    cycles = max(len(one) - 1, 1)
    apart, share, some = 0, 0.0, max(cycles // 8, _SOME)
    for first in range(0, cycles, some):
        apart += int(np.count_nonzero(np.diff(np.searchsorted(other, one[first : first + some + 1])) != 1))
        if (share := (cycles - apart) / cycles) < least:
            break
    return share


def _each_in_its_own(one: Ints, other: Ints) -> bool:
    """Tell whether the other comes once in all cycles of one, of which each is compared with that in its place."""
    first, cycles = int(np.searchsorted(other, one[0])) if len(one) else 0, len(one) - 1
    held, behind = other[first : first + cycles], other[first + cycles : first + cycles + 1]
    if cycles < 1 or len(held) < cycles or (behind < one[-1]).any():
        return False
    return bool((held >= one[:-1]).all() and (held < one[1:]).all())


def _begins(events: Events, members: list[Ints], single: list[bool]) -> Ints:
    """Begin the cycle where the host goes on once it has its result, if it works there, else where it works longest.

    That is at or a few events from one of the things that come once in a cycle; at a thing itself, if the host works
    about as long there. The result is read once a cycle: the read of the last layer, told by what follows it, is none.
    """
    different = {id(one): one for one in members}.values()
    places = [(one + distance, distance) for distance in thresholds.NEARBY for one in different]
    usual = _worked_at_each(events, [place for place, _ in places])
    worked = [
        one * (thresholds.AT_A_THING if distance else 1.0) for one, (_, distance) in zip(usual, places, strict=True)
    ]
    order = np.argsort(np.negative(worked), kind="stable").tolist()
    best = _best_place(events, [places[number][0] for number in order], [worked[number] for number in order])
    results = [one for one, alone in zip(members, single, strict=True) if alone]
    behind = [_behind(events, one) for one in results if np.mean(events.waits[one]) > thresholds.MOSTLY]
    goes_on = max(behind, key=lambda place: _worked(events, place), default=None)
    if goes_on is not None and _worked(events, goes_on) >= thresholds.GOES_ON * worked[order[best]]:
        return goes_on
    longest: Ints = places[order[best]][0]
    return longest[(longest >= 0) & (longest < len(events))]


def _best_place(events: Events, places: list[Ints], worked: list[float]) -> int:
    """Return which place a cycle begins at, of those in the order of how long the host works there.

    That is none behind reads as there are elsewhere, unless the host works nowhere else: then that behind most compute,
    since the token is what the longest pass gives.
    """
    apart = next((number for number, place in enumerate(places) if not _as_elsewhere(events, place)), 0)
    if worked[apart] >= min(thresholds.HOST_WORK_NS, worked[0]):
        return apart
    near = sum(one >= thresholds.AT_A_THING * worked[0] for one in worked)
    return max(range(near), key=lambda number: _computed(events, places[number]))


def _computed(events: Events, place: Ints) -> float:
    """Return how long is usually computed between the last read or wait but one before some events, and the last."""
    inside = place[(place > 0) & (place < len(events))]
    waits = np.append(np.flatnonzero(events.waits), len(events))
    took = np.concatenate(([0], np.cumsum(np.where(events.what <= REPLAY, events.end_ns - events.start_ns, 0))))
    last = np.searchsorted(waits, inside) - 1
    known = last > 0
    return median((took[waits[last]] - took[waits[last - 1]])[known]) if known.any() else 0.0


def _as_elsewhere(events: Events, place: Ints) -> bool:
    """Tell whether the host works as long behind the same reads elsewhere: those of every layer, not of the last."""
    read = place[(place > 0) & (place < len(events))] - 1
    if not len(read) or np.mean(events.waits[read]) <= thresholds.MOSTLY:
        return False
    elsewhere = events.exact[:-1] == np.bincount(events.exact[read]).argmax()
    elsewhere[read] = False
    others = np.flatnonzero(elsewhere)
    if len(others) <= thresholds.MOSTLY * len(read):
        return False
    return _worked(events, read + 1) < thresholds.ELSEWHERE * _worked(events, others + 1)


def _worked_at_each(events: Events, places: list[Ints]) -> list[float]:
    """Return the same for several places, many of which are a few events from a thing that comes there as well."""
    worked: list[float] = []
    known: dict[tuple[int, int], list[int]] = {}
    for number, place in enumerate(places):
        alike = known.setdefault((len(place), int(place[0])), [])
        same = next((one for one in alike if np.array_equal(places[one], place)), None)
        worked.append(_worked(events, place) if same is None else worked[same])
        alike.append(number)
    return worked


def _worked(events: Events, place: Ints) -> float:
    """Return how long the host usually works before some events, which are in order."""
    first, last = np.searchsorted(place, (0, len(events)))
    return median(events.host_ns[place[first:last]]) if first < last else -1.0


def _behind(events: Events, links: Ints) -> Ints:
    """Return what follows reads and waits, and the reads and waits right behind them."""
    following = np.append(np.flatnonzero(~events.waits), len(events))
    place = following[np.searchsorted(following, links, side="right")]
    return distinct(place[place < len(events)])


def agree(one: Ints, other: Ints) -> bool:
    """Tell whether two lists of moments come once in each other's cycles, nearly all of them."""
    return alternate(one, other) or alternate(other, one)


def with_first(events: Events, begins: Ints) -> Ints:
    """Add the cycle before the first begin, if it begins as the others do, or is as long and computes the same."""
    while len(more := _with_one_more(events, begins)) > len(begins):
        begins = more
    return begins


def _with_one_more(events: Events, begins: Ints) -> Ints:
    if len(begins) < thresholds.FEWEST or not begins[0]:
        return begins
    things, counts = np.unique(events.alike[begins], return_counts=True)
    thing = np.flatnonzero(events.alike == things[np.argmax(counts)])
    same = thing[thing < begins[0]]
    if len(same) and events.links[same[0]] and (events.what[same[0] : begins[0]] <= REPLAY).any():
        usual = int(np.median(np.diff(np.searchsorted(thing, begins))))
        nearest = same[-min(max(usual, 1), len(same))]
        whole = first_is_whole(events, np.append(nearest, begins))
        longer = np.append(nearest if whole else same[0], begins)
        done = np.diff(counted(events.what <= REPLAY)[longer])
        return longer if 2 * done[0] >= done[1:].min() else begins
    worked = events.host_ns[thing] >= thresholds.COMPARABLE * np.median(events.host_ns[begins])
    worked[thing == 0] = True
    known = thing[worked] if worked[: len(same)].any() else thing
    usual = int(np.median(np.diff(np.searchsorted(known, begins))))
    before = known[known < begins[0]]
    nearest = before[-max(usual, 1) :][:1]
    if len(nearest) and first_is_whole(events, np.append(nearest, begins)):
        return np.append(nearest, begins)
    return np.append(0, begins) if _computes_the_same(events, begins) else begins


def first_is_whole(events: Events, begins: Ints) -> bool:
    """Tell whether the first cycle launches all kinds that the two behind it do, and neither far more nor far less."""
    if len(begins) <= thresholds.FEWEST:
        return False
    done = np.diff(np.concatenate(([0], np.cumsum(events.what <= REPLAY)))[begins])
    as_much = done[1:].min() <= 2 * done[0] <= 4 * done[1:].max()
    return bool(as_much) and _share_of_kinds(events, begins[1:], int(begins[0])) == 1


def _computes_the_same(events: Events, begins: Ints) -> bool:
    """Tell whether what precedes the first begin launches all kinds that cycles do, or as much, of most kinds."""
    done = np.concatenate(([0], np.cumsum(events.what <= REPLAY)))[begins]
    lengths = np.array([np.median(np.diff(done)), done[1] - done[0]])
    as_much = (np.abs(done[0] - lengths) <= thresholds.WHOLE_CYCLE * lengths).any()
    share = _share_of_kinds(events, begins)
    return bool(share > thresholds.MOSTLY if as_much else share == 1 and done[0] <= 2 * lengths.max())


def _share_of_kinds(events: Events, begins: Ints, since: int = 0) -> float:
    """Return the share of what most of the first cycles launch that comes before them as well, but for reads."""
    launched = (events.what != READ) & (events.what != WAIT)
    kinds = np.where(events.what <= REPLAY, events.alike, -events.what)
    edges = [since, *begins[: thresholds.MANY + 1].tolist()]
    here, *cycles = (distinct(kinds[low:high][launched[low:high]]) for low, high in pairwise(edges))
    found, counts = np.unique(np.concatenate(cycles), return_counts=True)
    usual = found[counts > thresholds.MOSTLY * len(cycles)]
    return float(np.isin(usual, here).mean()) if len(usual) else 0.0
