"""From a timeline to the blocks and calls that a what-if replay is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import NEVER, begin_and_end
from bubblefinder.lookup import NOWHERE, column_of, kept, nullable, on_gpu, place_among, places, taken, where
from bubblefinder.timeline.model import IdleClass
from bubblefinder.timeline.rank import Rank

if TYPE_CHECKING:
    from bubblefinder.causes.model import Causes
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

MOST_LAUNCHES: Final = 12_000
"""No more steps are replayed than hold so many launches of all ranks, from the middle of a capture: one replay then
takes some 10 ms, and a report needs up to a hundred ..."""
FEWEST_STEPS: Final = 8
"""... but so many steps at least, so that their median means something."""

_KINDS: Final = pl.Series("kind", ["kernel", "copy", "memset", "graph"])
"""By KERNEL, MEMCPY, MEMSET and GRAPH."""


def find_blocks(timeline: Timeline, causes: Causes, span: tuple[int, int]) -> pl.DataFrame:
    """Return the blocks of GPU work that start inside a span of time, by start; columns as in `Model.blocks`."""
    columns = ("gpu", "process", "context", "stream", "start_ns", "end_ns", "call_index", "copy_kind", "kind")
    operations, replays = timeline.operations, _replay_blocks(timeline, causes)
    within = operations["start_ns"].is_between(*span, closed="left")
    loose = np.flatnonzero((within & operations["replay_index"].is_null()).to_numpy())
    singles = taken(operations[list(columns)], loose)
    singles = singles.hstack([pl.Series("op_index", loose, pl.UInt32)]).with_columns(kind=_KINDS[singles["kind"]])
    replays = kept(replays, replays["start_ns"].is_between(*span, closed="left"))
    blocks = pl.concat([singles, replays], how="diagonal")
    launched = pl.col("call_index").is_between(blocks["call_index"].min(), blocks["call_index"].max())
    roles = causes.submitted[["gpu", "call_index", "role", "phase"]].pipe(where, launched)
    return blocks.sort("start_ns", "end_ns", maintain_order=True).join(
        roles, on=["gpu", "call_index"], how="left", maintain_order="left"
    )


def _replay_blocks(timeline: Timeline, causes: Causes) -> pl.DataFrame:
    replay, operation = (places(causes.submitted[name]) for name in ("replay_index", "op_index"))
    first = np.full(len(timeline.replays) + 1, NOWHERE)
    first[replay[::-1]] = operation[::-1]
    replays = timeline.replays[["gpu", "process", "start_ns", "end_ns", "call_index", "nodes"]]
    place = taken(timeline.operations[["context", "stream"]], first[:-1])
    op_index = nullable(first[:-1]).rename("op_index")
    return (
        replays.with_row_index("replay_index")
        .hstack([op_index, *place])
        .with_columns(
            kind=pl.lit("graph"),
            intra_ns=pl.when(pl.col("nodes").is_not_null()).then(_idle_inside(timeline)),
        )
    )


def _idle_inside(timeline: Timeline) -> pl.Series:
    """Return the idle inside each replay."""
    idle = [np.zeros(0, np.int64)]
    for device in timeline.devices:
        pieces = on_gpu(timeline.pieces, device.gpu)
        starts, ends = begin_and_end(pieces)
        inner = pieces["idle_class"].to_numpy() == IdleClass.INTRA_GRAPH
        summed = np.append(0, np.cumsum((ends - starts) * inner))
        replays = on_gpu(timeline.replays, device.gpu)["start_ns"].to_numpy()
        idle.append(np.diff(summed[np.searchsorted(starts, replays)], append=summed[-1]))
    return pl.Series(np.concatenate(idle))


def by_block(operations: pl.DataFrame, blocks: pl.DataFrame, rows: pl.DataFrame, operation: pl.Series) -> pl.DataFrame:
    """Return the rows whose operation (a position in the timeline's) belongs to a block, with that block."""
    replay, single = places(column_of(operations, "replay_index")[operation]), operation.to_numpy().astype(np.int64)
    of_replay, of_single = places(blocks["replay_index"]), places(blocks["op_index"])
    alone = of_replay == NOWHERE
    block = np.where(
        replay == NOWHERE,
        place_among(np.where(alone, of_single, NOWHERE), single),
        place_among(of_replay, replay),
    )
    return kept(rows.hstack([nullable(block).rename("block")]), block != NOWHERE)


def find_calls(timeline: Timeline, causes: Causes, blocks: pl.DataFrame) -> pl.DataFrame:
    """Return the calls that matter to a replay, by thread and time: those that submit the blocks, and the waits.

    All other calls are part of the work between these. A poll is one call, from the first query to the last.
    """
    submit = np.unique(places(blocks["call_index"]))
    submit = submit[submit != NOWHERE]
    begun = timeline.calls["start_ns"].to_numpy()[submit].min(initial=NEVER if len(submit) else 0)
    late = causes.waits["start_ns"].is_between(int(begun), blocks["end_ns"].max())
    waiting = causes.waits[["call_index", "start_ns", "awaits"]].pipe(where, late)
    waited, first = np.unique(waiting["call_index"].to_numpy(), return_index=True)
    index = np.union1d(submit, waited)
    calls = taken(timeline.calls[["thread", "process", "start_ns", "end_ns", "role"]], index)
    starts, waits = calls["start_ns"].to_numpy().copy(), np.zeros(len(index), np.bool_)
    at = np.searchsorted(index, waited)
    starts[at], waits[at] = (waiting[name].to_numpy()[first] for name in ("start_ns", "awaits"))
    return calls.select(
        "thread",
        "process",
        "end_ns",
        call_index=pl.Series(index, dtype=pl.UInt32),
        start_ns=pl.Series(starts),
        api_role="role",
        waits=pl.Series(waits),
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
    lane = kept(windows, Rank(*windows[["gpu", "process"]].row(0)).is_of(windows))
    first = max(0, (len(lane) - most) // 2)
    last = min(first + most, len(lane)) - 1
    return int(lane["start_ns"][first]), int(lane["end_ns"][last])
