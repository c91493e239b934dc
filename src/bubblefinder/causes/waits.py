"""Every call that made a launching thread wait for the GPU, and what it waited for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.handovers import held_up_by_others
from bubblefinder.causes.stalls import COLUMNS, find_long_calls, find_polls, find_synchronous_launches
from bubblefinder.intervals import begin_and_end, one_of, outermost
from bubblefinder.lookup import NOWHERE, Timetable, changes, column_of, kept, nullable, places, taken, where
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.launches import LAUNCHES
from bubblefinder.trace.model import COPY_KINDS, MEMCPY, MEMORY_KINDS

if TYPE_CHECKING:
    from bubblefinder.timeline.model import Timeline


_ANY_STREAM: Final = np.iinfo(np.uint32).max


def find_waits(timeline: Timeline, submitted: pl.DataFrame) -> pl.DataFrame:
    """Return one row a wait and GPU that the thread it holds up launches on, by start.

    Args:
        timeline: the timeline.
        submitted: from `launches.find_submissions`.

    Returns:
        call_index, thread (that waits), launcher (the launching thread it holds up: itself, or
        another one that waits for it), process, gpu, api, start_ns, end_ns (of the call; a poll begins with the first
        of its queries), copy_index (the operation that a call waits for which submitted it itself, or the copy that a
        synchronisation waits for; null if none is known), synchronises (False where the call submitted what it waits
        for), awaits (False for a long driver call that is busy with itself), awaited_stream and, of an event,
        recorded_ns (null where unknown), copy_kind, memory_kind, bytes.
    """
    launchers = _launchers(submitted)
    found = (
        _waiting_calls(timeline),
        find_polls(timeline),
        find_synchronous_launches(timeline),
        find_long_calls(timeline, launchers),
    )
    calls = _outermost(pl.concat(found))
    own = calls.join(launchers[["thread", "gpu"]], on="thread").with_columns(launcher="thread")
    others = held_up_by_others(calls, launchers, timeline)
    waits = pl.concat([own, others], how="diagonal").sort("start_ns", "call_index", "gpu")
    return _with_copies(waits, timeline, submitted)


def _launchers(submitted: pl.DataFrame) -> pl.DataFrame:
    """Return process, thread and gpu of every thread that launches; those that only copy don't count beside them."""
    first = np.flatnonzero(changes(*(column_of(submitted, name).to_numpy() for name in ("gpu", "thread"))))
    launches = np.logical_or.reduceat(one_of(submitted["api_role"].to_numpy(), LAUNCHES), first)
    pairs = submitted[["process", "thread", "gpu"]][first].with_columns(launches=pl.Series(launches))
    return pairs.pipe(where, pl.col("launches") | ~pl.col("launches").any().over("process", "gpu")).drop("launches")


def _waiting_calls(timeline: Timeline) -> pl.DataFrame:
    """Return the synchronisations and the calls of blocking copies."""
    calls, operations = timeline.calls, timeline.operations
    blocking = np.flatnonzero(operations["blocking"].to_numpy())
    copying, first = np.unique(places(operations["call_index"][blocking]), return_index=True)
    copying, copies = copying[copying != NOWHERE], blocking[first[copying != NOWHERE]]
    failed = column_of(calls, "return_value") != 0
    waited = calls["role"] == CallRole.WAIT
    index = np.union1d(np.flatnonzero((waited & ~failed.fill_null(value=False)).to_numpy()), copying)
    copy = np.full(len(index), NOWHERE)
    copy[np.searchsorted(index, copying)] = copies
    return (
        taken(calls[["process", "thread", "start_ns", "end_ns", "api"]], index)
        .with_columns_seq(
            call_index=pl.Series(index, dtype=pl.UInt32),
            copy_index=nullable(copy),
            synchronises=pl.Series(copy == NOWHERE),
            awaits=pl.lit(value=True),
        )
        .select_seq(COLUMNS)
    )


def _outermost(calls: pl.DataFrame) -> pl.DataFrame:
    """Leave out calls made inside another wait of their thread (a driver call under a runtime call)."""
    ordered = calls.sort("thread", "start_ns", pl.col("end_ns"), descending=[False, False, True])
    return kept(ordered, outermost(ordered["thread"].to_numpy(), *begin_and_end(ordered)))


def _with_copies(waits: pl.DataFrame, timeline: Timeline, submitted: pl.DataFrame) -> pl.DataFrame:
    """Add the stream, the record and the copy that each wait waits for."""
    waits = waits.hstack(_awaited_streams(waits, timeline))
    asks = waits.select(pl.col("synchronises") & pl.col("api").cast(pl.String).str.contains("Synchronize|Query"))
    asking = np.flatnonzero(asks.to_series().to_numpy())
    if len(asking):
        awaited = np.full(len(waits), NOWHERE)
        awaited[asking] = places(_awaited_copies(waits[asking], timeline, submitted))
        waits = waits.with_columns(copy_index=pl.coalesce("copy_index", nullable(awaited)))
    copies = taken(timeline.operations[["copy_kind", "src_kind", "dst_kind", "bytes"]], waits["copy_index"])
    host_side = pl.when(pl.col("copy_kind").is_in([1, 3])).then("src_kind").otherwise("dst_kind")
    return waits.hstack(copies).select_seq(
        *waits.columns,
        copy_kind=pl.col("copy_kind").replace_strict(COPY_KINDS, default=None, return_dtype=pl.String),
        memory_kind=host_side.replace_strict(MEMORY_KINDS, default=None, return_dtype=pl.String),
        bytes="bytes",
    )


