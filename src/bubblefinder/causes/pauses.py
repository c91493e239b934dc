"""What holds a launching thread up outside CUDA: collections, locks, calls into the operating system, silence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.stalls import late_idle
from bubblefinder.causes.thresholds import COVERS, FEWEST, HOLE_FACTOR, HOLE_NS, PAUSE_NS
from bubblefinder.intervals import Cover, begin_and_end, either, overlap_with, union_of
from bubblefinder.lookup import changes, column_of, each_once, kept, on_gpu, places, positions, taken, where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.timeline.model import Timeline

_COLLECTS: Final = r"(?i)\bgc\b|gc\.collect|garbage"
_SHAPE: Final = {
    "gpu": pl.Int32, "process": pl.Int64, "thread": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64,
    "call_index": pl.UInt32, "reason": pl.String, "detail": pl.String,
}  # fmt: skip


def find_pauses(timeline: Timeline, submitted: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    """Return when launching threads were held up outside CUDA calls while their GPU idled, by GPU, thread and time.

    A pause is a stretch without calls far longer than usual at its place of the step, or anything shorter that the
    capture shows to have held the thread up, however regular: a collection, the interpreter lock, a call into the
    operating system, time off the CPU. A sleep that another thread's wait ends belongs to that wait.

    Args:
        timeline: the timeline.
        submitted: from `launches.find_submissions`.
        waits: from `waits.find_waits`.

    Returns:
        gpu, process, thread, start_ns, end_ns, call_index (of the call that ends it), reason (``gc``, ``gil``,
        ``os call``, ``descheduled``, or null where nothing shows it), detail (the call or the range that shows it).
        Pauses of a thread don't overlap.
    """
    threads = each_once(submitted[["gpu", "process", "thread"]])
    parts = [
        part
        for gpu, process, thread in threads.iter_rows()
        for part in _of_thread(timeline, submitted, waits, (gpu, process, thread))
    ]
    columns = [pl.col(name).cast(kind) for name, kind in _SHAPE.items()]
    return pl.concat([pl.DataFrame(schema=_SHAPE), *(part.select_seq(columns) for part in parts)]).sort(
        "gpu", "thread", "start_ns"
    )


def _of_thread(
    timeline: Timeline, submitted: pl.DataFrame, waits: pl.DataFrame, lane: tuple[int, int, int]
) -> Iterator[pl.DataFrame]:
    """Yield the pauses of a thread: the collections, locks and calls that the capture shows, then silent holes."""
    gpu, process, thread = lane
    idle = late_idle(timeline, gpu)
    stretches = _stretches(timeline, submitted, gpu, thread)
    if stretches.is_empty() or not len(idle):
        return
    stretches = stretches.with_columns_seq(gpu=pl.lit(gpu), process=pl.lit(process), thread=pl.lit(thread))
    handed = kept(waits, (waits["launcher"] == thread) & (waits["thread"] != thread) & (waits["gpu"] == gpu))
    given = np.sort(handed["end_ns"].to_numpy())
    shown = [(reason, _unexplained(_idle_under(rows, idle), given)) for reason, rows in _sources(timeline, thread)]
    holes = _idle_under(_holes(stretches), idle)
    starts, ends = begin_and_end(holes)
    free = ~_ended_by(starts, ends, given)
    holes = holes.with_columns_seq(_reasons(shown, starts, ends)).pipe(where, pl.Series(free))
    yield holes
    taken = union_of(holes)
    for reason, rows in shown:
        long = kept(rows, rows["end_ns"] - rows["start_ns"] >= PAUSE_NS)
        if long.is_empty():
            continue
        found = _apart(_inside_stretches(long, _idle_under(stretches, idle)), taken).with_columns(
            reason=pl.lit(reason), detail="text"
        )
        yield found
        taken = either(taken, union_of(found))


def _stretches(timeline: Timeline, submitted: pl.DataFrame, gpu: int, thread: int) -> pl.DataFrame:
    """Return the time between a thread's calls, with a number for its place of the step.

    A place is the role launched last, the calls made since, and the API that ends the stretch.
    """
    index = timeline.calls_of.at(thread)
    own = on_gpu(submitted, gpu)
    mine = (column_of(own, "thread") == thread) & own["role"].is_not_null()
    launched = kept(own[["call_index", "role", "phase"]], mine)
    launch = positions(launched["call_index"].to_numpy(), index.to_numpy(), len(timeline.calls))
    last = launch.forward_fill().shift(1)
    run = changes(launched["phase"][last].fill_null(0).to_numpy())
    position = np.arange(len(run))
    made = position - np.maximum.accumulate(np.where(run, position, 0))
    calls = taken(timeline.calls[["start_ns", "end_ns", "api"]], index)
    behind, api = (places(column.to_physical()) for column in (launched["role"][last], calls["api"]))
    reach = calls["end_ns"].cum_max().shift(1)
    stretches = calls.select_seq(
        call_index=index,
        place=pl.Series((made * (behind.max() + 2) + behind) * (api.max() + 2) + api),
        start_ns=reach,
        end_ns=pl.max_horizontal("start_ns", reach),
    )
    return stretches[1:]


def _holes(stretches: pl.DataFrame) -> pl.DataFrame:
    """Return the stretches that are far longer than the median at their place, where that is of enough of them."""
    length = pl.col("end_ns") - pl.col("start_ns")
    long = stretches.pipe(where, length > HOLE_NS)
    alike = stretches.pipe(where, pl.col("place").is_in(long["place"].unique().implode()))
    usual = alike.group_by("place").agg(usual=length.median(), alike=pl.len())
    far = (pl.col("alike") >= FEWEST) & (length > HOLE_FACTOR * pl.col("usual") + HOLE_NS)
    return long.join(usual, on="place", maintain_order="left").pipe(where, far)


def _sources(timeline: Timeline, thread: int) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yield what the capture shows to hold a thread up, the plainest reason first."""
    columns = ("start_ns", "end_ns")
    mine = pl.col("thread") == thread
    collects = pl.col("text").str.contains(_COLLECTS)
    locked = (pl.col("domain") == "GIL Trace") & pl.col("text").str.contains("(?i)wait")
    nvtx = timeline.trace.nvtx.filter(mine & pl.col("end_ns").is_not_null()).filter(collects | locked)
    if len(nvtx):
        yield "gc", nvtx.filter(collects).select(*columns, "text")
        yield "gil", nvtx.filter(locked).select(*columns, "text")
    if len(timeline.trace.os_calls):
        yield "os call", timeline.trace.os_calls.filter(mine).select(*columns, text="name")
    if len(timeline.trace.off_cpu):
        yield "descheduled", timeline.trace.off_cpu.filter(mine).select(*columns, text=pl.lit(None, pl.String))


