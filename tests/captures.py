"""Captures that hypothesis makes up: everything the ledger has to cope with, in times small enough to collide."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl
from hypothesis import strategies as st

from bubblefinder.trace.model import GRAPH, KERNEL, MEMCPY, MEMSET
from bubblefinder.trace.sketch import Sketch, process_key, thread_key

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace

OVERHEADS = (
    "CUDA profiling data flush on cudaProfilerStop",
    "CUPTI Buffer flush",
    "CUPTI: Buffer flush",
    "TLS allocation",
)
EPOCH = 1_000
SMALL = st.integers(0, 6)


@dataclass(frozen=True, slots=True)
class Event:
    """One thing a thread does, and what the GPU makes of it."""

    what: str
    pause: int
    length: int
    delay: int
    works: tuple[tuple[int, int], ...]
    gpu: int
    stream: int


EVENTS = st.builds(
    Event,
    what=st.sampled_from(
        ["kernel"] * 3
        + ["nodes"] * 3
        + ["graph", "copy", "memset", "lost", "lost graph", "failed", "captured", "orphan", "wait"]
    ),
    pause=SMALL,
    length=SMALL,
    delay=st.integers(-1, 12),
    works=st.lists(st.tuples(st.integers(-2, 5), SMALL), min_size=1, max_size=4).map(tuple),
    gpu=st.sampled_from([0, 0, 0, 1]),
    stream=st.sampled_from([7, 7, 14]),
)
WINDOWS = st.tuples(st.sampled_from([1, 2]), st.sampled_from(OVERHEADS), st.integers(0, 60), st.integers(0, 10))


@st.composite
def captures(draw: st.DrawFn) -> Trace:
    """A capture with at least one operation that takes time."""
    sketch = Sketch()
    for pid in draw(st.sampled_from([(1,), (1, 2)])):
        for number in draw(st.sampled_from([(1,), (1, 2)])):
            _thread(sketch, process_key(1000 + pid), number, draw(st.lists(EVENTS, max_size=8)))
    sketch.operation(KERNEL, EPOCH, EPOCH + 1, process=process_key(1001), name="first")
    for pid, name, start, length in draw(st.lists(WINDOWS, max_size=3)):
        owner = {"process": process_key(1000 + pid), "thread": thread_key(process_key(1000 + pid), 1)}
        times = EPOCH + start, EPOCH + start + length
        sketch.add("overheads", *times, **owner, table="PROFILER_OVERHEAD", name=name)
    return sketch.trace()


def _thread(sketch: Sketch, process: int, number: int, events: list[Event]) -> None:
    thread = thread_key(process, number)
    now = EPOCH
    for event in events:
        start = now + event.pause
        now = start + event.length
        if event.what == "orphan":
            _operations(sketch, event, process, start, sketch.correlate(process))
        elif event.what == "captured":
            sketch.call("cudaStreamBeginCapture_v10000", start, start, thread)
            sketch.call("cudaLaunchKernel_v7000", start, now, thread)
            sketch.call("cudaStreamEndCapture_v10000", now, now, thread)
        else:
            _call(sketch, event, thread, start, now)


def _call(sketch: Sketch, event: Event, thread: int, start: int, end: int) -> None:
    apis = {
        "copy": "cudaMemcpyAsync_v3020",
        "memset": "cudaMemsetAsync_v3020",
        "wait": "cudaStreamSynchronize_v3020",
        "nodes": "cudaGraphLaunch_v10000",
        "graph": "cudaGraphLaunch_v10000",
        "lost graph": "cudaGraphLaunch_v10000",
    }
    api = apis.get(event.what, "cudaLaunchKernel_v7000")
    correlation = sketch.call(api, start, end, thread, return_value=2 if event.what == "failed" else 0)
    if event.what not in {"lost", "lost graph", "failed", "wait"}:
        _operations(sketch, event, thread >> 24, start, correlation)


def _operations(sketch: Sketch, event: Event, process: int, launched: int, correlation: int) -> None:
    now = launched + event.delay
    place = {"process": process, "correlation": correlation, "gpu": event.gpu, "stream": event.stream}
    works = event.works if event.what == "nodes" else event.works[:1]
    for number, (gap, length) in enumerate(works, 1):
        start = max(now + gap, EPOCH)
        now = max(now, start + length)
        if event.what == "graph":
            sketch.operation(GRAPH, start, start + length, **place, graph=9)
        elif event.what == "nodes":
            sketch.operation(KERNEL, start, start + length, **place, name="node", graph_node=5 << 32 | number)
        elif event.what == "copy":
            sketch.operation(MEMCPY, start, start + length, **place, bytes=8, copy_kind=2, src_kind=2, dst_kind=0)
        elif event.what == "memset":
            sketch.operation(MEMSET, start, start + length, **place, bytes=8, dst_kind=2)
        else:
            sketch.operation(KERNEL, start, start + length, **place, name="kernel")


def moved(trace: Trace, offset: int) -> Trace:
    """The capture with all its times shifted."""
    frames = {
        name: frame.with_columns(pl.col("^.*_ns$") + offset)
        for name in ("operations", "calls", "nvtx", "overheads", "graph_nodes", "syncs", "os_calls")
        for frame in [getattr(trace, name)]
    }
    return replace(trace, **frames)


def relabelled(trace: Trace) -> Trace:
    """The capture with other ids, mostly in the opposite order; processes keep their order, as ranks do."""
    node, lower = pl.col("graph_node"), (1 << 32) - 1
    change = {
        "correlation": 0x7FFF_0000 - pl.col("correlation"),
        "stream": 1000 - pl.col("stream"),
        "name": 5000 - pl.col("name"),
        "graph_node": (((5000 - node // (1 << 32)) * (1 << 32)) + (node & lower)),
        "graph": 5000 - pl.col("graph"),
        "process": pl.col("process") + (1 << 30),
        "thread": pl.col("thread") + (1 << 54),
    }
    frames = {
        name: frame.with_columns(new.alias(column) for column, new in change.items() if column in frame.columns)
        for name in ("operations", "calls", "graph_nodes", "syncs", "events")
        for frame in [getattr(trace, name)]
    }
    others = {
        name: getattr(trace, name).with_columns(change["process"], change["thread"]) for name in ("overheads", "nvtx")
    }
    return replace(trace, **frames, **others, names={5000 - key: text for key, text in trace.names.items()})
