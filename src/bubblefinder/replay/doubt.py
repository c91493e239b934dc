"""What a change gives surely, where part of the recorded step may be the profiler's own time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.replay.changes import CaptureEager, FreeLaunches, HostSpeed, RemoveTracing, ShortenHost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.replay.changes import Change
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
        """Return the least and the most that a change gives, on the hosts that the run may have."""
        least, most = then.gain_range_ns
        return max(min(least - self._unplaced(then), round(self.sure * then.recoverable_ns)), 0), most

    def steps(self, then: Prediction) -> tuple[int, int]:
        """Return the shortest and the longest step that a change leaves, with or without what may be the profiler's."""
        shortest, longest = then.range_ns
        surely = then.now_ns - round(self.sure * then.recoverable_ns)
        return max(shortest - self._unplaced(then), 0), max(longest, surely)

    def _unplaced(self, then: Prediction) -> int:
        """Return how much may be the profiler's where no host without it was tried, since nothing else is known."""
        return 0 if then.untraced else self.profilers_ns or 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a change gives, as far as it can be told.

    Attributes:
        then: the step after it, by the recorded run.
        doubt: how much of that may be the profiler's.
    """

    then: Prediction
    doubt: Doubt = Doubt()

    @property
    def value(self) -> Prediction | None:
        """The prediction, where there is more to tell than a range."""
        return self.then if self.doubt.told else None

    @property
    def gain_range_ns(self) -> tuple[int, int]:
        """The least and the most that the step loses."""
        return self.doubt.gains(self.then)

    @property
    def step_range_ns(self) -> tuple[int, int]:
        """The shortest and the longest step then."""
        return self.doubt.steps(self.then)
