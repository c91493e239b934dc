"""From a timeline and its steps to the causes of its idle time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.causes.charges import find_charges
from bubblefinder.causes.launches import find_submissions
from bubblefinder.causes.model import Causes
from bubblefinder.causes.pauses import find_pauses
from bubblefinder.causes.places import with_places
from bubblefinder.causes.sites import sites_of, with_sites
from bubblefinder.causes.waits import find_waits
from bubblefinder.lookup import places
from bubblefinder.timeline.missing import untold

if TYPE_CHECKING:
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline


def find_causes(timeline: Timeline, steps: Steps) -> Causes:
    """Return every wait and pause, judged by the recorded times, with the idle time each is charged with.

    Where work is missing, nobody knows where, nobody is charged: what looks idle there may have been busy.
    """
    submitted = find_submissions(timeline, steps)
    waits = find_waits(timeline, submitted)
    pauses = find_pauses(timeline, submitted, waits)
    charges = find_charges(timeline, waits, pauses)
    if untold(timeline):
        charges = charges.clear()
    waits = _with_bubbles(waits, charges)
    waits = with_sites(with_places(waits, timeline, steps, submitted), timeline, submitted)
    return Causes(waits=waits, pauses=pauses, charges=charges, sites=sites_of(waits), submitted=submitted)


def _with_bubbles(waits: pl.DataFrame, charges: pl.DataFrame) -> pl.DataFrame:
    lengths = (charges["end_ns"] - charges["start_ns"]).to_numpy()
    bubbles = np.bincount(places(charges["wait_index"]) + 1, lengths, len(waits) + 1)[1:].astype(np.int64)
    return waits.hstack(
        [
            pl.Series("bubble_ns", bubbles),
            pl.Series("drained", bubbles > 0),
            (waits["end_ns"] - waits["start_ns"]).rename("blocked_ns"),
        ]
    )
