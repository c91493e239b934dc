"""What comes between steps and is none: prefills, waits for requests, and what precedes the first step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.intervals import NEVER
from bubblefinder.steps import thresholds
from bubblefinder.steps.events import READ, WAIT
from bubblefinder.steps.reasons import HEAD, NO_LOAD, PREFILL, SET_UP, TAIL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.content import Content
    from bubblefinder.steps.events import Events


@dataclass(slots=True)
class Pieces:
    """Windows as they are cut: where each begins, and why it is no decode step."""

    starts: list[int] = field(default_factory=list)
    reasons: list[str | None] = field(default_factory=list)

    def add(self, start: int, reason: str | None) -> None:
        """Begin a window; one that begins where the last does replaces it, prefills follow each other."""
        if self.starts and start <= self.starts[-1]:
            self.starts.pop()
            self.reasons.pop()
        if reason == PREFILL and self.reasons[-1:] == [PREFILL]:
            return
        self.starts.append(start)
        self.reasons.append(reason)


@dataclass(frozen=True, slots=True)
class Work:
    """The operations of a lane as the GPU ran them: when each began, the latest end so far, whether it is a read."""

    begun: Ints
    ended: Ints
    read: Bools

    @classmethod
    def of(cls, events: Events) -> Work:
        """Return the operations of events, without the host's waits."""
        works = np.flatnonzero(events.what != WAIT)
        works = works[np.argsort(events.start_ns[works], kind="stable")]
        ended = np.maximum.accumulate(events.end_ns[works])
        return cls(events.start_ns[works], ended, events.what[works] == READ)

    def next_after(self, after: int, until: int) -> int:
        """Return when the first operation that is no read begins, of those behind `after`; `until` at the latest."""
        low, high = np.searchsorted(self.begun, (after, until))
        later = self.begun[low:high][~self.read[low:high]]
        return int(later[0]) if len(later) else until

    def idle_before(self, moments: Ints) -> Ints:
        """Return since when nothing has run at each moment."""
        place = np.searchsorted(self.begun, moments)
        ended = np.append(self.ended, NEVER)[place - 1]
        idle: Ints = np.minimum(ended, moments)
        return idle


def with_interludes(events: Events, content: Content, waited: Callable[[], Waiting], first_ns: int) -> Pieces:
    """Cut the windows that carry prefill work into the step before, the prefill, and the step behind it.

    A pause far longer than a step before a prefill, or in which the host slept in the operating system, is a wait for
    requests and a window of its own; the step before it has no closing gap and is a tail. What precedes the first step
    is set-up if it is far longer than a step, else the rest of a step that began before the capture did.
    """
    work = Work.of(events)
    usual = float(np.median(content.ends - content.starts))
    lull = max(thresholds.LULL_NS, thresholds.LULL_RATIO * usual)
    pieces = _without_prefills(content, work)
    pieces.reasons[-1] = TAIL
    return _with_head(_with_lulls(pieces, work, waited, lull), content, first_ns, lull)


def _without_prefills(content: Content, work: Work) -> Pieces:
    """Return the windows, prefills cut out of them."""
    if not content.prefill.any():
        return Pieces(content.starts.tolist(), [None] * len(content.starts))
    pieces, took = Pieces(), _taken(content)
    for number, start in enumerate(content.starts.tolist()):
        if content.prefill[number] or _begins_prefill(content, number):
            _cut(pieces, content, work, took, number)
        else:
            pieces.add(start, None)
    return pieces


def _taken(content: Content) -> Ints:
    """Return how long each kind runs in all steps together."""
    steps = (content.window >= 0) & ~content.prefill[content.window]
    taken = np.zeros(int(content.alike.max(initial=0)) + 1, np.int64)
    np.add.at(taken, content.alike[steps], (content.end_ns - content.begin_ns)[steps])
    return taken


def _cut(pieces: Pieces, content: Content, work: Work, took: Ints, number: int) -> None:
    start = int(content.starts[number])
    mine = np.flatnonzero(content.window == number)
    foreign = mine[content.foreign[mine]]
    before, behind = (mine[mine < foreign[0]], mine[mine > foreign[-1]]) if len(foreign) else (mine[:0], mine[:0])
    first = start
    usual = _usual_near(content, number)
    if _whole(content.alike[before], usual, took):
        pieces.add(start, None)
        first = work.next_after(int(content.end_ns[before].max()), int(content.begin_ns[foreign[0]]))
    pieces.add(first, PREFILL)
    if _whole(content.alike[behind], usual, took):
        pieces.add(work.next_after(int(content.end_ns[foreign].max()), int(content.begin_ns[behind[0]])), None)


def _begins_prefill(content: Content, number: int) -> bool:
    """Tell whether a prefill begins at the end of a window: the host paused behind its first kernels."""
    if number + 1 == len(content.starts) or not content.prefill[number + 1]:
        return False
    mine = content.foreign[content.window == number]
    return bool(len(mine) and mine[-1])


