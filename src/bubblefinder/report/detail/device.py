"""The GPU's side of a drawn step: replays, operations by stream, gaps by class and the drains."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.lookup import NOWHERE, column_of, kept, numbered, on_gpu, taken, where
from bubblefinder.report.charts import TimelineBar
from bubblefinder.report.detail.kernels import kernel_name
from bubblefinder.report.detail.tables import class_name
from bubblefinder.report.detail.windows import longest
from bubblefinder.report.sentences import plain
from bubblefinder.timeline.model import IdleClass, Timeline
from bubblefinder.trace.model import GRAPH, KERNEL, MEMCPY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from collections.abc import Set as AbstractSet

    from bubblefinder.causes.model import Causes
    from bubblefinder.pipeline import Analysis
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.rank import Rank

CELLS: Final = 500
"""Thin intervals that fall into the same part of the step are drawn as one."""
MAX_STREAMS: Final = 5
MAX_REPLAYS: Final = 100
"""More replays than that are drawn longest first."""
MAX_GAPS: Final = 300


def device_bars(
    analysis: Analysis, rank: Rank, span: tuple[int, int]
) -> tuple[list[TimelineBar], int, AbstractSet[int]]:
    """Return the bars of a GPU in `span`, how many intervals they merge or lack, and the launch calls behind them."""
    timeline, steps = analysis.timeline, analysis.steps
    replays = _within(timeline.replays.hstack(steps.replays), rank.gpu, span)
    columns = ["gpu", "kind", "start_ns", "end_ns", "stream", "replay_index", "call_index"]
    operations = _within(timeline.operations[columns].with_row_index("label"), rank.gpu, span)
    streams, streams_dropped = _stream_bars(kept(operations, operations["kind"] != GRAPH), timeline, rank, span)
    gaps, gaps_dropped = _gap_bars(timeline, steps, rank, span)
    shown = longest(replays, MAX_REPLAYS)
    bars = [*_replay_bars(shown, rank), *streams, *_drains(timeline, analysis.causes, rank, span), *gaps]
    dropped = streams_dropped + gaps_dropped + len(replays) - len(shown)
    return bars, dropped, set(operations["call_index"]) - {None}


def merged(rows: pl.DataFrame, keys: list[str], span: tuple[int, int]) -> pl.DataFrame:
    """Return the rows with thin neighbours merged: start_ns, end_ns, covered_ns, number, and the keys.

    Rows, which are sorted by start, that agree in `keys` and start in the same cell of the span become one. Long rows
    and rows alone in their cell stay as they are.
    """
    cell = max((span[1] - span[0]) // CELLS, 1)
    length = pl.col("end_ns") - pl.col("start_ns")
    place = pl.when(length >= cell).then(-1 - pl.int_range(pl.len())).otherwise((pl.col("start_ns") - span[0]) // cell)
    return rows.group_by(*keys, place=place, maintain_order=True).agg(
        pl.col("start_ns").min(),
        pl.col("end_ns").max(),
        covered_ns=length.sum(),
        number=pl.len(),
        first=pl.col("label").first(),
    )


def _within(rows: pl.DataFrame, gpu: int, span: tuple[int, int]) -> pl.DataFrame:
    mine = on_gpu(rows, gpu)
    first, end = np.searchsorted(mine["start_ns"].to_numpy(), span)
    return mine[int(first) : int(end)]


def _replay_bars(replays: pl.DataFrame, rank: Rank) -> list[TimelineBar]:
    return [
        TimelineBar(
            track=f"GPU {rank.gpu} · graph replays",
            kind="replay",
            name=plain(role or "replay", 80),
            start_ns=start,
            end_ns=end,
            link=call,
        )
        for start, end, role, call in replays[["start_ns", "end_ns", "role", "call_index"]].iter_rows()
    ]


def _stream_bars(
    operations: pl.DataFrame, timeline: Timeline, rank: Rank, span: tuple[int, int]
) -> tuple[list[TimelineBar], int]:
    streams, number = numbered(operations[["stream"]])
    took = np.bincount(number, (operations["end_ns"] - operations["start_ns"]).to_numpy())
    bars: list[TimelineBar] = []
    known = [(-1 if stream is None else stream, place) for place, (stream,) in enumerate(streams)]
    for stream, place in sorted(sorted(known, key=lambda one: (-took[one[1]], one))[:MAX_STREAMS]):
        mine = kept(operations, number == place)
        rows = merged(mine, ["replay_index"], span)
        does = taken(timeline.operations[["kind", "name", "bytes"]], rows["first"])
        track = f"GPU {rank.gpu} · " + ("unknown stream" if stream < 0 else f"stream {stream}")
        bars += [
            _operation_bar(timeline.trace.names, track, row, one)
            for row, one in zip(rows.iter_rows(named=True), does.iter_rows(), strict=True)
        ]
    return bars, len(operations) - len(bars)


def _operation_bar(
    names: Mapping[int, str], track: str, row: dict[str, int], does: tuple[int, int | None, int | None]
) -> TimelineBar:
    alone = row["number"] == 1
    name = _operation_name(names, *does) if alone else f"{row['number']} operations"
    return TimelineBar(
        track=track,
        kind="operation" if alone else "operations",
        name=name,
        start_ns=row["start_ns"],
        end_ns=row["end_ns"],
        fill=_fill(row),
    )


def _operation_name(names: Mapping[int, str], kind: int, name: int | None, size: int | None) -> str:
    if kind == KERNEL:
        return kernel_name(name, names)
    word = "copy" if kind == MEMCPY else "memset"
    return word if size is None else f"{word} of {size:,} bytes"


def _fill(row: dict[str, int]) -> float:
    return round(min(row["covered_ns"] / max(row["end_ns"] - row["start_ns"], 1), 1.0), 4)


def _gap_bars(timeline: Timeline, steps: Steps, rank: Rank, span: tuple[int, int]) -> tuple[list[TimelineBar], int]:
    pieces = _within(timeline.pieces, rank.gpu, span)
    inner = pieces["idle_class"] == int(IdleClass.INTRA_GRAPH)
    outer = longest(kept(pieces, ~inner), MAX_GAPS)
    run = pl.Series("run", np.cumsum(~inner.to_numpy()))
    thin = merged(pieces.select_seq("start_ns", "end_ns", run, label="gap_index").pipe(where, inner), ["run"], span)
    track = f"GPU {rank.gpu} · idle"
    bars = [
        TimelineBar(track=track, kind=class_name(idle_class), name=seam, start_ns=start, end_ns=end)
        for (start, end, idle_class), seam in zip(
            outer[["start_ns", "end_ns", "idle_class"]].iter_rows(),
            _seams(timeline, steps, outer["gap_index"]),
            strict=True,
        )
    ]
    bars += [
        TimelineBar(
            track=track,
            kind="intra_graph",
            name="gap inside a replay" if row["number"] == 1 else f"{row['number']} gaps inside a replay",
            start_ns=row["start_ns"],
            end_ns=row["end_ns"],
            fill=_fill(row),
        )
        for row in thin.iter_rows(named=True)
    ]
    return bars, len(pieces) - len(bars)


def _seams(timeline: Timeline, steps: Steps, gaps: pl.Series) -> Iterator[str]:
    """Yield the name of each gap: the roles of the operations around it."""
    around = taken(timeline.gaps[["before_index", "after_index"]], gaps)
    roles = steps.replays["role"]
    sides = [roles[column_of(timeline.operations, "replay_index")[around[side]]] for side in around.columns]
    for before, after in zip(*sides, strict=True):
        yield f"{before or 'work outside graphs'} to {after or 'work outside graphs'}"


def _drains(timeline: Timeline, causes: Causes, rank: Rank, span: tuple[int, int]) -> list[TimelineBar]:
    opened = kept(causes.charges, causes.charges["opened"])
    gap = timeline.pieces["gap_index"][opened["piece_index"]].to_numpy()
    mine = _within(timeline.gaps[["gpu", "start_ns"]].with_row_index("gap_index"), rank.gpu, span)
    drained, first = np.unique(gap, return_index=True)
    place = np.searchsorted(drained, mine["gap_index"].to_numpy())
    ran_dry = np.append(drained, NOWHERE)[place] == mine["gap_index"].to_numpy()
    apis = causes.waits["api"][opened["wait_index"].cast(pl.UInt32)[first[place[ran_dry]]]]
    return [
        TimelineBar(
            track=f"GPU {rank.gpu} · idle", kind="drain", name=f"ran dry under {plain(api, 80)}", start_ns=at, end_ns=at
        )
        for at, api in zip(mine["start_ns"].filter(pl.Series(ran_dry)), apis, strict=True)
    ]