def _idle_under(rows: pl.DataFrame, idle: Cover) -> pl.DataFrame:
    return kept(rows, overlap_with(*begin_and_end(rows), idle) > 0)


def _unexplained(rows: pl.DataFrame, given: Ints) -> pl.DataFrame:
    """Leave out the sleeps that end since another thread's wait has ended."""
    return kept(rows, ~_ended_by(*begin_and_end(rows), given))


def _ended_by(starts: Ints, ends: Ints, given: Ints) -> Bools:
    inside: Bools = np.searchsorted(given, starts) < np.searchsorted(given, ends, side="right")
    return inside


def _inside_stretches(rows: pl.DataFrame, stretches: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that lie between two calls of the thread, with the call that ends the stretch."""
    between = stretches.select("gpu", "process", "thread", "call_index", at="start_ns", until="end_ns").sort("at")
    placed = rows.sort("start_ns").join_asof(between, left_on="start_ns", right_on="at", check_sortedness=False)
    return kept(placed, placed["start_ns"] < placed["until"]).with_columns(pl.min_horizontal("end_ns", "until"))


def _apart(rows: pl.DataFrame, taken: Cover) -> pl.DataFrame:
    """Leave out the rows that touch what is taken, and those inside another (nested calls)."""
    rows = rows.sort("start_ns", pl.col("end_ns"), descending=[False, True])
    free = overlap_with(*begin_and_end(rows), taken) == 0
    rows = kept(rows, free)
    return rows.filter((pl.col("start_ns") >= pl.col("end_ns").cum_max().shift(1)).fill_null(value=True))


def _reasons(shown: list[tuple[str, pl.DataFrame]], starts: Ints, ends: Ints) -> list[pl.Series]:
    """Return the first reason that covers most of each hole, and the row that covers it most."""
    reason = np.full(len(starts), None, dtype=object)
    detail = np.full(len(starts), None, dtype=object)
    for name, rows in reversed(shown):
        covered = overlap_with(starts, ends, union_of(rows))
        for hole in np.flatnonzero(covered > COVERS * (ends - starts)):
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
