"""From a timeline to the blocks and calls that a what-if replay is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import last_before
from bubblefinder.timeline.ledger import cover_of
from bubblefinder.timeline.model import IdleClass, on_gpu
from bubblefinder.trace.model import KERNEL, MEMCPY, MEMSET

if TYPE_CHECKING:
    from bubblefinder.causes.model import Causes
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

MOST_LAUNCHES: Final = 12_000
"""No more steps are replayed than hold so many launches of all ranks, from the middle of a capture: one replay then
takes some 10 ms, and a report needs up to a hundred ..."""
FEWEST_STEPS: Final = 8
"""... but so many steps at least, so that their median means something."""

_KINDS: Final = {KERNEL: "kernel", MEMCPY: "copy", MEMSET: "memset"}


def find_blocks(timeline: Timeline, causes: Causes, span: tuple[int, int]) -> pl.DataFrame:
    """Return the blocks of GPU work that start inside a span of time, by start; columns as in `Model.blocks`."""
    columns = ("gpu", "process", "context", "stream", "start_ns", "end_ns", "call_index", "copy_kind", "kind")
    inside = pl.col("start_ns").is_between(*span, closed="left")
    loose = timeline.operations.select(inside & pl.col("replay_index").is_null()).to_series().arg_true()
    singles = timeline.operations.select(columns)[loose].with_columns(
        op_index=loose,
        kind=pl.col("kind").replace_strict(_KINDS, default="graph", return_dtype=pl.String),
    )
    blocks = pl.concat([singles, _replay_blocks(timeline, causes).filter(inside)], how="diagonal")
    launched = pl.col("call_index").is_between(blocks["call_index"].min(), blocks["call_index"].max())
    roles = causes.submitted.select("gpu", "call_index", "role", "phase").filter(launched)
    return blocks.sort("start_ns", "end_ns", maintain_order=True).join(
        roles, on=["gpu", "call_index"], how="left", maintain_order="left"
    )


def _replay_blocks(timeline: Timeline, causes: Causes) -> pl.DataFrame:
    first = causes.submitted.select("replay_index", "op_index").drop_nulls().unique("replay_index", keep="first")
    place = first.hstack(timeline.operations[["context", "stream"]][first["op_index"]])
    return (
        timeline.replays.select("gpu", "process", "start_ns", "end_ns", "call_index", "nodes")
        .with_row_index("replay_index")
        .join(place, on="replay_index", how="left", maintain_order="left")
        .with_columns(
            kind=pl.lit("graph"),
            intra_ns=pl.when(pl.col("nodes").is_not_null()).then(_idle_inside(timeline)),
        )
    )


def _idle_inside(timeline: Timeline) -> pl.Series:
    """Return the idle inside each replay."""
    idle = [np.zeros(0, np.int64)]
    for device in timeline.devices:
        pieces = on_gpu(timeline.pieces, device.gpu).select("start_ns", "end_ns", "idle_class")
        inner = cover_of(pieces.filter(pl.col("idle_class") == int(IdleClass.INTRA_GRAPH)))
        replays = on_gpu(timeline.replays, device.gpu)["start_ns"].to_numpy()
        owner = last_before(inner.starts, replays)
        summed = np.bincount(owner + 1, weights=inner.ends - inner.starts, minlength=len(replays) + 1)
        idle.append(summed[1:].astype(np.int64))
    return pl.Series(np.concatenate(idle))


def by_block(operations: pl.DataFrame, blocks: pl.DataFrame, rows: pl.DataFrame, operation: pl.Series) -> pl.DataFrame:
    """Return the rows whose operation (a position in the timeline's) belongs to a block, with that block."""
    placed = rows.with_columns(op_index=operation.cast(pl.Int64), replay_index=operations["replay_index"][operation])
    numbered = blocks.select(pl.col("op_index").cast(pl.Int64), "replay_index").with_row_index("block")
    alone = placed.filter(pl.col("replay_index").is_null()).join(numbered.drop("replay_index"), on="op_index")
    inside = placed.filter(pl.col("replay_index").is_not_null()).join(
        numbered.drop("op_index").drop_nulls(), on="replay_index"
    )
    columns = (*rows.columns, "block")
    return pl.concat([alone.select(columns), inside.select(columns)])


def find_calls(timeline: Timeline, causes: Causes, blocks: pl.DataFrame) -> pl.DataFrame:
    """Return the calls that matter to a replay, by thread and time: those that submit the blocks, and the waits.

    All other calls are part of the work between these. A poll is one call, from the first query to the last.
    """
    submit = blocks["call_index"].drop_nulls().unique()
    first = timeline.calls["start_ns"][submit].min()
    late = pl.col("start_ns") >= (first if first is not None else 0)
    waiting = causes.waits.filter(late & (pl.col("start_ns") <= pl.lit(blocks["end_ns"].max())))
    begun = waiting.select("call_index", "awaits", begun_ns="start_ns").unique("call_index")
    index = pl.concat([submit, begun["call_index"]]).unique().sort().rename("call_index")
    calls = timeline.calls.select("thread", "process", "start_ns", "end_ns", api_role="role")[index]
    placed = calls.with_columns(index).join(begun, on="call_index", how="left", maintain_order="left")
    return placed.select(
        "call_index",
        "thread",
        "process",
        pl.coalesce("begun_ns", "start_ns").alias("start_ns"),
        "end_ns",
        "api_role",
        waits=pl.col("awaits").fill_null(value=False),
    ).sort("thread", "start_ns", "call_index")


def span_of_steps(timeline: Timeline, steps: Steps, causes: Causes) -> tuple[int, int]:
    """Return the span of time to replay: the capture, or the middle of a long one."""
    windows = steps.windows
    counts = windows.group_by("gpu", "process").len()["len"].to_list()
    per_step = len(causes.submitted) / max(counts, default=1)
    most = max(FEWEST_STEPS, int(MOST_LAUNCHES / max(per_step, 1)))
    if max(counts, default=0) <= most:
        return min(device.start_ns for device in timeline.devices), max(
            device.end_ns for device in timeline.devices
        ) + 1
    lane = windows.filter((pl.col("gpu") == windows["gpu"][0]) & (pl.col("process") == windows["process"][0]))
    first = max(0, (len(lane) - most) // 2)
    last = min(first + most, len(lane)) - 1
    return int(lane["start_ns"][first]), int(lane["end_ns"][last])
