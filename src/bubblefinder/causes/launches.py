"""What every thread launched, in its own order: replays, eager phases, single kernels, and their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.timeline.launches import LAUNCHES

if TYPE_CHECKING:
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

PHASE_LAUNCHES: Final = 20
"""An eager phase is at least so many kernel launches in a row: fewer are the glue of a seam."""


def find_submissions(timeline: Timeline, steps: Steps) -> pl.DataFrame:
    """Return every call that put work on a GPU, by thread and time.

    Returns:
        gpu, process, thread, call_index, start_ns and end_ns (of the call), op_index (its first
        operation), api_role (timeline.apis.CallRole), replay_index, window_index (in
        `steps.windows`), phase (number of the run of launches it belongs to, null for copies and
        memsets) and role (of the replay or the eager phase, null for glue). Sorted by gpu, thread,
        start_ns.
    """
    first = pl.col("start_ns", "replay_index").gather(timeline.leads["op_index"])
    operations = timeline.operations.select(first).rename({"start_ns": "op_start_ns"})
    calls = timeline.calls.select("process", "thread", "start_ns", "end_ns", api_role="role")
    submitted = (
        timeline.leads.select("gpu", pl.col("call_index", "op_index").cast(pl.UInt32))
        .hstack(operations)
        .hstack(calls[timeline.leads["call_index"]])
        .with_columns(role=steps.replays["role"].gather(operations["replay_index"]))
        .sort("gpu", "thread", "start_ns", maintain_order=True)
    )
    submitted = submitted.with_columns(window_index=window_of(steps, submitted, "op_start_ns")).drop("op_start_ns")
    return _with_phases(submitted)


def window_of(steps: Steps, rows: pl.DataFrame, time: str) -> pl.Series:
    """Return the position in `steps.windows` of each row's (gpu, process) at a time; null outside them."""
    windows = (
        steps.windows.select("gpu", "process", "start_ns", "end_ns").with_row_index("window_index").sort("start_ns")
    )
    points = rows.select("gpu", "process", at=pl.col(time)).with_row_index("point").sort("at")
    found = points.join_asof(windows, left_on="at", right_on="start_ns", by=["gpu", "process"], check_sortedness=False)
    inside = pl.when(pl.col("at") < pl.col("end_ns")).then("window_index")
    return found.with_columns(window_index=inside).sort("point")["window_index"]


def _with_phases(submitted: pl.DataFrame) -> pl.DataFrame:
    """Number the phases: a replay is one, and so is a run of kernel launches with no replay between."""
    submitted = submitted.with_row_index("submission")
    launches = submitted.filter(pl.col("api_role").is_in([int(role) for role in LAUNCHES]))
    key = ("gpu", "thread")
    replay = pl.col("replay_index").is_not_null()
    last_role = pl.col("role").forward_fill().over(key)
    new = (
        replay
        | replay.shift(1, fill_value=True)
        | pl.any_horizontal(pl.col(key) != pl.col(key).shift(1))
        | pl.col("window_index").ne_missing(pl.col("window_index").shift(1))
    ).fill_null(value=True)
    phases = launches.with_columns(phase=new.cum_sum(), eager=~replay, last_role=last_role)
    name = (
        pl.when(pl.col("last_role").is_null()).then(pl.lit("eager")).otherwise(pl.format("eager after {}", "last_role"))
    )
    number = phases["phase"].to_numpy()
    long = pl.col("eager") & pl.Series(np.bincount(number)[number] >= PHASE_LAUNCHES)
    phases = phases.with_columns(role=pl.when(long).then(name).otherwise("role"))
    named = phases.select("submission", "phase", "role")
    joined = submitted.drop("role").join(named, on="submission", how="left", maintain_order="left")
    return joined.drop("submission")
