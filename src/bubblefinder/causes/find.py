"""From a timeline and its steps to the causes of its idle time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from bubblefinder.causes.drains import find_charges
from bubblefinder.causes.launches import find_submissions
from bubblefinder.causes.model import Causes
from bubblefinder.causes.places import with_places
from bubblefinder.causes.sites import sites_of, with_sites
from bubblefinder.causes.waits import find_waits
from bubblefinder.timeline.model import CaptureMode

if TYPE_CHECKING:
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline


def find_causes(timeline: Timeline, steps: Steps) -> Causes:
    """Return every wait, judged by the recorded times, with the idle time it is charged with.

    Where graphs ran unseen nobody is charged: what looks idle there may have been busy.
    """
    submitted = find_submissions(timeline, steps)
    waits = find_waits(timeline, submitted)
    charges = find_charges(timeline, waits)
    if timeline.mode is CaptureMode.UNSEEN:
        charges = charges.clear()
    waits = _with_bubbles(waits, charges, timeline)
    waits = with_sites(with_places(waits, timeline, steps, submitted), timeline, submitted)
    return Causes(waits=waits, charges=charges, sites=sites_of(waits), submitted=submitted)


def _with_bubbles(waits: pl.DataFrame, charges: pl.DataFrame, timeline: Timeline) -> pl.DataFrame:
    pieces = timeline.pieces[charges["piece_index"]]
    charged = (
        charges.with_columns(length=pieces["end_ns"] - pieces["start_ns"])
        .group_by("wait_index")
        .agg(
            bubble_ns=pl.col("length").sum(),
            drained=pl.col("opened").any(),
        )
    )
    return (
        waits.with_row_index("wait_index")
        .join(charged, on="wait_index", how="left", maintain_order="left")
        .with_columns(
            pl.col("bubble_ns").fill_null(0),
            pl.col("drained").fill_null(value=False),
            blocked_ns=pl.col("end_ns") - pl.col("start_ns"),
        )
        .drop("wait_index")
    )
