"""A recorded run without the profiler: what it added to each block and call, and the step then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from bubblefinder.errors import CannotAnswerError
from bubblefinder.overhead.calibration import bundled_calibrations, mismatch, read_calibration
from bubblefinder.replay.correct import correct
from bubblefinder.timeline.model import CaptureMode
from bubblefinder.units import duration

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.overhead.model import Costs, Overhead, Source
    from bubblefinder.replay.model import Model
    from bubblefinder.replay.predict import Prediction
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.timeline.rank import Rank


def profiler_costs(timeline: Timeline, gpu: int, calibration: Path | None) -> Costs:
    """Return what this way of capturing costs on this kind of machine.

    Raises:
        CannotAnswerError: no calibration fits the capture.
        UsageError: the file is no calibration.
    """
    known = [read_calibration(calibration)] if calibration else bundled_calibrations()
    reasons = [(one, mismatch(one, timeline.trace.info, gpu)) for one in known]
    fitting = [one for one, reason in reasons if reason is None]
    if not fitting:
        why = next((reason for _, reason in reasons if reason), "there is no calibration")
        raise CannotAnswerError(
            f"the profiler's cost is unknown here: {why}",
            hint="measure it on that machine with `bubblefinder calibrate`",
        )
    return fitting[0].graph if timeline.mode is CaptureMode.GRAPH else fitting[0].node


def correction(timeline: Timeline, steps: Steps, model: Model, rank: Rank, source: Source) -> Overhead:
    """Return the correction of a rank's decode steps, as a report has it."""
    windows = steps.windows.filter(rank.mine & pl.col("excluded").is_null())
    return correct(timeline, steps, model, windows, source)


def corrected(timeline: Timeline, steps: Steps, model: Model, rank: Rank, source: Source) -> Overhead:
    """Return the same, where it has a value.

    Raises:
        CannotAnswerError: nothing is known of the profiler's cost, or the capture can't tell how much it is.
    """
    found = correction(timeline, steps, model, rank, source)
    if found.corrected_step_ns is None:
        between = " and ".join(duration(limit) for limit in found.range_ns or ())
        reach = f" The step without it lies between {between}." if between else ""
        raise CannotAnswerError(f"{found.message}{reach}", hint="measure the step without the profiler")
    return found


def without_tracing(then: Prediction, found: Overhead) -> Prediction:
    """Return a prediction with the step and the range of a correction."""
    step = found.corrected_step_ns or then.step_ns
    low, high = found.range_ns or (step, step)
    return replace(then, step_ns=step, low_ns=low, high_ns=high)
