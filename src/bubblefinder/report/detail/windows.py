"""Which windows are drawn, what lies in them, and which of it is left where there is too much."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.intervals import every_position
from bubblefinder.lookup import kept, taken
from bubblefinder.timeline.rank import Rank

if TYPE_CHECKING:
    from bubblefinder.steps.model import Steps


def rank_of(steps: Steps) -> Rank | None:
    """Return the lowest rank with decode steps; null without decode steps."""
    return next(iter(Rank.in_rows(steps.windows.filter(steps.decode))), None)


def decode_windows(steps: Steps, rank: Rank) -> pl.DataFrame:
    """Return the decode steps of a rank with `window_index`, their position in the steps' windows."""
    windows = steps.windows.with_row_index("window_index")
    return kept(windows, rank.is_of(windows) & steps.decode)


def inside(rows: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows, sorted by start, that start inside one of the windows, with `window_index`."""
    times = rows["start_ns"].to_numpy()
    low, high = (np.searchsorted(times, windows[name].to_numpy()) for name in ("start_ns", "end_ns"))
    chosen, window = every_position(low, high)
    return taken(rows, chosen).hstack([windows["window_index"][window]])


def longest(rows: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Return at most so many rows, which are sorted by start and end: the longest."""
    if len(rows) <= limit:
        return rows
    return rows.sort(pl.col("end_ns") - pl.col("start_ns"), descending=True).head(limit).sort("start_ns", "end_ns")
