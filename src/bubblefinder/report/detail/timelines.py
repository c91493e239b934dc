"""The median and the worst step, as bars: the host above, the GPU below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.report.detail.device import device_bars
from bubblefinder.report.detail.host import host_bars
from bubblefinder.report.pictures import StepTimeline
from bubblefinder.trace.model import pid_of

if TYPE_CHECKING:
    from bubblefinder.causes.model import Causes
    from bubblefinder.report.ledgers import Lane
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

REACH: Final = 0.6
"""How far before a step its launch calls are drawn, as a share of its length."""


def step_timelines(
    timeline: Timeline, steps: Steps, causes: Causes | None, decode: pl.DataFrame, lane: Lane
) -> list[StepTimeline]:
    """Return the step whose length is nearest the median, and the longest one if it is another."""
    length = pl.col("end_ns") - pl.col("start_ns")
    ordered = decode.sort((length - length.median()).abs(), "index")
    median = ordered.row(0, named=True)
    worst = decode.sort(length, "index", descending=[True, False]).row(0, named=True)
    drawn = [("median", median)] + ([("worst", worst)] if worst["index"] != median["index"] else [])
    return [_step(timeline, steps, causes, lane, which, window) for which, window in drawn]


def _step(
    timeline: Timeline, steps: Steps, causes: Causes | None, lane: Lane, which: str, window: dict[str, int]
) -> StepTimeline:
    start, end = window["start_ns"], window["end_ns"]
    device, device_dropped, calls = device_bars(timeline, steps, causes, lane, (start, end))
    earliest = timeline.calls["start_ns"].gather(sorted(calls)).min() if calls else None
    first = max(min(start, earliest if isinstance(earliest, int) else start), start - round(REACH * (end - start)))
    host, host_dropped = host_bars(timeline, causes, lane, (first, end), calls)
    return StepTimeline(
        which=which,
        index=window["index"],
        gpu=lane.gpu,
        pid=pid_of(lane.process),
        start_ns=start,
        end_ns=end,
        bars=[*host, *device],
        dropped=host_dropped + device_dropped,
    )
