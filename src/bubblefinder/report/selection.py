"""What the user chose to look at, with the figures of the whole capture beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bubblefinder.report.model import Selection

if TYPE_CHECKING:
    from bubblefinder.pipeline import Analysis
    from bubblefinder.timeline.rank import Rank


def selection(analysis: Analysis, rank: Rank | None) -> Selection | None:
    """Return what was chosen; null if the whole capture was asked for."""
    if analysis.window is None and analysis.selected is None and analysis.step_by is None:
        return None
    whole = analysis.whole.steps
    mine = whole.windows.filter(pl.col("excluded").is_null())
    mine = mine.filter(rank.mine) if rank else mine
    middle = mine.select((pl.col("end_ns") - pl.col("start_ns")).median()).item()
    told = whole.of(rank)
    return Selection(
        window_ns=list(analysis.window) if analysis.window else None,
        steps=list(analysis.selected) if analysis.selected else None,
        step_by=analysis.step_by,
        count=len(mine),
        step_p50_ns=middle,
        method=told.method,
        confidence=told.confidence,
    )
