"""Which windows are drawn, and what lies in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.report.ledgers import Lane

if TYPE_CHECKING:
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline


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
    """Return the rows that start inside one of the windows, with `window_index`."""
    starts, ends = windows["start_ns"].to_numpy(), windows["end_ns"].to_numpy()
    times = rows["start_ns"].to_numpy()
    at = np.searchsorted(starts, times, side="right") - 1
    within = (at >= 0) & (times < ends[np.maximum(at, 0)])
    return rows.with_columns(window_index=windows["window_index"].gather(np.maximum(at, 0))).filter(pl.Series(within))


def roles_of(timeline: Timeline, steps: Steps) -> pl.DataFrame:
    """Return the role of each operation: op_index, role (null outside replays)."""
    replays = steps.replays.select("role").with_row_index("replay_index")
    return (
        timeline.operations.select("replay_index")
        .with_row_index("op_index")
        .join(replays, on="replay_index", how="left", maintain_order="left")
        .select("op_index", "role")
    )
