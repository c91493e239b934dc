"""Drawings and captures taken through timeline, steps and causes in one go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from bubblefinder.causes.find import find_causes
from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline
from bubblefinder.trace.drawn import draw

if TYPE_CHECKING:
    from bubblefinder.causes.model import Causes
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import Trace


@dataclass(frozen=True, slots=True)
class Judged:
    """A capture and who is to blame in it."""

    timeline: Timeline
    steps: Steps
    causes: Causes

    def waits(self, *columns: str) -> list[Any]:
        """The waits by start: one value each for one column, else tuples."""
        rows = self.causes.waits.with_columns(pl.col("api").cast(pl.String)).select(columns).rows()
        return [row[0] for row in rows] if len(columns) == 1 else rows

    def bubbles_us(self) -> list[float]:
        """What each wait is charged with."""
        return [ns / 1000 for ns in self.waits("bubble_ns")]


def judge(trace: Trace) -> Judged:
    timeline = build_timeline(trace)
    steps = find_steps(timeline)
    return Judged(timeline, steps, find_causes(timeline, steps))


def drawn(picture: str) -> Judged:
    """A picture with one microsecond a character."""
    return judge(draw(picture, us_per_char=1))
