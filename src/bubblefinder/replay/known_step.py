"""A recorded run on a host of the speed at which its step takes as long as it was measured to take untraced.

The profiler slows the host, and a slow host hides what a wait costs: its work fills the time that the GPU has to wait
anyway. So what is gained by removing a wait differs from the recording, in both directions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.errors import CannotAnswerError
from bubblefinder.replay.changes import HostSpeed, edit
from bubblefinder.replay.run import replay
from bubblefinder.replay.solve import solve
from bubblefinder.units import milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.model import Model
    from bubblefinder.timeline.rank import Rank

MOST: Final = 4.0
"""A host is believed to be so many times as fast or as slow as recorded: tracing has more than doubled its work."""
CLOSE: Final = 0.01
"""The step found lies as near to the one given."""


def host_speed_of(model: Model, rank: Rank, step_ns: float, *, mean: bool) -> float:
    """Return how many times as fast as recorded the host works where the rank's median or mean step is `step_ns`.

    Raises:
        CannotAnswerError: no host gives such a step.
    """
    steps, middle = model.steps[rank], np.mean if mean else np.median

    def step_of(extra: float) -> float:
        edited = edit(model, [HostSpeed(speed_of(extra))])
        times = replay(model, edited.lag, edited.keep)
        return float(middle(times[steps.end] - times[steps.begin]))

    extra = solve(step_of, step_ns, MOST - 1)
    reached = step_of(extra)
    if abs(reached - step_ns) > CLOSE * step_ns:
        raise CannotAnswerError(
            f"no host gives a step of {milliseconds(step_ns)} ms: one {MOST:g} times as "
            f"{'fast' if reached > step_ns else 'slow'} as recorded takes {milliseconds(reached)} ms",
            hint=f"give the {'mean' if mean else 'median'} untraced step of this program and this batch",
        )
    return speed_of(extra)


def on_such_a_host(model: Model, speed: float) -> Model:
    """Return the recorded run as it would be with a host so many times as fast."""
    return rerun(model, [HostSpeed(speed)])


def rerun(model: Model, changes: Sequence[Change]) -> Model:
    """Return the run as it would be after changes to its lags, as if that had been recorded."""
    edited = edit(model, changes)
    times = replay(model, edited.lag, edited.keep)

    def at(rows: pl.DataFrame, node: str) -> pl.Series:
        return pl.Series(times[rows[node].to_numpy()])

    def moved(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(start_ns=at(rows, "begin"), end_ns=at(rows, "end"))

    length = at(model.windows, "end") - at(model.windows, "begin")
    return replace(
        model,
        recorded=times,
        edges=replace(model.edges, lag=edited.lag),
        calls=moved(model.calls),
        blocks=moved(model.blocks),
        windows=model.windows.with_columns(
            recorded_ns=length, occupied_ns=pl.col("occupied_ns") - pl.Series(model.less_work(edited.lag))
        ),
        untraced=(),
    )


def speed_of(extra: float) -> float:
    """Return a host's speed for any number: 1 for 0, rising, and as far below 1 as above it."""
    return 1 + extra if extra >= 0 else 1 / (1 - extra)
