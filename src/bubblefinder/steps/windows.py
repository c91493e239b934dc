"""The windows of a lane, and which of them are kept out of the statistics, with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import covered_before, union
from bubblefinder.steps.boundaries import lane_launches, mark_boundaries
from bubblefinder.steps.roles import FOREIGN_ROLE
from bubblefinder.timeline.ranges import own_name, user_ranges
from bubblefinder.trace.model import KERNEL

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.lane import RankWork
    from bubblefinder.timeline.model import Timeline

HEAD: Final = "head"
TAIL: Final = "tail"
CAPTURE_START: Final = "capture_start"
PREFILL: Final = "prefill"
_PREFILL_TEXT: Final = r"(?i)prefill|execute_context_[1-9]\d*\("
_STANDS_OUT: Final = 1.015
_MADS: Final = 5
_FOREIGN_BUSY: Final = 0.25
_UNLIKE: Final = 3
_FEW_WINDOWS: Final = 0.35
_NEARLY_ALL: Final = 0.9
_MORE_WORK: Final = 1.5
_FEWEST: Final = 2


def lane_windows(timeline: Timeline, lane: RankWork, boundaries: Ints, roles: pl.DataFrame) -> pl.DataFrame:
    """Return the windows that tile the GPU's span: index, gpu, process, start_ns, end_ns, excluded.

    Args:
        timeline: the timeline.
        lane: the lane.
        boundaries: starts of the steps; those of operations that take no time may lie outside the GPU's span.
        roles: replay_index, role and position of the lane's replays.
    """
    boundaries = np.unique(np.clip(boundaries, lane.start_ns, lane.end_ns - 1))
    edges = np.unique(np.concatenate(([lane.start_ns], boundaries, [lane.end_ns])))
    starts, ends = edges[:-1], edges[1:]
    excluded = np.full(len(starts), None, dtype=object)
    excluded[starts < boundaries[0]] = HEAD
    excluded[-1] = TAIL
    excluded[(excluded == None) & _prefill(timeline, lane, starts, ends, roles)] = PREFILL  # noqa: E711 - elementwise
    steady = np.flatnonzero(excluded == None)  # noqa: E711
    if (
        len(steady) > _FEWEST
        and excluded[: steady[0]].tolist() in ([], [HEAD])
        and _stands_out(lane, starts, ends, steady, roles)
    ):
        excluded[steady[0]] = CAPTURE_START
    return pl.DataFrame(
        {
            "index": np.arange(len(starts), dtype=np.int64),
            "gpu": np.full(len(starts), lane.gpu, np.int32),
            "process": np.full(len(starts), lane.process, np.int64),
            "start_ns": starts,
            "end_ns": ends,
            "excluded": pl.Series(excluded.tolist(), dtype=pl.String),
        },
    )


def _stands_out(lane: RankWork, starts: Ints, ends: Ints, steady: Ints, roles: pl.DataFrame) -> bool:
    """Tell whether the first step is longer than the rest, as a whole or in the replays of one role."""
    lengths = [(ends - starts)[steady]]
    spans = lane.replays.join(roles, on="replay_index").with_columns(
        window=pl.Series(np.searchsorted(starts, lane.replays["start_ns"].to_numpy(), side="right") - 1),
        length=pl.col("end_ns") - pl.col("start_ns"),
    )
    for _, rows in spans.filter(pl.col("window").is_in(steady)).group_by("role", maintain_order=True):
        per_window = rows.group_by("window").agg(pl.col("length").sum()).sort("window")
        if len(per_window) == len(steady):
            lengths.append(per_window["length"].to_numpy())
    return any(_above_the_rest(values) for values in lengths)


def _above_the_rest(values: Ints) -> bool:
    rest = values[1:]
    middle = np.median(rest)
    return bool(values[0] > _STANDS_OUT * middle + _MADS * np.median(np.abs(rest - middle)))


def _prefill(timeline: Timeline, lane: RankWork, starts: Ints, ends: Ints, roles: pl.DataFrame) -> Bools:
    """Tell the windows with prefill work: by the ranges that launched it, or by long work foreign to the steps."""
    return _prefill_by_nvtx(timeline, lane, starts) | _prefill_by_work(lane, starts, ends, roles)


def _prefill_by_nvtx(timeline: Timeline, lane: RankWork, starts: Ints) -> Bools:
    marks = user_ranges(timeline.trace.nvtx).filter(
        (pl.col("process") == lane.process) & own_name(pl.col("text")).str.contains(_PREFILL_TEXT)
    )
    hit = np.zeros(len(starts), np.bool_)
    if len(marks):
        boundaries = mark_boundaries(lane_launches(lane, timeline.calls), marks)
        window = np.searchsorted(starts, boundaries, side="right") - 1
        hit[window[window >= 0]] = True
    return hit


def _prefill_by_work(lane: RankWork, starts: Ints, ends: Ints, roles: pl.DataFrame) -> Bools:
    """Tell windows in which work foreign to the steps ran for a quarter of a usual step, unlike the rest.

    Foreign are, where steps are replays, eager kernels and graphs of no role, else kernels of names that few
    windows have. A larger batch may bring other graphs and names as well, but instead of the usual work.
    """
    kernels = lane.operations.filter(pl.col("replay_index").is_null() & (pl.col("kind") == KERNEL))
    least = _FOREIGN_BUSY * np.median(ends - starts)
    busy = _busy(kernels, starts, ends)
    if lane.replays.is_empty():
        foreign = _busy(_rare(kernels, starts), starts, ends)
        beside = (busy > _MORE_WORK * np.median(busy)) | (foreign > _NEARLY_ALL * busy)
        return np.asarray((foreign > least) & beside, np.bool_)
    eager = (busy > least) & (busy > _UNLIKE * np.median(busy))
    prefill = np.asarray(eager | _prefill_by_graph(lane, starts, ends, roles), np.bool_)
    return prefill | _begun_before(prefill, kernels, starts)


def _begun_before(prefill: Bools, kernels: pl.DataFrame, starts: Ints) -> Bools:
    """Tell the windows before those with prefill work that hold its first kernels: the widest gap lay inside it."""
    window = np.searchsorted(starts, kernels["start_ns"].to_numpy(), side="right")
    count = np.bincount(window, minlength=len(starts) + 1)[1:]
    return np.append(prefill[1:], np.False_) & (count > _UNLIKE * np.median(count))


def _prefill_by_graph(lane: RankWork, starts: Ints, ends: Ints, roles: pl.DataFrame) -> Bools:
    """Tell windows with long graphs that never play a part in a step: beside a whole one, alone, or far longer."""
    played = lane.replays.join(roles, on="replay_index").with_columns(
        foreign=pl.col("role").eq_missing(FOREIGN_ROLE),
    )
    played = played.with_columns(pl.col("foreign").all().over("graph"))
    foreign, placed = played.filter("foreign"), played.filter(~pl.col("foreign"))
    busy, usual = _busy(foreign, starts, ends), np.median(_busy(placed, starts, ends))
    places, strangers = _different(placed, "position", starts), _different(foreign, "replay_index", starts)
    whole = places >= np.median(places)
    alone = (places == 0) & (strangers < np.median(places))
    beside = whole | alone | (busy > _UNLIKE * usual)
    return np.asarray((busy > _FOREIGN_BUSY * np.median(ends - starts)) & beside, np.bool_)


def _different(replays: pl.DataFrame, column: str, starts: Ints) -> Ints:
    """Count the different values of a column in each window."""
    window = pl.Series("window", np.searchsorted(starts, replays["start_ns"].to_numpy(), side="right") - 1)
    pairs = replays.select(column, window).unique().filter(pl.col("window") >= 0)
    return np.bincount(pairs["window"].to_numpy(), minlength=len(starts))


def _busy(work: pl.DataFrame, starts: Ints, ends: Ints) -> Ints:
    cover = union(work["start_ns"].to_numpy(), work["end_ns"].to_numpy())
    return covered_before(ends, cover) - covered_before(starts, cover)


def _rare(kernels: pl.DataFrame, starts: Ints) -> pl.DataFrame:
    """Return the kernels whose names occur in few of the windows."""
    window = pl.Series(np.searchsorted(starts, kernels["start_ns"].to_numpy(), side="right"))
    spread = kernels.select("name", window=window).unique().group_by("name").len()
    return kernels.join(spread.filter(pl.col("len") <= _FEW_WINDOWS * len(starts)), on="name", how="semi")
