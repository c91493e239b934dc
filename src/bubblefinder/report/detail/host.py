"""The host's side of a drawn step: NVTX ranges and API calls of the threads that launch or wait."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.lookup import kept
from bubblefinder.report.charts import TimelineBar
from bubblefinder.report.detail.windows import longest
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
    """Return the bars of a rank's threads that launched or waited in [start, end), and how many were left out.

    `launches` are the positions of the launch calls whose work the step holds.
    """
    timeline = analysis.timeline
    columns = timeline.calls[["process", "thread", "start_ns", "end_ns", "api", "role"]].with_row_index("call_index")
    calls = kept(columns, (columns["process"] == rank.process) & _overlaps(columns, span))
    kinds = _kinds(calls, analysis.causes)
    calls = calls.hstack([pl.Series("kind", kinds, pl.String)])
    counts = Counter(thread for thread, kind in zip(calls["thread"], kinds, strict=True) if kind != "api")
    bars: list[TimelineBar] = []
    dropped = 0
    for thread in sorted(counts, key=lambda thread: (-counts[thread], thread))[:MAX_THREADS]:
        title = thread_title(timeline, thread)
        nvtx = timeline.trace.nvtx[["thread", "start_ns", "end_ns", "text"]]
        ranges = kept(nvtx, (nvtx["thread"] == thread) & _overlaps(nvtx, span))
        mine = kept(calls, calls["thread"] == thread)
        bars += _range_bars(f"{title} · NVTX", longest(ranges, MAX_RANGES))
        bars += _call_bars(f"{title} · CUDA calls", longest(mine, MAX_CALLS), launches)
        dropped += max(len(ranges) - MAX_RANGES, 0) + max(len(mine) - MAX_CALLS, 0)
    return bars, dropped


def thread_title(timeline: Timeline, thread: int) -> str:
    """Return a thread's name with its id."""
    names = {process.process: process.name for process in timeline.trace.info.processes}
    name = timeline.trace.thread_names.get(thread) or names.get(process_of(thread)) or "thread"
    return f"{plain(name, 40)} {thread & 0xFF_FFFF}"


def _kinds(calls: pl.DataFrame, causes: Causes) -> list[str]:
    """Tell of each call what it is drawn as."""
    waits = causes.waits[["call_index", "drained"]]
    waits = kept(waits, waits["call_index"].is_between(*_ends(calls["call_index"])))
    drained: dict[int, bool] = {}
    for call, dry in waits.iter_rows():
        drained[call] = drained.get(call, False) or dry
    return [
        ("blamed_wait" if drained[call] else "wait")
        if call in drained
        else "wait"
        if role == CallRole.WAIT
        else "launch"
        if role in _LAUNCHES
        else "api"
        for call, role in calls[["call_index", "role"]].iter_rows()
    ]


def _ends(numbers: pl.Series) -> tuple[int, int]:
    return (int(numbers[0]), int(numbers[-1])) if len(numbers) else (0, 0)


def _overlaps(rows: pl.DataFrame, span: tuple[int, int]) -> pl.Series:
    return (rows["start_ns"] < span[1]) & (rows["end_ns"] > span[0])


def _range_bars(track: str, ranges: pl.DataFrame) -> list[TimelineBar]:
    return [
        TimelineBar(track=track, kind="nvtx", name=plain(text, 200), start_ns=start, end_ns=end)
        for start, end, text in ranges[["start_ns", "end_ns", "text"]].iter_rows()
    ]


def _call_bars(track: str, calls: pl.DataFrame, launches: Collection[int]) -> list[TimelineBar]:
    return [
        TimelineBar(
            track=track,
            kind=kind,
            name=plain(api, 200),
            start_ns=start,
            end_ns=end,
            link=index if kind == "launch" and index in launches else None,
        )
        for index, kind, start, end, api in calls[["call_index", "kind", "start_ns", "end_ns", "api"]].iter_rows()
    ]
