"""NVTX ranges as step marks: which name repeats once a cycle."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.errors import UsageError
from bubblefinder.steps.boundaries import lane_launches, launched_inside, mark_boundaries
from bubblefinder.steps.by_sequence import borne_out
from bubblefinder.timeline.ranges import user_ranges
from bubblefinder.trace.model import KERNEL

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.lane import RankWork
    from bubblefinder.steps.model import Confidence
    from bubblefinder.timeline.model import Timeline

KNOWN: Final = (
    r"^(Scheduler\.)?run_batch|scheduler\.run_batch",
    r"^execute_context_\d+\(\d+\)_generation_\d+\(\d+\)",
    r"^\[Executor\] _forward_step",
)
_FEWEST: Final = 3
_AGREES: Final = 0.9
_MANY: Final = 5
_PREFILLS: Final = 1.5
_NEARLY_ALL: Final = 0.9
_TOLERATED: Final = 1
_COVERS: Final = 0.5
_MOST_NAMES: Final = 64


@dataclass(frozen=True, slots=True)
class Mark:
    """A range that marks the steps of a lane: what it is called, where the steps begin, how sure that is."""

    text: str
    boundaries: Ints
    confidence: Confidence


def asked_mark(timeline: Timeline, lane: RankWork, pattern: str) -> Mark | None:
    """Return the mark that the user named by a regular expression; null if no such range launches work of the lane.

    Raises:
        UsageError: the pattern is no regular expression.
    """
    try:
        re.compile(pattern)
        ranges = user_ranges(timeline.trace.nvtx).filter(pl.col("text").str.contains(pattern))
    except (re.error, pl.exceptions.ComputeError) as error:
        raise UsageError(f"--step-by nvtx: {pattern!r} is not a regular expression: {error}") from error
    launches = lane_launches(lane, timeline.calls)
    marks = _outermost(_whole(timeline, launches, ranges.filter(pl.col("process") == lane.process)))
    boundaries = mark_boundaries(launches, marks)
    return Mark(pattern, boundaries, "high") if len(boundaries) else None


def find_mark(timeline: Timeline, lane: RankWork, cycles: Ints, *, trusted: bool, recurring: bool) -> Mark | None:
    """Return the best mark: one that comes once a cycle, else, where no cycle is sure, one that covers the launches.

    Known names win, then the outermost (longest) range. A known one may come more often than the cycles: a
    prefill is marked as a decode step is.

    Args:
        timeline: the timeline.
        lane: the lane to cut.
        cycles: start of each cycle by cadence or sequence, empty if there is none.
        trusted: the cycles are sure enough to refuse marks that come more or less often.
        recurring: the cycles are those of graph launches, else of operations, which may recur once a layer.
    """
    launches = lane_launches(lane, timeline.calls)
    ranges = user_ranges(timeline.trace.nvtx).filter(pl.col("process") == lane.process)
    ranges = _whole(timeline, launches, ranges)
    best: Mark | None = None
    for text, rows, known in _candidates(ranges):
        marks = _outermost(rows)
        boundaries = mark_boundaries(launches, marks)
        agrees = min(len(boundaries), len(cycles)) >= _FEWEST - 1 and _agrees(boundaries, cycles)
        begins = known or _begins(lane, boundaries, cycles) or _covers(launches, marks, _NEARLY_ALL)
        if agrees and begins and (recurring or borne_out(lane, boundaries)):
            return Mark(text, boundaries, "high")
        if len(boundaries) < _FEWEST or (trusted and not (known and _with_prefills(boundaries, cycles))):
            continue
        covers = _covers(launches, marks, _COVERS)
        if known and covers:
            return Mark(text, boundaries, "medium")
        if best is None and not trusted and (known or covers):
            best = Mark(text, boundaries, "medium" if known or borne_out(lane, boundaries) else "low")
    return best


def _candidates(ranges: pl.DataFrame) -> list[tuple[str, pl.DataFrame, bool]]:
    """Return (name, its ranges, whether the name is a known step mark): known ones first, then by total length."""
    known = [(pattern, ranges.filter(pl.col("text").str.contains(pattern))) for pattern in KNOWN]
    named = (
        ranges.with_columns(length=pl.col("end_ns").clip(upper_bound=pl.col("start_ns").max()) - pl.col("start_ns"))
        .group_by("text")
        .agg(pl.len(), pl.col("length").sum())
        .filter(pl.col("len") >= _FEWEST - 1)
        .sort("length", "text", descending=[True, False])
        .head(_MOST_NAMES)
    )
    plain = [(text, ranges.filter(pl.col("text") == text), False) for text in named["text"]]
    return [(rows["text"][0], rows, True) for _, rows in known if len(rows) >= _FEWEST - 1] + plain


def _whole(timeline: Timeline, launches: pl.DataFrame, ranges: pl.DataFrame) -> pl.DataFrame:
    """Leave out ranges whose first work ran before the analysed part began: they begin no whole step."""
    part = timeline.trace.part
    if launches.is_empty() or part is None or part.left_out_ns is None:
        return ranges
    cut_off = (pl.col("start_ns") <= part.left_out_ns) & (pl.col("end_ns") > launches["call_start_ns"][0])
    return ranges.filter(~cut_off)


def _outermost(ranges: pl.DataFrame) -> pl.DataFrame:
    """Leave out ranges inside another of the same selection on their thread."""
    return ranges.sort("thread", "start_ns", "end_ns", descending=[False, False, True]).filter(
        (pl.col("start_ns") >= pl.col("end_ns").cum_max().shift(1).over("thread")).fill_null(value=True),
    )


def _agrees(boundaries: Ints, cycles: Ints) -> bool:
    """Tell whether the marks come once a cycle."""
    if abs(len(boundaries) - len(cycles)) > max(1, round((1 - _AGREES) * len(cycles))):
        return False
    between = np.diff(np.searchsorted(cycles, boundaries, side="left"))
    tolerated = max(1 if len(between) >= _MANY else 0, round((1 - _AGREES) * len(between)))
    return bool(len(between) and (between != 1).sum() <= tolerated)


def _with_prefills(boundaries: Ints, cycles: Ints) -> bool:
    """Tell whether known marks may be the steps and some more."""
    return _AGREES * len(cycles) <= len(boundaries) <= _PREFILLS * len(cycles)


def _covers(launches: pl.DataFrame, marks: pl.DataFrame, share: float) -> bool:
    return int(launched_inside(launches, marks)["weight"].sum()) >= share * int(launches["weight"].sum())


def _begins(lane: RankWork, boundaries: Ints, cycles: Ints) -> bool:
    """Tell whether most marks begin where cycles do: a range around a part of the step comes once a step as well."""
    if not len(cycles):
        return True
    known = lane.operations.select("kind", "replay_index", "start_ns")
    work = known.filter((pl.col("kind") == KERNEL) | pl.col("replay_index").is_not_null())["start_ns"]
    place, began = (np.searchsorted(work.to_numpy(), times, side="left") for times in (boundaries, cycles))
    return bool(np.mean(np.isin(place, began)) >= _AGREES - _TOLERATED / len(boundaries)) if len(boundaries) else False
