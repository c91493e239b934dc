"""The facts of the host: the holes in a launching thread, stretches without any CUDA call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.decode import RankSteps, call_rows, p50
from bubblefinder.causes.facts import HoleFacts
from bubblefinder.causes.host_time import main_thread
from bubblefinder.intervals import Cover, overlap_with, union
from bubblefinder.timeline.model import IdleClass
from bubblefinder.timeline.ranges import innermost, user_ranges

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.causes.model import Causes
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.timeline.model import Timeline

_HOLE_FACTOR: Final = 3
_HOLE_FLOOR_NS: Final = 100_000
_MOSTLY: Final = 0.5
_COLLECTS: Final = r"(?i)\bgc\b|gc\.collect|garbage"


def hole_facts(
    timeline: Timeline, causes: Causes, lane: RankSteps, thread: int, others: list[RankSteps]
) -> Iterator[HoleFacts]:
    """Yield the holes of a thread: stretches without a CUDA call far longer than usual at that place of the step."""
    stretches = _stretches(timeline, causes, lane, thread)
    holes = stretches.filter(_is_hole())
    if holes.is_empty():
        return
    starts, ends = holes["start_ns"].to_numpy(), holes["end_ns"].to_numpy()
    idle = overlap_with(starts, ends, _uncharged(timeline, lane))
    holes = holes.with_columns(_reasons(timeline, thread, starts, ends), idle=idle)
    holes = holes.with_columns(nvtx=_ranges_at(timeline, thread, (starts + ends) // 2))
    for mine in holes.filter(pl.col("idle") > 0).partition_by("reason", maintain_order=True):
        yield _hole(timeline, causes, lane, thread, mine, others)


def _stretches(timeline: Timeline, causes: Causes, lane: RankSteps, thread: int) -> pl.DataFrame:
    """Return the time between a thread's calls, with `usual`: the median at the same place of the step.

    A place is the role launched last, the calls made since, and the API that ends the stretch.
    """
    calls = (
        timeline.calls.select("thread", "start_ns", "end_ns", "api")
        .with_row_index("call_index")
        .filter(pl.col("thread") == thread)
    )
    phases = causes.submitted.filter((pl.col("thread") == thread) & (pl.col("gpu") == lane.gpu)).select(
        "call_index",
        "window_index",
        started=pl.when(pl.col("role").is_not_null()).then("role"),
        phase=pl.when(pl.col("role").is_not_null()).then("phase"),
    )
    placed = calls.join(phases, on="call_index", how="left", maintain_order="left").with_columns(
        reach=pl.col("end_ns").cum_max().shift(1),
        behind=pl.col("started").forward_fill().shift(1),
        run=pl.col("phase").forward_fill().shift(1),
        window_index=pl.col("window_index").backward_fill(),
    )
    placed = placed.with_columns(number=pl.int_range(pl.len()).over("run"))
    stretches = placed.filter(pl.col("reach").is_not_null()).select(
        "call_index",
        "window_index",
        "behind",
        "number",
        "api",
        start_ns="reach",
        end_ns=pl.max_horizontal("start_ns", "reach"),
    )
    length = pl.col("end_ns") - pl.col("start_ns")
    return stretches.with_columns(
        length=length,
        usual=length.median().over("behind", "number", "api"),
        alike=pl.len().over("behind", "number", "api"),
    )


def _is_hole() -> pl.Expr:
    known = pl.col("alike") >= 4  # noqa: PLR2004 - a median of fewer says nothing about what is usual
    return known & (pl.col("length") > _HOLE_FACTOR * pl.col("usual") + _HOLE_FLOOR_NS)


def _uncharged(timeline: Timeline, lane: RankSteps) -> Cover:
    """Return the idle of a lane that came from a late host and that no wait is charged with."""
    chosen = lane.piece_index[(lane.piece_class == IdleClass.HOST_LATE) & ~lane.charged]
    pieces = timeline.pieces.select("start_ns", "end_ns")[pl.Series(chosen)]
    return Cover(pieces["start_ns"].to_numpy(), pieces["end_ns"].to_numpy())


def _reasons(timeline: Timeline, thread: int, starts: Ints, ends: Ints) -> list[pl.Series]:
    """Return what the capture shows of each hole: garbage collection, the GIL, or a call of the operating system."""
    reason = np.full(len(starts), None, dtype=object)
    detail = np.full(len(starts), None, dtype=object)
    nvtx = timeline.trace.nvtx.filter((pl.col("thread") == thread) & pl.col("end_ns").is_not_null())
    off = timeline.trace.off_cpu.filter(pl.col("thread") == thread)
    sources = (
        ("descheduled", off.with_columns(text=pl.lit(None, pl.String))),
        (
            "os call",
            timeline.trace.os_calls.filter(pl.col("thread") == thread).select("start_ns", "end_ns", text="name"),
        ),
        ("gil", nvtx.filter((pl.col("domain") == "GIL Trace") & pl.col("text").str.contains("(?i)wait"))),
        ("gc", nvtx.filter(pl.col("text").str.contains(_COLLECTS))),
    )
    for name, rows in sources:
        covered = overlap_with(starts, ends, union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()))
        for hole in np.flatnonzero(covered > _MOSTLY * (ends - starts)):
            reason[hole], detail[hole] = name, _longest(rows, int(starts[hole]), int(ends[hole]))
    return [
        pl.Series("reason", reason.tolist(), dtype=pl.String),
        pl.Series("detail", detail.tolist(), dtype=pl.String),
    ]


def _longest(rows: pl.DataFrame, start: int, end: int) -> str | None:
    """Return the text of the row that overlaps [start, end) most."""
    length = pl.min_horizontal("end_ns", pl.lit(end)) - pl.max_horizontal("start_ns", pl.lit(start))
    texts: list[str | None] = rows.sort(length, descending=True)["text"].head(1).to_list()
    return texts[0]


def _ranges_at(timeline: Timeline, thread: int, times: Ints) -> pl.Series:
    ranges = user_ranges(timeline.trace.nvtx)
    position = pl.Series(innermost(ranges, np.full(len(times), thread), times))
    return ranges["text"].gather(pl.select(pl.when(position >= 0).then(position)).to_series()).rename("nvtx")


def _hole(
    timeline: Timeline, causes: Causes, lane: RankSteps, thread: int, holes: pl.DataFrame, others: list[RankSteps]
) -> HoleFacts:
    window = lane.own(holes["window_index"])
    counted = (window >= 0) & lane.counted[window]
    idle = lane.per_step(window, holes["idle"].to_numpy())
    return HoleFacts(
        gpu=lane.gpu,
        process=lane.process,
        thread=timeline.trace.thread_names.get(thread),
        reason=holes["reason"][0],
        detail=holes["detail"].drop_nulls().mode().sort().first(),  # type: ignore[arg-type]
        nvtx=holes["nvtx"].drop_nulls().mode().sort().first(),  # type: ignore[arg-type]
        steps=int(lane.counted.sum()),
        steps_affected=len(np.unique(window[counted])),
        occurrences=int(counted.sum()),
        hole_p50_ns=p50(holes["length"].to_numpy()),
        idle_p50_ns=p50(idle[idle > 0]),
        idle_share=lane.share(idle.sum()),
        one_rank=not any(_has_holes(timeline, causes, other) for other in others) if others else None,
        evidence=call_rows(timeline, holes["call_index"]),
    )


def _has_holes(timeline: Timeline, causes: Causes, lane: RankSteps) -> bool:
    thread = main_thread(causes, lane)
    if thread is None:
        return False
    holes: Bools = _stretches(timeline, causes, lane, thread).select(_is_hole()).to_series().to_numpy()
    return bool(holes.any())
