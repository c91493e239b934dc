"""What a step may be without the profiler, where the capture alone can't tell: by what tracing was seen to cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubblefinder.overhead.calibration import likely_costs
from bubblefinder.replay.changes import NEVER_LATE, HostSpeed
from bubblefinder.replay.correct import in_a_program
from bubblefinder.replay.predict import host_noise, steps_after
from bubblefinder.replay.tracing import remove_tracing, tracing_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.model import Model
    from bubblefinder.replay.predict import Prediction
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.timeline.rank import Rank


def range_without_tracing(
    timeline: Timeline, model: Model, rank: Rank, changes: Sequence[Change]
) -> tuple[int, int] | None:
    """Return between which ends a rank's step lies after changes and without the profiler; None where nothing is known.

    The low end takes off the most that tracing was seen to cost a program, on a host as fast as another run may show
    it; the high end the least, on one as slow.
    """
    costs = likely_costs(timeline, rank.gpu)
    if costs is None:
        return None
    tracing = tracing_of(timeline, model)
    noise = host_noise(model)
    ends = ((in_a_program(costs.most()), 1 + noise), (costs.least(), 1 - noise))
    low, high = (
        steps_after(model, [remove_tracing(tracing, end), *changes, HostSpeed(speed)])[rank] for end, speed in ends
    )
    return low, high


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
