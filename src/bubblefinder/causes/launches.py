"""What every thread launched, in its own order: replays, eager phases, single kernels, and their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.lookup import NOWHERE, Timetable, nullable
from bubblefinder.timeline.launches import LAUNCHES

if TYPE_CHECKING:
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

_RANK: Final = ("gpu", "process")
_LANE: Final = ("gpu", "thread")
_NEVER: Final = np.iinfo(np.int64).min
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
        timeline.leads.select("gpu", "call_index", "op_index")
        .hstack(operations)
        .hstack(calls[timeline.leads["call_index"]])
        .with_columns(role=steps.replays["role"][operations["replay_index"]])
        .sort("gpu", "thread", "start_ns", maintain_order=True)
    )
    submitted = submitted.with_columns(window_index=window_of(steps, submitted, "op_start_ns")).drop("op_start_ns")
    return _with_phases(submitted)


def window_of(steps: Steps, rows: pl.DataFrame, time: str) -> pl.Series:
    """Return the position in `steps.windows` of each row's (gpu, process) at a time; null outside them."""
    windows = steps.windows.select(*_RANK, "start_ns", "end_ns").with_row_index("window_index")
    windows = windows.sort(*_RANK, "start_ns", maintain_order=True)
    times = rows[time].fill_null(_NEVER).to_numpy()
    found = Timetable.of(windows, _RANK, "start_ns").last(rows.select(_RANK), times)
    inside = (found != NOWHERE) & (times < np.append(windows["end_ns"].to_numpy(), _NEVER)[found])
    return windows["window_index"][nullable(np.where(inside, found, NOWHERE))]


def _with_phases(submitted: pl.DataFrame) -> pl.DataFrame:
    """Number the phases: a replay is one, and so is a run of kernel launches with no replay between."""
    launching = submitted["api_role"].is_in([int(role) for role in LAUNCHES])
    launches = submitted.select("gpu", "thread", "replay_index", "role", "window_index").filter(launching)
    replay = pl.col("replay_index").is_not_null()
    last_role = pl.col("role").forward_fill().over(_LANE)
    new = (
        replay
        | replay.shift(1, fill_value=True)
        | pl.any_horizontal(pl.col(_LANE) != pl.col(_LANE).shift(1))
        | pl.col("window_index").ne_missing(pl.col("window_index").shift(1))
    ).fill_null(value=True)
    phases = launches.with_columns(phase=new.cum_sum(), eager=~replay, last_role=last_role)
    name = (
        pl.when(pl.col("last_role").is_null()).then(pl.lit("eager")).otherwise(pl.format("eager after {}", "last_role"))
    )
    number = phases["phase"].to_numpy()
    long = pl.col("eager") & pl.Series(np.bincount(number)[number] >= PHASE_LAUNCHES)
    named = phases.select("phase", role=pl.when(long).then(name).otherwise("role"))
    if len(named) < len(submitted):
        place = np.full(len(submitted), NOWHERE, np.int64)
        place[launching.to_numpy()] = np.arange(len(named))
        named = named[nullable(place)]
    return submitted.drop("role").hstack(named)


def last_submission(submitted: pl.DataFrame, waits: pl.DataFrame, chosen: pl.Series | None = None) -> pl.Series:
    """Return the position in `submitted` of what each wait's launcher submitted last before it began; null for nothing.

    Args:
        submitted: from `find_submissions`.
        waits: with gpu, launcher and start_ns.
        chosen: which submissions count; null for all.
    """
    points = waits.select("gpu", thread="launcher")
    return nullable(Timetable.of(submitted, _LANE, "start_ns", chosen).last(points, waits["start_ns"].to_numpy()))


def next_submission(submitted: pl.DataFrame, waits: pl.DataFrame, chosen: pl.Series) -> pl.Series:
    """Return the same of what was submitted first after each wait had ended."""
    points = waits.select("gpu", thread="launcher")
    return nullable(Timetable.of(submitted, _LANE, "start_ns", chosen).first(points, waits["end_ns"].to_numpy()))
