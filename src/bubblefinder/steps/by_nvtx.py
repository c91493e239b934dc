"""NVTX ranges as step marks: which name repeats once a cycle."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.errors import UsageError
from bubblefinder.intervals import begin_and_end, outermost
from bubblefinder.lookup import kept, order_of
from bubblefinder.steps import thresholds
from bubblefinder.steps.boundaries import Marks, launches_of
from bubblefinder.units import NUMBER, numberless

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.boundaries import Launches
    from bubblefinder.steps.events import Events
    from bubblefinder.steps.lane import RankWork
    from bubblefinder.timeline.model import Timeline

KNOWN: Final = (
    r"^(Scheduler\.)?run_batch|scheduler\.run_batch",
    r"^execute_context_\d+\(\d+\)_generation_\d+\(\d+\)",
    r"^\[Executor\] _forward_step",
    r"(?i)^(\S+[.:])?decode[_ ]?step\b",
)
"""SGLang's, vLLM's and TensorRT-LLM's names, and what people call a step in loops of their own."""

_ANY_NUMBER: Final = r"\\d+"

_PART: Final = re.compile(r"layer|block|attention|mlp|expert|moe", re.IGNORECASE)
"""What names a part of a forward pass."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A range that may mark steps: what it is called, where they begin, and what speaks for it beforehand.

    Attributes:
        text: what it is called, or the pattern that was asked for.
        boundaries: where steps begin.
        bonus: points for its name.
        is_numbered: engines number such ranges, so that the text stands for all that differ in numbers.
    """

    text: str
    boundaries: Ints
    bonus: float = 0.0
    is_numbered: bool = False

    @property
    def called(self) -> str:
        """Its name without the numbers that change from step to step."""
        return numberless(self.text) if self.is_numbered else self.text

    @property
    def pattern(self) -> str:
        """The regular expression that `--step-by nvtx:` takes for it."""
        escaped = re.escape(self.text)
        return f"^{NUMBER.sub(_ANY_NUMBER, escaped) if self.is_numbered else escaped}$"


def asked_mark(timeline: Timeline, lane: RankWork, events: Events, pattern: str) -> Mark | None:
    """Return the mark that the user named by a regular expression; null if no such range launches work of the lane.

    Raises:
        UsageError: the pattern is no regular expression.
    """
    try:
        re.compile(pattern)
        ranges = timeline.ranges.named(pattern)
    except (re.error, pl.exceptions.ComputeError) as error:
        raise UsageError(f"--step-by nvtx: {pattern!r} is not a regular expression: {error}") from error
    launches = launches_of(events)
    ranges = _whole(timeline, launches, kept(ranges, ranges["process"] == lane.process))
    boundaries = Marks.of(launches, ranges).at(_outermost(ranges, np.arange(len(ranges)))).boundaries
    return Mark(pattern, boundaries) if len(boundaries) else None


def marks_of(timeline: Timeline, lane: RankWork, events: Events, since_ns: int) -> list[Mark]:
    """Return every range that comes often enough and launches work of the lane, known names first, then the longest.

    A known name speaks for itself. So does a range around nearly all launches, unless a longer one does the same:
    then it may be that of a layer.
    """
    named = timeline.ranges.rows[["thread", "start_ns", "end_ns"]].with_columns(timeline.ranges.names.alias("text"))
    ranges = kept(named, timeline.ranges.rows["process"] == lane.process)
    if ranges.is_empty():
        return []
    launches = launches_of(events)
    launches = launches.at(launches.start_ns >= since_ns)
    ranges = _whole(timeline, launches, ranges)
    every = Marks.of(launches, ranges)
    found: list[Mark] = []
    covered = False
    for text, rows, known in _candidates(ranges):
        marks = every.at(_outermost(ranges, rows))
        boundaries = marks.boundaries
        if len(boundaries) < thresholds.FEWEST - 1 or any(mark.text == text for mark in found):
            continue
        covers = not covered and marks.weight >= thresholds.NEARLY_ALL * int(launches.weight.sum())
        outer = covers and not _PART.search(text)
        bonus = thresholds.KNOWN_POINTS if known else thresholds.OUTER_POINTS if outer else 0.0
        covered |= covers
        found.append(Mark(text, boundaries, bonus, is_numbered=known))
    return found


def _candidates(ranges: pl.DataFrame) -> list[tuple[str, Ints, bool]]:
    """Return (name, its ranges, whether the name is a known step mark): known ones first, then by total length.

    A known name is called as most of its ranges are, of several texts the first in order.
    """
    lengths = pl.col("end_ns").clip(upper_bound=pl.col("start_ns").max()) - pl.col("start_ns")
    of_text = ranges.select_seq("text", length=lengths, row=pl.int_range(pl.len())).group_by("text")
    texts = of_text.agg(pl.len(), pl.col("length").sum(), "row").with_columns(pl.col("text").cast(pl.String))
    hits = [kept(texts, texts["text"].str.contains(pattern)) for pattern in KNOWN]
    known = [hit.sort("len", "text", descending=[True, False]) for hit in hits]
    plain = texts.sort("length", "text", descending=[True, False])
    often = thresholds.FEWEST - 1
    named = [(hit, True) for hit in known if hit["len"].sum() >= often]
    some = kept(plain, plain["len"] >= often).head(thresholds.MOST_NAMES)
    named += [(some[place], False) for place in range(len(some))]
    return [(hit["text"][0], _in_order(hit["row"]), is_known) for hit, is_known in named]


def _in_order(lists: pl.Series) -> Ints:
    """Return the positions in a list, or in several, each of which is in order, in order."""
    rows = lists.explode().to_numpy()
    return rows if len(lists) == 1 else np.sort(rows, kind="stable")


def _whole(timeline: Timeline, launches: Launches, ranges: pl.DataFrame) -> pl.DataFrame:
    """Leave out ranges whose first work ran before the analysed part began: they begin no whole step."""
    part = timeline.trace.part
    if not len(launches.start_ns) or part is None or part.left_out_ns is None:
        return ranges
    cut_off = (pl.col("start_ns") <= part.left_out_ns) & (pl.col("end_ns") > launches.start_ns[0])
    return ranges.filter(~cut_off)


def _outermost(ranges: pl.DataFrame, rows: Ints) -> Ints:
    """Return those of some ranges that lie inside no other of them on their thread, by their begin."""
    start, end = (times[rows] for times in begin_and_end(ranges))
    if (start[1:] >= end[:-1]).all():
        return rows
    thread, order = ranges["thread"].to_numpy()[rows], order_of((start, -end))
    at = slice(None) if order is None else order
    return rows[at][outermost(thread[at], start[at], end[at])]
