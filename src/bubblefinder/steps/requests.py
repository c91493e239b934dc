"""How many requests a step serves, where the ranges that mark steps say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.steps.boundaries import lane_launches, mark_boundaries

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.boundaries import Launches
    from bubblefinder.steps.lane import RankWork
    from bubblefinder.timeline.model import Timeline

_TEXTS: Final = (r"execute_context_(\d+)\(\d+\)_generation_(\d+)\(", r"_forward_step .*?(\d+) ctx reqs, (\d+) gen reqs")
"""vLLM's and TensorRT-LLM's: requests with prefill work, and requests that decode."""


def requests_of(timeline: Timeline, lane: RankWork, starts: Ints) -> pl.Series:
    """Return how many requests each window serves, null where nothing says so."""
    found = np.full(len(starts), -1, np.int64)
    launches: Launches | None = None
    for text in _TEXTS:
        marks = (
            timeline.ranges.named(text)
            .filter(pl.col("process") == lane.process)
            .with_columns(
                requests=sum((pl.col("text").str.extract(text, group).cast(pl.Int64) for group in (1, 2)), pl.lit(0)),
            )
        )
        for (requests,), rows in marks.partition_by("requests", as_dict=True).items():
            launches = lane_launches(lane, timeline.calls) if launches is None else launches
            window = np.searchsorted(starts, mark_boundaries(launches, rows), side="right") - 1
            found[window[window >= 0]] = requests
    return pl.Series(found).set(pl.Series(found < 0), None)
