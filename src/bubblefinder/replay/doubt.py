"""What a change gives surely, where part of the recorded step may be the profiler's own time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.replay.changes import CaptureEager, FreeLaunches, HostSpeed, RemoveTracing, ShortenHost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.likely_costs import Untraced
    from bubblefinder.replay.predict import Prediction

SURE: Final = 0.95
"""Where less of what a cure gives surely remains without the profiler there is a range of it, but no value."""
_OF_THE_HOST: Final = (HostSpeed, FreeLaunches, CaptureEager, ShortenHost)
"""Changes that take off the host's own work, of which tracing makes more."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """How much of a gain may be the profiler's own time.

    Attributes:
        profilers_ns: how much of the step may be, where that can't be told; null where it can.
        sure: which part of the gain surely remains without the profiler.
    """

    profilers_ns: int | None = None
    sure: float = 1.0

    @property
    def told(self) -> bool:
        """Whether there is a value, and not a range alone."""
        return self.profilers_ns is None and self.sure >= SURE

    def about(self, changes: Sequence[Change]) -> Doubt:
        """Return the doubt that some changes leave: `sure` is about the host's own work."""
        if any(isinstance(change, RemoveTracing) for change in changes):
            return Doubt()
        return self if any(isinstance(change, _OF_THE_HOST) for change in changes) else Doubt(self.profilers_ns)

    def gains(self, then: Prediction) -> tuple[int, int]:
        """Return the least and the most that a change gives, by the host's speed and by what may be the profiler's."""
        least = min(then.now_ns - then.high_ns - (self.profilers_ns or 0), round(self.sure * then.recoverable_ns))
        return max(least, 0), then.now_ns - then.low_ns

    def steps(self, then: Prediction) -> tuple[int, int]:
        """Return the shortest and the longest step that a change leaves, with or without what may be the profiler's."""
        longest = max(then.high_ns, then.now_ns - round(self.sure * then.recoverable_ns))
        return max(then.low_ns - (self.profilers_ns or 0), 0), longest


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a change gives, as far as it can be told.

    Attributes:
        then: the step after it, by the recorded run.
        doubt: how much of that may be the profiler's.
        least_ns: what a part of the change surely gives by itself.
        untraced: the step after it without the profiler, as far as that is known: a host that tracing slows hides what
            a wait costs.
    """

    then: Prediction
    doubt: Doubt = Doubt()
    least_ns: int = 0
    untraced: Untraced | None = None

    @property
    def value(self) -> Prediction | None:
        """The prediction, where there is more to tell than a range."""
        return self.then if self.doubt.told else None

    @property
    def gain_range_ns(self) -> tuple[int, int]:
        """The least and the most that the step loses."""
        least, most = self.doubt.gains(self.then)
        hidden = self.untraced.most_ns if self.untraced and not self.doubt.told else 0
        return max(least, self.least_ns), max(most, hidden)

    @property
    def step_range_ns(self) -> tuple[int, int]:
        """The shortest and the longest step then."""
        shortest, longest = self.doubt.steps(self.then)
        if self.untraced and not self.doubt.told:
            shortest = min(shortest, self.untraced.low_ns)
        return shortest, min(longest, self.then.now_ns - self.least_ns) if self.least_ns else longest
