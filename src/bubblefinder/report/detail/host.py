"""The host's side of a drawn step: NVTX ranges and API calls of the threads that launch or wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.report.charts import TimelineBar
from bubblefinder.report.sentences import plain
from bubblefinder.timeline.apis import CallRole
from bubblefinder.trace.model import process_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from bubblefinder.causes.model import Causes
    from bubblefinder.pipeline import Analysis
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.timeline.rank import Rank

MAX_CALLS: Final = 300
MAX_RANGES: Final = 120
MAX_THREADS: Final = 4

_LAUNCHES: Final = (CallRole.LAUNCH_GRAPH, CallRole.LAUNCH_KERNEL)


def host_bars(
    analysis: Analysis, rank: Rank, span: tuple[int, int], launches: Collection[int]
) -> tuple[list[TimelineBar], int]:
    """Return the bars of the threads that launched or waited in `span`, and how many were left out.

    Args:
        analysis: the timeline, and which waits are to blame.
        rank: the process whose threads are drawn.
        span: [start, end) of what is drawn.
        launches: positions of the launch calls whose work the step holds.
    """
    timeline = analysis.timeline
    calls = _overlapping(timeline.calls.with_row_index("call_index"), span).filter(pl.col("process") == rank.process)
    kinds = _kinds(calls, analysis.causes)
    busy = (
        kinds.filter(pl.col("kind") != "api").group_by("thread").len().sort("len", "thread", descending=[True, False])
    )
    bars: list[TimelineBar] = []
    dropped = 0
    for thread in busy["thread"].head(MAX_THREADS):
        title = thread_title(timeline, thread)
        ranges = _overlapping(timeline.trace.nvtx.filter(pl.col("thread") == thread).drop_nulls("end_ns"), span)
        mine = kinds.filter(pl.col("thread") == thread)
        bars += _range_bars(f"{title} · NVTX", _longest(ranges, MAX_RANGES))
        bars += _call_bars(f"{title} · CUDA calls", _longest(mine, MAX_CALLS), launches)
        dropped += max(len(ranges) - MAX_RANGES, 0) + max(len(mine) - MAX_CALLS, 0)
    return bars, dropped


def thread_title(timeline: Timeline, thread: int) -> str:
    """Return a thread's name with its id."""
    names = {process.process: process.name for process in timeline.trace.info.processes}
    name = timeline.trace.thread_names.get(thread) or names.get(process_of(thread)) or "thread"
    return f"{plain(name, 40)} {thread & 0xFF_FFFF}"


def _kinds(calls: pl.DataFrame, causes: Causes) -> pl.DataFrame:
    waits = causes.waits.group_by("call_index").agg(pl.col("drained").any())
    return calls.join(waits, on="call_index", how="left", maintain_order="left").with_columns(
        kind=pl.when(pl.col("drained").fill_null(value=False))
        .then(pl.lit("blamed_wait"))
        .when(pl.col("drained").is_not_null() | (pl.col("role") == CallRole.WAIT))
        .then(pl.lit("wait"))
        .when(pl.col("role").is_in(_LAUNCHES))
        .then(pl.lit("launch"))
        .otherwise(pl.lit("api"))
    )


def _overlapping(rows: pl.DataFrame, span: tuple[int, int]) -> pl.DataFrame:
    return rows.filter((pl.col("start_ns") < span[1]) & (pl.col("end_ns") > span[0]))


def _longest(rows: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Return at most so many rows, which are sorted by start and end."""
    if len(rows) <= limit:
        return rows
    return rows.sort(pl.col("end_ns") - pl.col("start_ns"), descending=True).head(limit).sort("start_ns", "end_ns")


def _range_bars(track: str, ranges: pl.DataFrame) -> list[TimelineBar]:
    return [
        TimelineBar(track=track, kind="nvtx", name=plain(text, 200), start_ns=start, end_ns=end)
        for start, end, text in ranges.select("start_ns", "end_ns", "text").iter_rows()
    ]


def _call_bars(track: str, calls: pl.DataFrame, launches: Collection[int]) -> list[TimelineBar]:
    columns = ("call_index", "kind", "start_ns", "end_ns")
    return [
        TimelineBar(
            track=track,
            kind=kind,
            name=plain(api, 200),
            start_ns=start,
            end_ns=end,
            link=index if kind == "launch" and index in launches else None,
        )
        for index, kind, start, end, api in calls.select(*columns, pl.col("api").cast(pl.String)).iter_rows()
    ]
