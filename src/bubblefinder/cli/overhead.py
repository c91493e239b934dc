"""What the user says about the run without a profiler."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from bubblefinder.errors import UsageError
from bubblefinder.units import NS_PER_MS

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.overhead.model import Source


def overhead_source(
    reference: Path | None,
    untraced_step_ms: float | None,
    tokens: tuple[float | None, float | None],
    calibration: Path | None,
) -> Source:
    """Return what is known of the run without a profiler.

    Args:
        reference: a graph-mode capture of the same workload.
        untraced_step_ms: median length of an untraced decode step.
        tokens: mean time per output token in ms, and tokens accepted a step; both or neither.
        calibration: a file that `bubblefinder calibrate` wrote.

    Raises:
        UsageError: a number is not above zero, one of a pair is missing, or the file is no calibration.
        InputError: the reference can't be read.
    """
    from bubblefinder.overhead.calibration import read_calibration
    from bubblefinder.overhead.model import Source
    from bubblefinder.trace.open import open_trace

    step_ns, is_mean = untraced_step(untraced_step_ms, *tokens)
    return Source(
        reference=open_trace(reference) if reference else None,
        untraced_step_ns=step_ns,
        untraced_is_mean=is_mean,
        calibration=read_calibration(calibration) if calibration else None,
    )


def untraced_step(
    step_ms: float | None, tpot_ms: float | None, accept_length: float | None
) -> tuple[float | None, bool]:
    """Return the untraced step in ns, null if it isn't given, and whether it is a mean: a step is a median, a TPOT one.

    Raises:
        UsageError: a number is not above zero, one of a pair is missing, or both a step and a TPOT are given.
    """
    if (tpot_ms is None) != (accept_length is None):
        raise UsageError("--tpot-ms and --accept-length belong together", hint="a step takes their product")
    for value in (step_ms, tpot_ms, accept_length):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise UsageError(f"{value:g} is no length", hint="give a number above zero")
    if tpot_ms is not None and accept_length is not None:
        if step_ms is not None:
            raise UsageError("--untraced-step-ms and --tpot-ms say the same thing", hint="give one of them")
        return tpot_ms * accept_length * NS_PER_MS, True
    return None if step_ms is None else step_ms * NS_PER_MS, False
