"""The steps of one lane: everything that recurs, and every NVTX range, is held against all the others."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.errors import UsageError
from bubblefinder.intervals import begin_and_end, distinct
from bubblefinder.steps import thresholds
from bubblefinder.steps.boundaries import seam_boundaries
from bubblefinder.steps.by_cadence import find_cadence
from bubblefinder.steps.by_nvtx import asked_mark, marks_of
from bubblefinder.steps.choose import Choice, choose
from bubblefinder.steps.events import REPLAY, event_boundaries, lane_events, set_up_end
from bubblefinder.steps.model import Rival
from bubblefinder.steps.recurrence import Segmentation, agree, first_is_whole, recurring, with_first
from bubblefinder.steps.roles import replay_roles, role_frame
from bubblefinder.steps.signatures import replay_signatures

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.by_cadence import Cadence
    from bubblefinder.steps.by_nvtx import Mark
    from bubblefinder.steps.events import Events
    from bubblefinder.steps.lane import RankWork
    from bubblefinder.steps.model import Confidence
    from bubblefinder.timeline.model import Timeline


_CLOSED: Final = 2
"""Begins of a closed step and of the one behind it."""


@dataclass(frozen=True, slots=True)
class Detected:
    """The steps of one lane before they are laid beside the others."""

    lane: RankWork
    events: Events
    method: str
    confidence: Confidence
    mark: str | None
    boundaries: Ints
    roles: pl.DataFrame
    rival: Rival | None = None


def detect(timeline: Timeline, lane: RankWork, method: str | None, pattern: str) -> Detected | None:
    """Return the steps of a lane, by the method asked for or the best there is; null if nothing recurs.

    Raises:
        UsageError: a pattern is no regular expression.
    """
    signatures = replay_signatures(timeline, lane) if len(lane.replays) else None
    events = lane_events(timeline, lane, signatures)
    if method == "kernel":
        return _by_kernel(timeline, lane, events, pattern)
    cadence = find_cadence(signatures) if signatures and len(lane.replays) > 1 else None
    roles = role_frame(lane, replay_roles(timeline, lane, cadence), cadence) if cadence else _no_roles(lane)
    if pattern and method == "nvtx":
        asked = asked_mark(timeline, lane, events, pattern)
        return Detected(lane, events, "nvtx", "high", asked.text, asked.boundaries, roles) if asked else None
    nothing = Detected(lane, events, "", "low", None, np.empty(0, np.int64), roles)
    return _best(timeline, nothing, _Asked(method, int(pattern) if pattern else None), cadence)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the user asked for: a method, and about how many steps; null for the best there is."""

    method: str | None
    about: int | None

    @property
    def only(self) -> str | None:
        """The method that alone counts; asked for a number, all segmentations do."""
        return self.method if self.about is None else None


def _best(timeline: Timeline, lane: Detected, asked: _Asked, cadence: Cadence | None) -> Detected | None:
    """Choose among all segmentations, or among those of the method asked for."""
    method = asked.only
    steady = lane.events.after(set_up_end(timeline, lane.events))
    if not len(steady):
        return None
    marks = marks_of(timeline, lane.lane, lane.events, int(steady.launch_ns[0])) if method in (None, "nvtx") else []
    recurs = _recurring(steady, method)
    choice = choose(steady, _segmentations(steady, lane.lane, marks, recurs, method, cadence), asked.about)
    if choice is None:
        return None
    found = replace(lane, confidence=_confidence(choice), rival=_rival(choice, marks))
    if choice.chosen.mark is not None and asked.about is None:
        mark = next(mark for mark in marks if mark.text == choice.chosen.mark)
        return replace(found, method="nvtx", mark=mark.called, boundaries=mark.boundaries)
    begins = with_first(steady, choice.chosen.begins)
    whole = method is None and first_is_whole(steady, begins)
    boundaries = _as_cadence(timeline, lane.lane, cadence, event_boundaries(steady, begins), first_is_whole=whole)
    if len(boundaries) < _CLOSED:
        return None
    by = asked.method or ("cadence" if _by_replays(lane.lane, boundaries) else "sequence")
    return replace(found, method=by, boundaries=boundaries)


def _segmentations(
    events: Events,
    lane: RankWork,
    marks: list[Mark],
    recurs: list[Segmentation],
    method: str | None,
    cadence: Cadence | None,
) -> list[Segmentation]:
    """Return every way to cut the events that has a closed step, of one method or of all."""
    order = np.argsort(events.start_ns, kind="stable")
    begun = events.start_ns[order]
    found = [_of_mark(_positions(order, begun, mark.boundaries), mark) for mark in marks]
    found += recurs
    if cadence is not None and method in (None, "cadence"):
        starts = lane.replays["start_ns"].to_numpy()[cadence.starts]
        begins = _positions(order, begun, starts[starts >= begun[0]])
        found.append(Segmentation(begins, 1, solid=True))
    if len(passes := _passes(events, lane)):
        begins = _positions(order, begun, passes)
        found.append(Segmentation(begins, 1, solid=True, bonus=thresholds.PASS_POINTS))
    return [one for one in found if len(one) >= _CLOSED]


def _recurring(events: Events, method: str | None) -> list[Segmentation]:
    """Return the segmentations by what recurs, of one method or of all."""
    if method == "nvtx":
        return []
    considered = _considered(events, method)
    return [one.at(considered) for one in recurring(events.at(considered))]


