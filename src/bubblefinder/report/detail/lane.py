"""Which windows are drawn, and what lies in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.intervals import every_position
from bubblefinder.report.ledgers import Lane

if TYPE_CHECKING:
    from bubblefinder.steps.model import Steps


def lane_of(steps: Steps) -> Lane | None:
    """Return the lowest GPU with decode steps and its process; null without decode steps."""
    decode = steps.windows.filter(pl.col("excluded").is_null()).sort("gpu", "process")
    return Lane(int(decode["gpu"][0]), int(decode["process"][0])) if len(decode) else None


def decode_windows(steps: Steps, lane: Lane) -> pl.DataFrame:
    """Return the decode steps of a lane with `window_index`, their position in the steps' windows."""
    return steps.windows.with_row_index("window_index").filter(
        (pl.col("gpu") == lane.gpu) & (pl.col("process") == lane.process) & pl.col("excluded").is_null()
    )


def inside(rows: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows, sorted by start, that start inside one of the windows, with `window_index`."""
    times = rows["start_ns"].to_numpy()
    low, high = (np.searchsorted(times, windows[name].to_numpy()) for name in ("start_ns", "end_ns"))
    chosen, window = every_position(low, high)
    return rows[chosen].with_columns(window_index=windows["window_index"].gather(window))
