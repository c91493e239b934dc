"""How many requests a step serves, where ranges or the launch shapes of kernels say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

from bubblefinder.lookup import where
from bubblefinder.steps.boundaries import launches_of, mark_boundaries
from bubblefinder.steps.request_blocks import UNTOLD, by_blocks

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.events import Events
    from bubblefinder.steps.lane import RankWork
    from bubblefinder.steps.model import RequestsFrom
    from bubblefinder.timeline.model import Timeline

_TEXTS: Final = (r"execute_context_(\d+)\(\d+\)_generation_(\d+)\(", r"_forward_step .*?(\d+) ctx reqs, (\d+) gen reqs")
"""vLLM's and TensorRT-LLM's: requests with prefill work, and requests that decode."""


class Requests(NamedTuple):
    """How many requests each window serves, null where nothing says so, and what says it; null if nothing does."""

    numbers: pl.Series
    told_by: RequestsFrom | None


def requests_of(timeline: Timeline, lane: RankWork, events: Events, starts: Ints) -> Requests:
    """Return how many requests each window serves; kernels are asked only where no range says it of any."""
    told_by: RequestsFrom = "nvtx"
    numbers = _by_ranges(timeline, lane, events, starts)
    if not (numbers != UNTOLD).any():
        told_by, numbers = "launch_shapes", by_blocks(timeline, lane, starts)
    unknown = numbers == UNTOLD
    return Requests(pl.Series(numbers).set(pl.Series(unknown), None), None if unknown.all() else told_by)


def _by_ranges(timeline: Timeline, lane: RankWork, events: Events, starts: Ints) -> Ints:
    """Return how many requests the ranges that mark each window name."""
    found = np.full(len(starts), UNTOLD, np.int64)
    for text in _TEXTS:
        marks = (
            timeline.ranges.named(text)
            .pipe(where, pl.col("process") == lane.process)
            .with_columns(
                requests=sum((pl.col("text").str.extract(text, group).cast(pl.Int64) for group in (1, 2)), pl.lit(0)),
            )
        )
        if marks.is_empty():
            continue
        launches = launches_of(events)
        for (requests,), rows in marks.partition_by("requests", as_dict=True).items():
            window = np.searchsorted(starts, mark_boundaries(launches, rows), side="right") - 1
            found[window[window >= 0]] = requests
    return found
