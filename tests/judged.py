"""Drawings and captures with all that is found in them, and their waits in microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from bubblefinder.pipeline import Analysis
from bubblefinder.trace.drawn import draw

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace


def cut(trace: Trace, window: tuple[int, int] | None = None, steps: tuple[int, int] | None = None) -> Trace:
    """A part of a capture: a window, counted from its start, or some decode steps."""
    return Analysis(trace, window, selected=steps).part


class Judged(Analysis):
    """A capture and who is to blame in it."""

    def waits(self, *columns: str) -> list[Any]:
        """The waits by start: one value each for one column, else tuples."""
        rows = self.causes.waits.with_columns(pl.col("api").cast(pl.String)).select(columns).rows()
        return [row[0] for row in rows] if len(columns) == 1 else rows

    def bubbles_us(self) -> list[float]:
        """What each wait is charged with."""
        return [ns / 1000 for ns in self.waits("bubble_ns")]


def judge(trace: Trace) -> Judged:
    return Judged(trace)


def drawn(picture: str) -> Judged:
    """A picture with one microsecond a character."""
    return judge(draw(picture, us_per_char=1))
