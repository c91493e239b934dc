"""Cuts a part out of a loaded capture: the work of a window or of some steps, and all that is needed to judge it."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from bubblefinder.errors import CannotAnswerError
from bubblefinder.steps.kept import lay_down
from bubblefinder.trace.frames import of_threads
from bubblefinder.trace.part import Part

if TYPE_CHECKING:
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import Trace

_CALL = ("process", "correlation")


class Span(NamedTuple):
    """A span of time, both ends included, in ns."""

    start_ns: int
    end_ns: int


def cut_window(timeline: Timeline, window: tuple[int, int]) -> Trace:
    """Return the part whose operations start in [start, end), in ns from the capture's start.

    Raises:
        CannotAnswerError: none does.
    """
    trace = timeline.trace
    start, end = (trace.info.start_ns + bound for bound in window)
    return _cut(timeline, start, end, trace.part or Part(timeline.mode.value, trace.info.start_ns))


def cut_steps(timeline: Timeline, steps: Steps, selected: tuple[int, int]) -> Trace:
    """Return the part that holds the decode steps with index in [start, end), which keep their index.

    Raises:
        CannotAnswerError: no rank has such a step.
    """
    wanted = steps.windows.filter(
        pl.col("index").is_between(*selected, closed="left") & pl.col("excluded").is_null(),
    )
    if wanted.is_empty():
        raise CannotAnswerError("no decode step has such an index", hint="`--json` lists the steps with their index")
    longest = max(wanted.select(pl.col("end_ns") - pl.col("start_ns")).to_series().to_list())
    first, last = min(wanted["start_ns"].to_list()), max(wanted["end_ns"].to_list())
    follows = steps.windows.filter(pl.col("start_ns") == last)["end_ns"].to_list()
    end = min(last + longest, max(follows, default=last + longest))
    return _cut(timeline, _reach_back(timeline, first), end, lay_down(timeline, steps, selected))


def _reach_back(timeline: Timeline, first_ns: int) -> int:
    """Return when the work that still ran at a moment had begun: operations, and replays with all they hold."""
    runs = (pl.col("start_ns") < first_ns) & (pl.col("end_ns") > first_ns)
    begun = [frame.filter(runs)["start_ns"].to_list() for frame in (timeline.operations, timeline.replays)]
    earliest: int = min(chain([first_ns], *begun))
    return earliest


def _cut(timeline: Timeline, start_ns: int, end_ns: int, part: Part) -> Trace:
    trace = timeline.trace
    inside = pl.col("start_ns").is_between(start_ns, end_ns, closed="left")
    operations = trace.operations.filter(inside)
    if operations.is_empty():
        raise CannotAnswerError(
            "no GPU operation starts inside the window", hint="widen --window; it counts from the capture's start"
        )
    launched = timeline.operations.select("call_index", inside=inside).drop_nulls()
    own = launched.filter("inside")["call_index"].unique()
    span = _span(operations, trace.calls[own])
    at = pl.int_range(pl.len(), dtype=pl.UInt32)
    others = launched["call_index"].unique()
    calls = trace.calls.filter(at.is_in(own.implode()) | (_meanwhile(span) & ~at.is_in(others.implode())))
    left_out_ns = _last_before(trace.calls[others], trace.calls[own])
    part = replace(part, left_out_ns=part.left_out_ns if left_out_ns is None else left_out_ns)
    return _around(replace(trace, operations=operations, calls=calls, part=part), span)


def _last_before(others: pl.DataFrame, own: pl.DataFrame) -> int | None:
    """Return when the last of these calls began that precedes all of those; null if none does."""
    first = min(own["start_ns"].to_list(), default=None)
    return max((start for start in others["start_ns"].to_list() if first is not None and start < first), default=None)


def _span(operations: pl.DataFrame, launches: pl.DataFrame) -> Span:
    """Return from when to when operations ran or were launched."""
    edges = pl.concat([operations.select("start_ns", "end_ns"), launches.select("start_ns", "end_ns")])
    return Span(int(edges["start_ns"].to_numpy().min()), int(edges["end_ns"].to_numpy().max()))


def _meanwhile(span: Span) -> pl.Expr:
    """Tell what ran at some time of a span; a range that was never closed still runs."""
    return (pl.col("start_ns") <= span.end_ns) & (pl.col("end_ns") >= span.start_ns).fill_null(value=True)


def _around(trace: Trace, span: Span) -> Trace:
    """Return a capture with that alone which belongs to its operations and calls or happened meanwhile."""
    calls, meanwhile = trace.calls, _meanwhile(span)
    syncs, nvtx = trace.syncs.filter(meanwhile), trace.nvtx.filter(meanwhile)
    threads = {*calls["thread"].unique(), *nvtx["thread"].unique()}
    named = {*trace.operations["name"].drop_nulls().unique(), *calls["name"].drop_nulls().unique()}
    frames = (trace.operations, calls, nvtx)
    processes = {process for frame in frames for process in frame["process"].drop_nulls().unique()}
    gpus = set(trace.operations["gpu"].unique())
    return replace(
        trace,
        info=replace(
            trace.info,
            gpus=tuple(gpu for gpu in trace.info.gpus if gpu.gpu in gpus),
            processes=tuple(process for process in trace.info.processes if process.process in processes),
        ),
        nvtx=nvtx,
        overheads=trace.overheads.filter(meanwhile),
        syncs=syncs,
        events=_events(trace.events, calls, syncs),
        os_calls=trace.os_calls.filter(meanwhile & of_threads(calls)),
        off_cpu=trace.off_cpu.filter(meanwhile & of_threads(calls)),
        frames=trace.frames.filter(pl.col("callchain").is_in(calls["callchain"].drop_nulls().unique().implode())),
        names={number: text for number, text in trace.names.items() if number in named},
        thread_names={thread: name for thread, name in trace.thread_names.items() if thread in threads},
    )


def _events(events: pl.DataFrame, calls: pl.DataFrame, syncs: pl.DataFrame) -> pl.DataFrame:
    """Return the event records of the calls, and those that some wait waited for."""
    awaited = syncs.select("process", "event_sync").drop_nulls().unique()
    recorded = events.with_row_index("at")
    kept = pl.concat(
        [
            recorded.join(calls.select(_CALL).drop_nulls().unique(), on=_CALL, how="semi").select("at"),
            recorded.join(awaited, on=["process", "event_sync"], how="semi").select("at"),
        ]
    )
    return events[kept["at"].unique().sort()]
