"""Dependencies of the host: a thread's own order, what its waits wait for, and who waits for whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import LONG_AGO
from bubblefinder.lookup import changes, kept, where
from bubblefinder.replay.model import EdgeKind

if TYPE_CHECKING:
    from bubblefinder.causes.model import Causes
    from bubblefinder.intervals import Ints
    from bubblefinder.replay.numbering import Nodes

RETURN_NS: Final = 5_000
"""How long a wait takes to return after its work, where the capture has no example."""
CHECK_NS: Final = 2_000
"""How long a wait takes that finds its work done, where the capture has no example."""


def place_waits(causes: Causes, calls: pl.DataFrame, blocks: pl.DataFrame) -> pl.DataFrame:
    """Return the waits of a replay: wait_index, call, copy_block and what else of `causes.waits` a change needs."""
    numbered = calls[["call_index"]].with_row_index("call")
    copies = blocks.select(copy_index="op_index").with_row_index("copy_block")
    wanted = (
        "call_index", "copy_index", "synchronises", "awaits", "site", "group", "thread", "launcher", "process", "gpu",
        "api", "awaited_stream", "recorded_ns", "start_ns", "end_ns",
    )  # fmt: skip
    return (
        causes.waits.select_seq(*wanted)
        .with_row_index("wait_index")
        .join(numbered, on="call_index", how="inner", maintain_order="left")
        .join(copies, on="copy_index", how="left", maintain_order="left")
    )


def host_edges(nodes: Nodes, calls: pl.DataFrame, blocks: pl.DataFrame, waits: pl.DataFrame) -> int:
    """Add the dependencies of the host; return how many waits had to be told by the order seen alone."""
    _segments(nodes, calls, waits)
    awaited, guesses = _awaited(calls, blocks, kept(waits, waits["awaits"]))
    _waiting(nodes, calls, awaited)
    return guesses


def _segments(nodes: Nodes, calls: pl.DataFrame, waits: pl.DataFrame) -> None:
    """Each call begins after its thread's work since the one before; if another thread held it up, after that."""
    thread = calls["thread"].to_numpy()
    later = np.flatnonzero(~changes(thread))
    begins = nodes.calls.starts[later]
    source, distance = nodes.calls.after(later - 1, begins)
    held, blocked, ended = _handovers(calls, waits)
    shorter = np.zeros(len(calls), np.int64)
    shorter[held] = blocked
    nodes.add(EdgeKind.SEGMENT, source, nodes.calls.begin[later], np.maximum(distance - shorter[later], 0), later)
    nodes.add(
        EdgeKind.HANDOVER,
        nodes.calls.end[ended],
        nodes.calls.begin[held],
        nodes.calls.starts[held] - nodes.calls.ends[ended],
        held,
    )


def _handovers(calls: pl.DataFrame, waits: pl.DataFrame) -> tuple[Ints, Ints, Ints]:
    """Return the calls that a thread made after another thread's wait, how long that wait was, and its call."""
    foreign = kept(waits, waits["thread"] != waits["launcher"]).sort("end_ns")
    if foreign.is_empty():
        nothing = np.empty(0, np.int64)
        return nothing, nothing, nothing
    made = calls.select("start_ns", launcher="thread").with_row_index("next").sort("start_ns")
    found = foreign.join_asof(
        made, left_on="end_ns", right_on="start_ns", by="launcher", strategy="forward", check_sortedness=False
    )
    found = found.drop_nulls("next").unique("next", keep="last", maintain_order=True)
    return (
        found["next"].to_numpy().astype(np.int64),
        (found["end_ns"] - found["start_ns"]).to_numpy(),
        found["call"].to_numpy().astype(np.int64),
    )


