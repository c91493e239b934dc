"""The overhead section of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubblefinder.replay.correct import correct
from bubblefinder.report.model import OverheadReport

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.overhead.model import Source
    from bubblefinder.replay.model import Model
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline


def overhead_report(
    timeline: Timeline, steps: Steps, model: Model | None, rows: pl.DataFrame, source: Source
) -> OverheadReport:
    """Return what the profiler added to the given decode steps, by the best that is known of the run."""
    found = correct(timeline, steps, model, rows, source)
    return OverheadReport(
        method=found.method,
        traced_step_ns=found.traced_step_ns,
        corrected_step_ns=found.corrected_step_ns,
        range_ns=None if found.range_ns is None else list(found.range_ns),
        inflation=found.inflation,
        unexplained_ns=found.unexplained_ns,
        corrected=found.corrected,
        corrected_roles=found.corrected_roles,
        corrected_bubble_share=found.shares,
        corrected_bubble_share_range={
            name: None if ends is None else list(ends) for name, ends in found.shares_range.items()
        },
        parameters=found.parameters,
        message=found.message,
    )
