"""From a timeline to the model that a what-if replays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.collectives import find_collectives, find_joint_replays
from bubblefinder.intervals import begin_and_end
from bubblefinder.lookup import NOWHERE, Timetable, kept, where
from bubblefinder.replay.device_edges import device_edges, inside_edges
from bubblefinder.replay.host_edges import host_edges, place_waits
from bubblefinder.replay.model import Model
from bubblefinder.replay.numbering import Nodes
from bubblefinder.replay.record import find_blocks, find_calls, span_of_steps
from bubblefinder.replay.side_streams import alone_ns
from bubblefinder.timeline.ledger import occupied_ns

if TYPE_CHECKING:
    from bubblefinder.causes.model import Causes
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline


_RANK: Final = ("gpu", "process")
_MEETS: Final = {"collective": pl.Int64, "block": pl.UInt32, "start_ns": pl.Int64, "end_ns": pl.Int64}


def build_model(timeline: Timeline, steps: Steps, causes: Causes) -> Model:
    """Return the recorded run as nodes and their dependencies."""
    span = span_of_steps(timeline, steps, causes)
    blocks = find_blocks(timeline, causes, span)
    calls = find_calls(timeline, causes, blocks)
    numbered = calls[["call_index"]].with_row_index("call")
    blocks = blocks.join(numbered, on="call_index", how="left", maintain_order="left")
    waits = place_waits(causes, calls, blocks)
    meets = _meets(timeline, steps, blocks)
    nodes = Nodes.of(calls, blocks, meets)
    guesses = host_edges(nodes, calls, blocks, waits)
    usual, seen = device_edges(nodes, timeline, calls, blocks)
    inside_edges(nodes, blocks, meets)
    recorded, place, edges = nodes.ordered()
    blocks = blocks.with_columns_seq(
        begin=place[nodes.blocks.begin],
        end=place[nodes.blocks.end],
        latency_ns=usual.latency,
        queued_ns=usual.queued,
    )
    return Model(
        recorded=recorded,
        edges=edges,
        calls=calls.with_columns_seq(begin=place[nodes.calls.begin], end=place[nodes.calls.end]),
        blocks=blocks,
        windows=_windows(timeline, steps, blocks),
        waits=waits,
        guesses=guesses + seen,
        left_out=_left_out(steps, span),
    )


def _left_out(steps: Steps, span: tuple[int, int]) -> int:
    """Return how many decode steps don't lie in a span of time."""
    start, end = span
    inside = (steps.windows["start_ns"] >= start) & (steps.windows["end_ns"] < end)
    return int((steps.decode & ~inside).sum())


def _meets(timeline: Timeline, steps: Steps, blocks: pl.DataFrame) -> pl.DataFrame:
    """Return the collectives inside the blocks: collective, block, start_ns, end_ns; by block and time."""
    if len(timeline.devices) < 2:  # noqa: PLR2004 - it takes at least two ranks to meet
        return pl.DataFrame(schema=_MEETS)
    found = find_collectives(timeline)
    joint = find_joint_replays(timeline, steps.replays["role"])
    numbered = blocks[["op_index", "replay_index"]].with_row_index("block")
    replayed = found.join(numbered.drop("op_index").drop_nulls(), on="replay_index")
    eager = found.pipe(where, pl.col("replay_index").is_null()).join(numbered.drop("replay_index"), on="op_index")
    whole = joint.join(numbered.drop("op_index").drop_nulls(), on="replay_index")
    whole = whole.with_columns(pl.col("collective") + len(timeline.operations))
    meets = pl.concat([part[["collective", "block", "start_ns", "end_ns"]] for part in (replayed, eager, whole)])
    several = pl.len().over("collective") > 1
    return meets.pipe(where, several).sort("block", "start_ns")


def _windows(timeline: Timeline, steps: Steps, blocks: pl.DataFrame) -> pl.DataFrame:
    """Return the closed decode steps whose first operation, and whose successor's, begin a block.

    Not on a GPU that several processes use: whether the others would fill what one frees, nothing shows.
    """
    shared = [device.gpu for device in timeline.devices if len(device.processes) > 1]
    closed = kept(steps.windows, steps.decode.to_numpy() & ~np.isin(steps.windows["gpu"].to_numpy(), shared))
    begun = [_beginning(blocks, closed[[*_RANK, side]].rename({side: "start_ns"})) for side in ("start_ns", "end_ns")]
    timed = closed.hstack([pl.Series("begin", begun[0]), pl.Series("end", begun[1])])
    timed = kept(timed, (begun[0] != NOWHERE) & (begun[1] != NOWHERE))
    parts = [
        _with_gpu_time(timeline, kept(blocks, blocks["gpu"] == mine["gpu"][0]), int(mine["gpu"][0]), mine)
        for mine in timed.partition_by("gpu", maintain_order=True)
    ]
    empty = timed.clear().with_columns_seq(occupied_ns=pl.lit(0, pl.Int64), alone_ns=pl.lit(0, pl.Int64))
    found = pl.concat([empty, *parts])
    lengths = (found["end_ns"] - found["start_ns"]).rename("recorded_ns")
    return found[[*_RANK, "begin", "end"]].hstack([lengths, *found[["occupied_ns", "alone_ns"]]])


def _beginning(blocks: pl.DataFrame, moments: pl.DataFrame) -> Ints:
    """Return the node of the block of a rank that begins at each moment, NOWHERE where none does."""
    ordered = blocks[[*_RANK, "start_ns", "begin"]].sort(*_RANK, "start_ns", maintain_order=True)
    times = moments["start_ns"].to_numpy()
    row = Timetable.of(ordered, _RANK, "start_ns").first(moments, times)
    begun, node = (np.append(ordered[name].to_numpy(), NOWHERE)[row] for name in ("start_ns", "begin"))
    return np.where((row != NOWHERE) & (begun == times), node, NOWHERE)


def _with_gpu_time(timeline: Timeline, blocks: pl.DataFrame, gpu: int, windows: pl.DataFrame) -> pl.DataFrame:
    """Return the windows of a GPU with how long it is occupied, and how long by a side stream alone."""
    starts, ends = begin_and_end(windows)
    return windows.with_columns_seq(
        occupied_ns=occupied_ns(timeline, gpu, starts, ends), alone_ns=alone_ns(blocks, starts, ends)
    )