def _usual_near(content: Content, number: int) -> Ints:
    """Return the kinds that most windows have, or those of the nearest step where steps run in several ways."""
    if len(content.usual):
        return content.usual
    steps = np.flatnonzero(~content.prefill)
    if not len(steps):
        return content.usual
    nearest = steps[np.argmin(np.abs(steps - number))]
    return np.unique(content.alike[content.window == nearest])


def _whole(alike: Ints, usual: Ints, took: Ints) -> bool:
    """Tell whether kinds make up a step: nearly all that steps have, or all but one of a few, and most of their work.

    A prompt's tokens are sampled as a step's are, with its log-probabilities: the forward pass alone tells them apart.
    """
    found = np.isin(usual, alike)
    few = len(found) >= thresholds.FEWEST and found.sum() >= len(found) - 1
    worked = took[usual[found]].sum() >= thresholds.WHOLE_STEP * took[usual].sum()
    return bool(len(found) and worked and (few or found.mean() >= thresholds.WHOLE_STEP))


@dataclass(frozen=True, slots=True)
class Waiting:
    """What the launching threads did while the GPU had nothing to do.

    Attributes:
        starts: when they slept in calls of the operating system ...
        ends: ... and until when.
        called: the starts of their CUDA calls, in order.
        loads: which of these load code.
    """

    starts: Ints
    ends: Ints
    called: Ints
    loads: Bools

    def covers(self, start: int, end: int) -> bool:
        """Tell whether one call lasted nearly all of a pause."""
        overlap = np.minimum(self.ends, end) - np.maximum(self.starts, start)
        return bool(len(overlap) and overlap.max() >= thresholds.ASLEEP * (end - start))

    def compiles(self, start: int, end: int) -> bool:
        """Tell whether the longest time without a call, in a pause, ends in loading code: it was made meanwhile."""
        first, last = np.searchsorted(self.called, (start, end), side="right")
        times = np.append(start, self.called[first:last])
        return bool(len(times) > 1 and self.loads[first:last][np.argmax(np.diff(times))])


def _with_lulls(pieces: Pieces, work: Work, waited: Callable[[], Waiting], lull: float) -> Pieces:
    """Make waits for requests windows of their own; a prefill for which kernels are compiled begins with that.

    A call of the operating system that comes back every few steps is part of these.
    """
    begins = np.array(pieces.starts, np.int64)
    idle, then = work.idle_before(begins[1:]), begins[1:]
    pauses = np.flatnonzero((then - idle > lull) & (idle > begins[:-1])).tolist()
    if not pauses:
        return pieces
    waiting = waited()
    before_prefill = [number for number in pauses if pieces.reasons[number + 1] == PREFILL]
    others = (number for number in pauses if number not in before_prefill)
    asleep = [number for number in others if waiting.covers(idle[number], then[number])]
    lulls = {*before_prefill, *([] if _every_few_steps(asleep) else asleep)}
    found = Pieces()
    for number, (start, reason) in enumerate(zip(pieces.starts, pieces.reasons, strict=True)):
        if number not in lulls:
            found.add(start, reason)
            continue
        found.add(start, reason or TAIL)
        compiled = number in before_prefill and waiting.compiles(idle[number], then[number])
        found.add(int(idle[number]), PREFILL if compiled else NO_LOAD)
    return found


def _every_few_steps(numbers: Sequence[int]) -> bool:
    """Tell whether pauses come back after the same few steps, several times: requests last longer, and vary."""
    apart = np.diff(numbers)
    return len(apart) >= thresholds.FEWEST - 1 and len(set(apart.tolist())) == 1 and apart[0] <= thresholds.FEW_STEPS


def _with_head(pieces: Pieces, content: Content, first_ns: int, lull: float) -> Pieces:
    """Put what precedes the first step in front: set-up, and the prefill of the first request."""
    begin = pieces.starts[0]
    if first_ns >= begin:
        return pieces
    usual = float(np.median(content.ends - content.starts))
    prefill = None if pieces.reasons[0] == PREFILL else _prefill_before(content, usual, begin - lull)
    reason = HEAD if prefill is None and begin - first_ns <= lull else SET_UP
    front = Pieces()
    if prefill is None or prefill > first_ns:
        front.add(first_ns, reason)
    if prefill is not None:
        front.add(max(prefill, first_ns), PREFILL)
    return Pieces([*front.starts, *pieces.starts], [*front.reasons, *pieces.reasons])


def _prefill_before(content: Content, usual: float, since: float) -> int | None:
    """Return when work foreign to the steps began, of what ran right before the first step; null for next to none."""
    early = np.flatnonzero(content.window < 0)
    foreign = early[~np.isin(content.alike[early], content.own)]
    if not len(foreign) or not len(content.own):
        return None
    pauses = content.begin_ns[foreign[1:]] - content.end_ns[foreign[:-1]]
    last = int(np.flatnonzero(pauses > thresholds.LULL_NS)[-1]) + 1 if (pauses > thresholds.LULL_NS).any() else 0
    run = foreign[last:]
    worked = int((content.end_ns[run] - content.begin_ns[run]).sum())
    near = content.end_ns[run[-1]] >= since
    return int(content.begin_ns[run[0]]) if near and worked > thresholds.WORTH * usual else None