def _rival(choice: Choice, marks: list[Mark]) -> Rival | None:
    """Return the segmentation that is nearly as good as the one chosen, and how it is asked for."""
    other = choice.rival
    if other is None:
        return None
    pattern = next((mark.pattern for mark in marks if mark.text == other.mark), None)
    return Rival(len(other), f"nvtx:{pattern}" if pattern else f"sequence:{len(other)}")


def _considered(events: Events, method: str | None) -> Bools:
    """Tell which events may recur: replays alone, or all else, where a method is asked for."""
    if method == "cadence":
        return np.asarray(events.what == REPLAY, np.bool_)
    return np.asarray((events.what != REPLAY) | (method != "sequence"), np.bool_)


def _confidence(choice: Choice) -> Confidence:
    steps = len(choice.chosen)
    sure = choice.margin >= (thresholds.HIGH if steps >= thresholds.PLENTY else thresholds.HIGH_OF_FEW)
    if sure and steps >= thresholds.MANY:
        return "high"
    return "medium" if choice.margin >= thresholds.MEDIUM and len(choice.chosen) >= thresholds.MANY else "low"


def _positions(order: Ints, begun: Ints, moments: Ints) -> Ints:
    """Return the positions of the events that begin at or behind moments on the GPU.

    Args:
        order: the positions of the events by their begin.
        begun: when each of these began.
        moments: the moments.
    """
    place = np.searchsorted(begun, moments)
    return distinct(order[place[place < len(order)]])


def _of_mark(begins: Ints, mark: Mark) -> Segmentation:
    return Segmentation(begins, 1, solid=True, mark=mark.text, bonus=mark.bonus)


def _passes(events: Events, lane: RankWork) -> Ints:
    """Return when graphs that run their nodes several times a launch begin each pass, if these do most of the work."""
    passes = lane.passes
    if passes.is_empty():
        return np.empty(0, np.int64)
    length = (pl.col("end_ns") - pl.col("start_ns")).sum()
    steady = pl.col("start_ns") >= events.start_ns.min()
    took, whole = (rows.filter(steady).select(length).item() for rows in (passes, lane.operations))
    return passes["start_ns"].to_numpy()[: len(passes) if took >= thresholds.PASS_SHARE * whole else 0]


def _as_cadence(
    timeline: Timeline, lane: RankWork, cadence: Cadence | None, boundaries: Ints, *, first_is_whole: bool
) -> Ints:
    """Cut at the widest gap of each seam, where the cadence of the replays has the same steps."""
    if cadence is None or len(boundaries) < _CLOSED:
        return boundaries
    begun = lane.replays["start_ns"].to_numpy()[cadence.starts]
    starts = cadence.starts[begun >= boundaries[0] - (boundaries[1] - boundaries[0])]
    same = len(starts) >= _CLOSED and agree(boundaries, lane.replays["start_ns"].to_numpy()[starts])
    if not same:
        return boundaries
    return seam_boundaries(timeline, lane, _settled(lane, starts, boundaries, first_is_whole=first_is_whole))


def _settled(lane: RankWork, starts: Ints, boundaries: Ints, *, first_is_whole: bool) -> Ints:
    """Begin the few cycles that lost a replay, or follow other ones, where the events do, if nearly all agree.

    So with the first cycle, if the events say that it is whole. A cycle with as many replays as two holds two.
    """
    begun = lane.replays["start_ns"].to_numpy()
    firsts = np.searchsorted(begun, boundaries)
    starts = np.union1d(firsts[:1], starts) if first_is_whole and starts[0] >= firsts[1] else starts
    odd = ~np.isin(starts, firsts)
    if not odd.any() or odd.mean() > thresholds.RARE:
        return starts
    place = np.searchsorted(boundaries, begun[starts], side="right") - 1
    instead = firsts[np.maximum(place, 0)]
    replays = np.diff(np.append(firsts, len(begun)))
    one = (replays < 2 * np.median(replays))[np.maximum(place, 0)]
    return np.unique(np.where(odd & (place >= 0) & (one | ~np.isin(instead, starts)), instead, starts))


def _by_replays(lane: RankWork, boundaries: Ints) -> bool:
    """Tell whether most cycles launch graphs."""
    begun = np.searchsorted(boundaries, lane.replays["start_ns"].to_numpy(), side="right")
    return len(distinct(begun[begun > 0])) >= thresholds.GRAPH_STEPS * len(boundaries)


def _by_kernel(timeline: Timeline, lane: RankWork, events: Events, pattern: str) -> Detected | None:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--step-by kernel: {pattern!r} is not a regular expression: {error}") from error
    names = lane.operations["name"].unique().drop_nulls()
    wanted = [name for name in names if expression.search(timeline.trace.names.get(name, ""))]
    begins = lane.operations.filter(pl.col("name").is_in(wanted))["start_ns"].unique().sort().to_numpy()
    if len(begins) < _CLOSED:
        return None
    return Detected(lane, events, "kernel", _once(lane, begins), pattern, begins, _no_roles(lane))


def _once(lane: RankWork, boundaries: Ints) -> Confidence:
    """Doubt a kernel that comes several times in one replay: it hardly comes once a step."""
    starts, ends = begin_and_end(lane.replays)
    inside = np.searchsorted(boundaries, ends) - np.searchsorted(boundaries, starts)
    return "low" if len(inside) and inside.max() > 1 else "medium"


def _no_roles(lane: RankWork) -> pl.DataFrame:
    return lane.replays.select(
        "replay_index", role=pl.lit(None, dtype=pl.String), position=pl.lit(None, dtype=pl.Int64)
    )
