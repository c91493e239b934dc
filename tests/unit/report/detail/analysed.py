"""A decode loop with a blocking read, taken through the stages that the details are drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from bubblefinder.causes.find import find_causes
from bubblefinder.report.detail.lane import decode_windows, lane_of
from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline
from tests.loops import Loop

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.causes.model import Causes
    from bubblefinder.report.ledgers import Lane
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import Trace

STEPS = 8


@dataclass(frozen=True, slots=True)
class Analysed:
    """What the details are drawn from."""

    timeline: Timeline
    steps: Steps
    causes: Causes
    lane: Lane
    decode: pl.DataFrame


def analysed(trace: Trace) -> Analysed:
    timeline = build_timeline(trace)
    steps = find_steps(timeline, None)
    lane = lane_of(steps)
    assert lane is not None
    return Analysed(timeline, steps, find_causes(timeline, steps), lane, decode_windows(steps, lane))


@cache
def loop(*, node_mode: bool = True) -> Analysed:
    """The loop of eight steps, in node or in graph mode."""
    made = Loop(node_mode=node_mode)
    for _ in range(STEPS):
        made.step()
    return analysed(made.sketch.trace())
