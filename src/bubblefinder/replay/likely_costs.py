"""What a step may be without the profiler, where the capture alone can't tell: by what tracing was seen to cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubblefinder.overhead.calibration import likely_costs
from bubblefinder.replay.changes import NEVER_LATE, HostSpeed
from bubblefinder.replay.correct import in_a_program
from bubblefinder.replay.predict import host_noise, steps_after, steps_at
from bubblefinder.replay.tracing import remove_tracing, tracing_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.model import Model
    from bubblefinder.replay.predict import Prediction
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.timeline.rank import Rank


@dataclass(frozen=True, slots=True)
class Untraced:
    """A rank's median step after some changes and without the profiler.

    Attributes:
        low_ns: the shortest: less the most that tracing was seen to cost, on a host as fast as another run may show it.
        high_ns: the longest: the least is, on a host as slow.
        most_ns: the most that the changes give without the profiler, on a host as fast as recorded or as that.
    """

    low_ns: int
    high_ns: int
    most_ns: int


def without_tracing(timeline: Timeline, model: Model, rank: Rank, changes: Sequence[Change]) -> Untraced | None:
    """Return what a rank's step is after changes and without the profiler; None where nothing is known of its cost."""
    costs = likely_costs(timeline, rank.gpu)
    if costs is None:
        return None
    tracing, noise = tracing_of(timeline, model), host_noise(model)
    most, least = (remove_tracing(tracing, end) for end in (in_a_program(costs.most()), costs.least()))
    slow = steps_after(model, [least, *changes, HostSpeed(1 - noise)])[rank]
    steps = [[steps_at(model, [most, *after], speed)[rank] for speed in (1 + noise, 1.0)] for after in ((), changes)]
    gains = [before - then for before, then in zip(*steps, strict=True)]
    return Untraced(min(steps[1][0], slow), slow, max(*gains, 0))


def left_without_tracing(timeline: Timeline, model: Model, hosts: Mapping[Rank, Prediction]) -> dict[Rank, float]:
    """Return by rank which part of what a late host costs surely remains without the profiler, where that is known."""
    found = {}
    for rank, never_late in hosts.items():
        costs = likely_costs(timeline, rank.gpu)
        if costs is None:
            continue
        untraced = remove_tracing(tracing_of(timeline, model), in_a_program(costs.most()))
        left = steps_after(model, [untraced])[rank] - steps_after(model, [untraced, NEVER_LATE])[rank]
        if never_late.recoverable_ns > 0:
            found[rank] = min(max(left, 0) / never_late.recoverable_ns, 1.0)
    return found