def _awaited_copies(waits: pl.DataFrame, timeline: Timeline, submitted: pl.DataFrame) -> pl.Series:
    """Return the last copy that the thread issued on the awaited stream, with no launch in between.

    For an event the copy precedes its record; a copy between device memories moves no result and is no reason to wait.
    """
    copying = submitted["api_role"] == CallRole.COPY
    issued = submitted[["thread", "gpu", "op_index", "end_ns"]].pipe(where, copying)
    issued = issued.hstack(taken(timeline.operations[["kind", "copy_kind", "stream"]], issued["op_index"]))
    host = (pl.col("kind") == MEMCPY) & pl.col("copy_kind").is_in([1, 2, 3, 4])
    copied = issued.pipe(where, host).select_seq(
        "thread", "gpu", at="end_ns", awaited_stream="stream", copied_ns="end_ns", awaited="op_index"
    )
    copied = copied.sort("at")
    launched = submitted.select_seq("thread", "gpu", at="end_ns").pipe(where, ~copying).sort("thread", "gpu", "at")
    points = waits.select_seq("thread", "gpu", "awaited_stream", at=pl.coalesce("recorded_ns", "start_ns"))
    points = points.with_row_index("point").sort("at")
    on_stream = points.join_asof(copied, on="at", by=["thread", "gpu", "awaited_stream"], check_sortedness=False)
    anywhere = points.join_asof(copied.drop("awaited_stream"), on="at", by=["thread", "gpu"], check_sortedness=False)
    known = pl.col("awaited_stream").is_not_null()
    before = Timetable.of(launched, ("thread", "gpu"), "at").last(points, points["at"].to_numpy())
    either = on_stream.select_seq(
        "point",
        awaited=pl.when(known).then("awaited").otherwise(anywhere["awaited"]),
        copied_ns=pl.when(known).then("copied_ns").otherwise(anywhere["copied_ns"]),
        launched_ns=launched["at"][nullable(before)],
    )
    fresh = (pl.col("copied_ns") > pl.col("launched_ns")).fill_null(value=True)
    return either.sort("point").select(pl.when(fresh).then("awaited")).to_series()


def _awaited_streams(waits: pl.DataFrame, timeline: Timeline) -> pl.DataFrame:
    """Return for each wait the stream it waits for and, for an event, when that was recorded; null where unknown."""
    if timeline.trace.syncs.is_empty():
        unknown = timeline.trace.syncs["stream"].clear(len(waits)), waits["start_ns"].clear(len(waits))
        return pl.DataFrame(dict(zip(("awaited_stream", "recorded_ns"), unknown, strict=True)))
    syncs = timeline.trace.syncs.select_seq("process", "correlation", "event", "event_sync", awaited_stream="stream")
    syncs = syncs.pipe(where, pl.col("correlation").is_not_null()).unique(["process", "correlation"], keep="first")
    found = (
        waits.select_seq("process", "api", correlation=timeline.calls["correlation"][waits["call_index"]])
        .join(syncs, on=["process", "correlation"], how="left", maintain_order="left")
        .join(recorded_events(timeline), on=["process", "event", "event_sync"], how="left", maintain_order="left")
    )
    api = pl.col("api").cast(pl.String)
    stream = (
        pl.when(api.str.contains("Stream"))
        .then("awaited_stream")
        .when(api.str.contains("Event"))
        .then("recorded_stream")
    )
    return found.select_seq(
        awaited_stream=pl.when(stream.is_not_null() & (stream != _ANY_STREAM)).then(stream),
        recorded_ns=pl.when(api.str.contains("Event")).then("recorded_ns"),
    )


def recorded_events(timeline: Timeline) -> pl.DataFrame:
    """Return the last record of each event: process, event, event_sync, recorded_stream, and recorded_ns if known."""
    recorded = kept(timeline.calls, timeline.calls["role"] == CallRole.EVENT_RECORD)
    times = recorded.select_seq("process", "correlation", recorded_ns="start_ns").drop_nulls()
    return (
        timeline.trace.events.pipe(where, pl.col("event_sync").is_not_null())
        .unique(["process", "event", "event_sync"], keep="last", maintain_order=True)
        .join(
            times.unique(["process", "correlation"]), on=["process", "correlation"], how="left", maintain_order="left"
        )
        .select_seq("process", "event", "event_sync", "recorded_ns", recorded_stream="stream")
    )
