"""The median and the worst step, as bars: the host above, the GPU below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.report.charts import StepTimeline
from bubblefinder.report.detail.device import device_bars
from bubblefinder.report.detail.host import host_bars

if TYPE_CHECKING:
    from bubblefinder.pipeline import Analysis
    from bubblefinder.timeline.rank import Rank

REACH: Final = 0.6
"""How far before a step its launch calls are drawn, as a share of its length."""


def step_timelines(analysis: Analysis, decode: pl.DataFrame, rank: Rank) -> list[StepTimeline]:
    """Return the step whose length is nearest the median, and the longest one if it is another."""
    length = pl.col("end_ns") - pl.col("start_ns")
    ordered = decode.sort((length - length.median()).abs(), "index")
    median = ordered.row(0, named=True)
    worst = decode.sort(length, "index", descending=[True, False]).row(0, named=True)
    drawn = [("median", median)] + ([("worst", worst)] if worst["index"] != median["index"] else [])
    return [_step(analysis, rank, which, window) for which, window in drawn]


def _step(analysis: Analysis, rank: Rank, which: str, window: dict[str, int]) -> StepTimeline:
    start, end = window["start_ns"], window["end_ns"]
    device, device_dropped, calls = device_bars(analysis, rank, (start, end))
    earliest = analysis.timeline.calls["start_ns"][sorted(calls)].min() if calls else None
    first = max(min(start, earliest if isinstance(earliest, int) else start), start - round(REACH * (end - start)))
    host, host_dropped = host_bars(analysis, rank, (first, end), calls)
    return StepTimeline(
        which=which,
        index=window["index"],
        gpu=rank.gpu,
        pid=rank.pid,
        start_ns=start,
        end_ns=end,
        bars=[*host, *device],
        dropped=host_dropped + device_dropped,
    )