def _awaited(calls: pl.DataFrame, blocks: pl.DataFrame, waits: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Return which blocks each wait waits for (call, block), and how many waits were told by the order seen alone."""
    unique = waits.unique("call", keep="first", maintain_order=True)
    copied = kept(unique, ~unique["synchronises"]).select_seq("call", block="copy_block").drop_nulls()
    if unique["synchronises"].not_().all():
        return copied, 0
    submitted = blocks.select_seq(
        "process", "gpu", "stream", "end_ns", at=pl.coalesce(calls["start_ns"][blocks["call"]], "start_ns")
    )
    submitted = submitted.with_row_index("block").sort("at")
    syncs = kept(unique, unique["synchronises"]).with_columns_seq(
        stream="awaited_stream", at=pl.coalesce("recorded_ns", "start_ns")
    )
    whole = pl.col("api").cast(pl.String).str.contains("Device|Ctx|Thread")
    event = pl.col("api").cast(pl.String).str.contains("Event")
    streams = submitted[["process", "stream"]].unique()
    everything = syncs.pipe(where, whole).drop("stream").join(streams, on="process")
    told = pl.concat(
        [
            everything,
            syncs.pipe(where, ~whole & pl.col("stream").is_not_null() & (~event | pl.col("recorded_ns").is_not_null())),
        ],
        how="diagonal",
    )
    told = _last_before(told, submitted, ["process", "stream"])
    unknown = syncs.join(told[["call"]].unique(), on="call", how="anti").pipe(
        where, pl.col("end_ns") > pl.col("start_ns")
    )
    guessed = _guessed(unknown, submitted)
    found = [rows.select_seq("call", pl.col("block").cast(pl.UInt32)) for rows in (copied, told, guessed)]
    return pl.concat(found), len(guessed)


def _guessed(waits: pl.DataFrame, submitted: pl.DataFrame) -> pl.DataFrame:
    """Return the last block that ended within each wait, of those submitted before its return."""
    if waits.is_empty():
        return submitted[["block"]].clear().with_columns(call=pl.lit(0, dtype=waits.schema["call"]))
    found = _last_before(waits.with_columns(at="end_ns"), submitted.with_columns(at="end_ns").sort("at"), ["process"])
    return kept(found, found["block_end_ns"] > found["start_ns"])


def _last_before(waits: pl.DataFrame, submitted: pl.DataFrame, by: list[str]) -> pl.DataFrame:
    """Return the last block submitted to the same stream before each wait, if it ended by the wait's return."""
    candidates = submitted.select_seq("at", "block", *by, block_end_ns="end_ns").with_columns(pl.col("at"))
    found = waits.sort("at").join_asof(candidates, on="at", by=by, check_sortedness=False)
    return kept(found, found["block_end_ns"] <= found["end_ns"])


def _waiting(nodes: Nodes, calls: pl.DataFrame, awaited: pl.DataFrame) -> None:
    """A wait returns when the latest of what it waits for has ended; every call takes its own time."""
    call, block = (awaited[name].to_numpy().astype(np.int64) for name in ("call", "block"))
    latest = np.full(len(calls), LONG_AGO)
    np.maximum.at(latest, call, nodes.blocks.ends[block])
    length = nodes.calls.ends - nodes.calls.starts
    blocked = latest > nodes.calls.starts
    returning = np.where(blocked, nodes.calls.ends - latest, 0)
    usual_return = int(np.median(returning[blocked])) if blocked.any() else RETURN_NS
    at_once = calls["waits"].to_numpy() & ~blocked
    check = int(np.median(length[at_once])) if at_once.any() else CHECK_NS
    own = np.where(blocked, np.minimum(check, length), length)
    every = np.arange(len(calls))
    nodes.add(EdgeKind.CALL, nodes.calls.begin, nodes.calls.end, own, every)
    distance = nodes.calls.ends[call] - nodes.blocks.ends[block]
    binding = blocked[call] & (nodes.blocks.ends[block] == latest[call])
    lag = np.where(binding, distance, np.minimum(distance, usual_return))
    nodes.add(EdgeKind.AWAIT, nodes.blocks.end[block], nodes.calls.end[call], lag, call)
