"""The segmentation that is the steps: of all that recur, the one that no other contradicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.steps import thresholds
from bubblefinder.steps.contrast import contrast
from bubblefinder.steps.events import COMPUTE, READ, REPLAY
from bubblefinder.steps.recurrence import counted, share_by_turns
from bubblefinder.steps.turns import whole_passes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bubblefinder.intervals import Ints
    from bubblefinder.steps.events import Events
    from bubblefinder.steps.recurrence import Segmentation


@dataclass(frozen=True, slots=True)
class Choice:
    """A segmentation, and how much more speaks for it than against it."""

    chosen: Segmentation
    margin: float
    next_best: Segmentation | None
    next_margin: float

    @property
    def rival(self) -> Segmentation | None:
        """Another segmentation that is nearly as good; null if none is."""
        return self.next_best if self.margin - self.next_margin < thresholds.NEARLY_AS_GOOD else None


def choose(events: Events, found: Sequence[Segmentation], about: int | None = None) -> Choice | None:
    """Return the segmentation that the others contradict least, or the one with about so many cycles."""
    levels = _levels(events, found)
    if not levels:
        return None
    links = counted(events.links)
    linked = [_linked(links, one) for one in levels]
    margins = _margins(events, levels, linked)
    margins[[not (sure or one.bonus) and _doubtful(one, found) for sure, one in zip(linked, levels, strict=True)]] = 0
    order = np.argsort(-margins, kind="stable").tolist()
    if about is not None:
        order.sort(key=lambda number: abs(len(levels[number]) - about))
    second = order[1] if len(order) > 1 else None
    return Choice(
        levels[order[0]],
        float(margins[order[0]]),
        None if second is None else levels[second],
        -thresholds.UNCONTRADICTED if second is None else float(margins[second]),
    )


def _margins(events: Events, levels: Sequence[Segmentation], linked: Sequence[bool]) -> NDArray[np.float64]:
    """Return the least points of each segmentation against any other."""
    margins = np.where(linked, thresholds.UNCONTRADICTED, thresholds.UNLINKED)
    begins, stretch = _stretch(events, levels)
    for i, shorter in enumerate(begins):
        for j, longer in enumerate(begins):
            if not len(longer) or len(shorter) < thresholds.LEVEL * len(longer):
                continue
            if _by_chance(levels[i], levels[j], linked=linked[i]):
                margins[j] = min(margins[j], thresholds.BASE_POINTS)
            elif compared := contrast(stretch, shorter, longer):
                points = compared.points
                margins[j] = min(margins[j], points)
                margins[i] = min(margins[i], -points)
                if margins[i] >= thresholds.HIGH and _as_layers(stretch, shorter, longer):
                    margins[i] = thresholds.UNLINKED
    if len(levels) == 1 and not linked[0] and _others_recur(events, levels[0]):
        margins[0] = 0.0
    margins[[_of_a_prefill(events, one, levels) for one in levels]] = 0.0
    return np.asarray(margins + [one.bonus for one in levels], np.float64)


def _by_chance(shorter: Segmentation, longer: Segmentation, *, linked: bool) -> bool:
    """Tell whether little bears longer cycles out, of uneven numbers of those that a known name or more marks.

    A loop that runs ahead and takes a prompt now and then has such: its steps begin by turns beside a copy. So has one
    whose requests end now and then, which its batches are made anew for, sometimes behind more steps than a target has
    drafts; `linked` tells whether each of its steps passes something between host and GPU, as layers seldom do.
    """
    if longer.mark is not None or longer.bonus:
        return False
    held = np.diff(np.searchsorted(shorter.begins, longer.begins))
    if shorter.bonus >= thresholds.KNOWN_POINTS and longer.members == 1 < shorter.members and np.ptp(held) > 0:
        return True
    more = linked and shorter.members > longer.members
    return bool(more and held.max(initial=0) > max(thresholds.DRAFTS, 2 * np.median(held)))


def _as_layers(events: Events, shorter: Ints, longer: Ints) -> bool:
    """Tell whether shorter cycles may be layers: all longer ones hold as many, and none is a forward pass by itself."""
    held = np.diff(np.searchsorted(shorter, longer))
    even = len(held) > 0 and np.ptp(held) == 0 and held[0] >= thresholds.LAYERS
    return bool(even) and not whole_passes(events, shorter)


def _of_a_prefill(events: Events, one: Segmentation, levels: Sequence[Segmentation]) -> bool:
    """Tell whether cycles neither run graphs nor read anything back, and all come before or behind others that do.

    So do the layers of a prefill that runs kernel by kernel, ahead of decode steps that replay a graph.
    """
    apart = (other for other in levels if other.begins[0] > one.begins[-1] or other.begins[-1] < one.begins[0])
    return any(_has(events, other, REPLAY) and _has(events, other, READ) for other in apart) and not (
        _has(events, one, REPLAY) or _has(events, one, READ)
    )


def _has(events: Events, one: Segmentation, what: int) -> bool:
    """Tell whether most cycles have an event of a kind."""
    return bool(np.median(np.diff(counted(events.what == what)[one.begins])) > 0)


def _others_recur(events: Events, one: Segmentation) -> bool:
    """Tell whether anything is computed again and again, but seldom: the cycles may be layers."""
    counts = np.bincount(events.alike[events.what <= REPLAY])
    return bool(((counts > 1) & (counts < thresholds.MOSTLY * len(one))).any())


def _doubtful(one: Segmentation, found: Sequence[Segmentation]) -> bool:
    """Tell cycles without links, of which one succession of kernels tells that they are many to a longer, even cycle.

    Layers whose pass begins with a kernel that they have as well show themselves so.
    """
    longer = (other.begins for other in found if not other.solid)
    many = (begins for begins in longer if thresholds.FEWEST <= len(begins) < len(one) / thresholds.ALTERNATING)
    return any(np.ptp(np.diff(begins)) == 0 for begins in many)


def _linked(links: Ints, one: Segmentation) -> bool:
    """Tell whether nearly every cycle passes something between host and GPU; `links` up to each event."""
    return bool(np.count_nonzero(np.diff(links[one.begins])) >= thresholds.FILLED * (len(one) - 1))


def _levels(events: Events, found: Sequence[Segmentation]) -> list[Segmentation]:
    """Leave out cycles most of which compute nothing, and all but one of those that come by turns."""
    computing = counted((events.what == COMPUTE) | (events.what == REPLAY))
    begun = np.array([0, len(events)])
    worked = counted(events.what <= REPLAY)
    levels: list[Segmentation] = []
    for one in sorted(found, key=lambda one: -one.members):
        filled = np.count_nonzero(np.diff(computing[np.insert(begun, 1, one.begins)]))
        if not one.solid or filled < thresholds.FILLED * len(one):
            continue
        same = next((n for n, other in enumerate(levels) if _same(one, other)), None)
        if same is None:
            levels.append(one)
        else:
            levels[same] = _joined(worked, levels[same], one)
    borne_out = [one for one in levels if one.mark is None or one.bonus or one.members > 1] or levels
    borne_out = [one for one in borne_out if len(one) >= thresholds.FEWEST] or borne_out
    borne_out.sort(key=lambda one: (one.bonus > 0, one.members), reverse=True)
    return borne_out[: thresholds.MOST_LEVELS]


def _joined(worked: Ints, one: Segmentation, other: Segmentation) -> Segmentation:
    """Return one of two that are the same: the one that NVTX names, unless it begins behind work of the cycle."""
    members = one.members + other.members
    if one.mark is not None and (one.bonus or _begin_together(worked, one.begins, other.begins)):
        return replace(one, members=members)
    if one.mark is not None or (other.bonus, other.members) > (one.bonus, one.members):
        return replace(other, members=members)
    return replace(one, members=members)


def _begin_together(worked: Ints, one: Ints, other: Ints) -> bool:
    """Tell whether hardly any begin of one lies behind work that follows a begin of the other."""
    mine, theirs = worked[one], np.append(worked[other], -1)
    return bool(np.mean(theirs[np.searchsorted(theirs[:-1], mine)] == mine) >= thresholds.SAME)


def _same(one: Segmentation, other: Segmentation) -> bool:
    """Tell whether two are the same: nearly all cycles of them, or but for cycles in between, of which little comes."""
    if min(len(one), len(other)) <= 1:
        return False
    near = max(len(one), len(other)) < thresholds.NEAR * min(len(one), len(other))
    if near and share_by_turns(one.begins, other.begins, thresholds.SAME) > thresholds.SAME:
        return True
    longer, shorter = sorted((one, other), key=len)
    fewer, more = sorted((one.members, other.members))
    apart = len(shorter) >= thresholds.INTERRUPTED * len(longer) or not fewer <= thresholds.LITTLE < more
    if apart:
        return False
    between = np.diff(np.searchsorted(shorter.begins, longer.begins))
    return bool(np.mean(between == 1) > thresholds.MOSTLY and np.mean(between == 0) <= 1 - thresholds.SAME)


def _stretch(events: Events, levels: Sequence[Segmentation]) -> tuple[list[Ints], Events]:
    """Return the begins inside a stretch from the middle, and that stretch: it is enough to tell."""
    if len(events) <= thresholds.STRETCH:
        return [one.begins for one in levels], events
    first = (len(events) - thresholds.STRETCH) // 2
    inside = [one.begins[(one.begins >= first) & (one.begins < first + thresholds.STRETCH)] - first for one in levels]
    return inside, events.at(slice(first, first + thresholds.STRETCH))
