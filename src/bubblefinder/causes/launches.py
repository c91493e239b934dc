"""What every thread launched, in its own order: replays, eager phases, single kernels, and their steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import one_of
from bubblefinder.lookup import NOWHERE, Timetable, changes, column_of, nullable, order_of, places, taken
from bubblefinder.timeline.launches import LAUNCHES

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

_RANK: Final = ("gpu", "process")
_LANE: Final = ("gpu", "thread")
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
    leads = timeline.leads[["gpu", "call_index", "op_index"]]
    calls = timeline.calls.select("process", "thread", "start_ns", "end_ns", api_role="role")
    launch = leads["call_index"].to_numpy()
    called = (column_of(calls, name).to_numpy()[launch] for name in ("thread", "start_ns"))
    order = order_of([column_of(leads, "gpu").to_numpy(), *called])
    leads = leads if order is None else leads[order]
    submitted = leads.hstack(calls[leads["call_index"]])
    operations = taken(timeline.operations[["start_ns", "replay_index"]], submitted["op_index"])
    windows = window_of(steps, submitted, operations["start_ns"].to_numpy())
    submitted = submitted.hstack([column_of(operations, "replay_index"), windows])
    return submitted.hstack(_phases(submitted, steps))


def window_of(steps: Steps, rows: pl.DataFrame, times: Ints) -> pl.Series:
    """Return the position in `steps.windows` of each row's (gpu, process) at a time; null outside them."""
    windows = steps.windows[[*_RANK, "start_ns", "end_ns"]].with_row_index("window_index")
    windows = windows.sort(*_RANK, "start_ns", maintain_order=True)
    ends = windows["end_ns"].to_numpy()
    return windows["window_index"][nullable(Timetable.of(windows, _RANK, "start_ns").holding(rows, times, ends))]


def _phases(submitted: pl.DataFrame, steps: Steps) -> list[pl.Series]:
    """Return phase and role: a replay is a phase, and so is a run of kernel launches with no replay between."""
    launching = np.flatnonzero(one_of(submitted["api_role"].to_numpy(), LAUNCHES))
    launches = taken(submitted[[*_LANE, "replay_index", "window_index"]], launching)
    replay, window = (places(launches[name]) for name in launches.columns[2:])
    eager = replay == NOWHERE
    beginning = changes(*(launches[name].to_numpy() for name in _LANE))
    new = ~eager | beginning | changes(window)
    new[1:] |= ~eager[:-1]
    number = np.cumsum(new, dtype=np.uint32)
    role = _roles(steps, replay, beginning, eager & (np.bincount(number)[number] >= PHASE_LAUNCHES))
    if len(number) == len(submitted):
        return [pl.Series("phase", number), role]
    place = np.full(len(submitted), NOWHERE)
    place[launching] = np.arange(len(number))
    rows = nullable(place)
    return [pl.Series("phase", number)[rows], role[rows]]


def _roles(steps: Steps, replay: Ints, beginning: Bools, phase: Bools) -> pl.Series:
    """Return the role of each launch: that of its replay; of an eager phase, what the lane replayed last before it."""
    known = steps.role_names
    own = np.append(steps.role_numbers, NOWHERE).astype(np.int32)[replay]
    position = np.arange(len(own), dtype=np.int32)
    last = np.maximum.accumulate(np.where((own != NOWHERE) | beginning, position, 0))
    behind = np.where(phase, len(known) + 1 + own[last], own)
    names = [*known, "eager", *(f"eager after {role}" for role in known)]
    return pl.Series("role", names, dtype=pl.Categorical)[nullable(behind)]


def last_submission(submitted: pl.DataFrame, waits: pl.DataFrame, chosen: pl.Series | None = None) -> pl.Series:
    """Return the position in `submitted` of what each wait's launcher submitted last before it began; null for nothing.

    Args:
        submitted: from `find_submissions`.
        waits: with gpu, launcher and start_ns.
        chosen: which submissions count; null for all.
    """
    points = waits[["gpu", "launcher"]].rename({"launcher": "thread"})
    return nullable(Timetable.of(submitted, _LANE, "start_ns", chosen).last(points, waits["start_ns"].to_numpy()))


def next_submission(submitted: pl.DataFrame, waits: pl.DataFrame, chosen: pl.Series) -> pl.Series:
    """Return the same of what was submitted first after each wait had ended."""
    points = waits[["gpu", "launcher"]].rename({"launcher": "thread"})
    return nullable(Timetable.of(submitted, _LANE, "start_ns", chosen).first(points, waits["end_ns"].to_numpy()))
