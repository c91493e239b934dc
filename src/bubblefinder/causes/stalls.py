"""Calls that hold a thread up by what they do, whatever their names: polls, launches that wait, long driver calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.thresholds import (
    FEWEST,
    LONGER_KERNEL_NS,
    NOTABLE_SHARE,
    RETURN_NS,
    SLOW_LAUNCH,
    SLOW_LAUNCH_NS,
    STALL_NS,
    SYNCHRONOUS_SHARE,
    USUALLY,
)
from bubblefinder.intervals import Cover, begin_and_end, one_of, overlap_with, union
from bubblefinder.lookup import kept, on_gpu, positions, taken, where
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.launches import LAUNCHES
from bubblefinder.timeline.model import LATE

if TYPE_CHECKING:
    from bubblefinder.timeline.model import Timeline

COLUMNS: Final = (
    "call_index", "process", "thread", "start_ns", "end_ns", "api", "copy_index", "synchronises", "awaits",
)  # fmt: skip
_WORKS: Final = (
    CallRole.OTHER,
    CallRole.CAPTURE_BEGIN,
    CallRole.CAPTURE_END,
    CallRole.EVENT_RECORD,
    CallRole.STREAM_WAIT,
)


def find_polls(timeline: Timeline) -> pl.DataFrame:
    """Return the runs of cudaEventQuery or cudaStreamQuery that end in success, as one wait each.

    A run is what one thread asks again and again with no other CUDA call between; its `call_index` is the last. A few
    queries are no poll: allocators ask so, now and then, whether memory is free again.
    """
    calls = timeline.calls[["process", "thread", "start_ns", "end_ns", "api", "role", "return_value"]]
    if not (calls["role"] == CallRole.QUERY).any():
        return _none(timeline)
    asks = pl.col("role") == CallRole.QUERY
    numbered = (
        calls.with_row_index("call_index").with_columns_seq(run=(~asks).cum_sum().over("thread")).pipe(where, asks)
    )
    done = pl.col("return_value").fill_null(0) == 0
    runs = numbered.with_columns_seq(
        attempt=done.cast(pl.Int64).shift(1, fill_value=0).cum_sum().over("thread"), done=done
    ).group_by("process", "thread", "run", "attempt", "api", maintain_order=True)
    polls = runs.agg(pl.col("start_ns").first(), pl.col("end_ns", "call_index", "done").last(), asked=pl.len())
    return _shaped(kept(polls, polls["done"] & (polls["asked"] >= FEWEST)))


def find_synchronous_launches(timeline: Timeline) -> pl.DataFrame:
    """Return the launches that returned behind their own work, of threads whose launches nearly all do.

    CUDA_LAUNCH_BLOCKING=1 leaves them. `copy_index` is the first operation of the launch.
    """
    leads, operations = timeline.leads, timeline.operations
    called = taken(timeline.calls[["process", "thread", "start_ns", "end_ns", "api", "role"]], leads["call_index"])
    starts, ends = (operations[side][leads["op_index"]].to_numpy() for side in ("start_ns", "end_ns"))
    behind = called["end_ns"].to_numpy() >= ends
    kernel = called["role"].to_numpy() == CallRole.LAUNCH_KERNEL
    if not (behind & kernel).any():
        return _none(timeline)
    launched = called.hstack(leads.select("call_index", copy_index="op_index"))
    launched = launched.with_columns(behind=pl.Series(behind), longer=pl.Series(ends - starts >= LONGER_KERNEL_NS))
    kernels = kept(launched, kernel)
    longer = pl.when("longer").then("behind")
    threads = kernels.group_by("thread").agg(share=longer.mean(), count=longer.count())
    always = kept(threads, (threads["share"] >= SYNCHRONOUS_SHARE) & (threads["count"] >= FEWEST))["thread"]
    return _shaped(kernels.filter(pl.col("behind") & pl.col("thread").is_in(always.implode())), synchronises=False)


def find_long_calls(timeline: Timeline, threads: pl.DataFrame) -> pl.DataFrame:
    """Return the long calls of launching threads under which a GPU had nothing to do, beside waits and usual launches.

    `awaits` tells those that come back as the GPU has run dry, as that API usually does: they wait for the GPU. The
    others are busy with themselves, as cudaHostAlloc or cudaGraphInstantiate are.

    Args:
        timeline: the timeline.
        threads: thread and gpu of the threads that launch.
    """
    calls = timeline.calls[["process", "thread", "start_ns", "end_ns", "api", "role"]].with_row_index("call_index")
    long = (calls["end_ns"] - calls["start_ns"]).to_numpy() >= STALL_NS
    calls = kept(calls, long).pipe(where, pl.col("thread").is_in(threads["thread"].unique().implode()))
    working = kept(calls, one_of(calls["role"].to_numpy(), _WORKS))
    found = [part for part in (working, _slow_launches(timeline, calls)) if len(part)]
    parts = [
        _judged(timeline, part.join(mine[["thread"]], on="thread", how="semi"), int(gpu))
        for (gpu,), mine in threads.partition_by("gpu", as_dict=True, maintain_order=True).items()
        for part in found
    ]
    return pl.concat([_none(timeline), *parts]).unique("call_index", keep="first", maintain_order=True)


def _slow_launches(timeline: Timeline, calls: pl.DataFrame) -> pl.DataFrame:
    """Return the launch calls far longer than usual for what they launch: a graph, or any kernel."""
    made = timeline.calls[["thread", "role"]].with_row_index("call_index")
    length = timeline.calls["end_ns"] - timeline.calls["start_ns"]
    launching = one_of(made["role"].to_numpy(), LAUNCHES)
    if not (launching & (length.to_numpy() >= SLOW_LAUNCH_NS)).any():
        return calls.clear()
    launches = made.with_columns(length=length).pipe(where, pl.Series(launching))
    replays = timeline.replays[["call_index", "graph"]].drop_nulls("call_index")
    replays = replays.unique("call_index", keep="first", maintain_order=True)
    graph = positions(replays["call_index"].to_numpy(), launches["call_index"].to_numpy(), len(timeline.calls))
    kind = ("thread", "role", "graph")
    told = launches.with_columns(replays["graph"][graph])
    usual = (
        told.group_by(kind).agg(usual=pl.col("length").median(), alike=pl.len()).pipe(where, pl.col("alike") >= FEWEST)
    )
    slow = kept(told, told["length"] >= SLOW_LAUNCH_NS).join(usual, on=kind, nulls_equal=True)
    slow = kept(slow, slow["length"] >= SLOW_LAUNCH * slow["usual"])
    return calls.join(slow[["call_index"]], on="call_index", how="semi", maintain_order="left")


def _judged(timeline: Timeline, calls: pl.DataFrame, gpu: int) -> pl.DataFrame:
    """Return the calls with idle of a GPU under them, with `awaits`."""
    starts, ends = begin_and_end(calls)
    idle = late_idle(timeline, gpu)
    if not len(idle) or not len(calls):
        return _none(timeline)
    position = np.minimum(np.searchsorted(idle.starts, starts), len(idle) - 1)
    dry = idle.starts[position]
    opened = (dry >= starts) & (dry <= ends)
    waited = opened & (dry - starts >= STALL_NS) & (ends - dry <= RETURN_NS)
    judged = calls.with_columns(waited=waited).with_columns(
        awaits=pl.col("waited") & (pl.col("waited").mean().over("thread", "api") > USUALLY)
    )
    judged = judged.with_columns(idle_ns=overlap_with(starts, ends, idle))
    notable = pl.col("idle_ns").sum().over("thread", "api") >= NOTABLE_SHARE * idle.total_ns
    return _shaped(judged.pipe(where, (pl.col("idle_ns") > 0) & notable))


def late_idle(timeline: Timeline, gpu: int) -> Cover:
    """Return when a GPU was idle since the host had not launched."""
    pieces = on_gpu(timeline.pieces, gpu)
    late = one_of(pieces["idle_class"].to_numpy(), LATE)
    return union(*(times[late] for times in begin_and_end(pieces)))


def _shaped(calls: pl.DataFrame, *, synchronises: bool = True) -> pl.DataFrame:
    """Return calls in the columns of a wait; where nothing else is given they wait, for no operation in particular."""
    given = calls.columns
    return calls.with_columns_seq(
        pl.lit(synchronises).alias("synchronises"),
        pl.col("copy_index").cast(pl.UInt32) if "copy_index" in given else pl.lit(None, pl.UInt32).alias("copy_index"),
        pl.col("awaits") if "awaits" in given else pl.lit(value=True).alias("awaits"),
    ).select_seq(COLUMNS)


def _none(timeline: Timeline) -> pl.DataFrame:
    schema = {name: timeline.calls.schema.get(name, pl.Boolean) for name in COLUMNS}
    return pl.DataFrame(schema=schema | {"call_index": pl.UInt32, "copy_index": pl.UInt32})
