"""Rectangles in lanes: what a step is made of, and how it ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit.palette import CHART, COLOURS, KIND_COLOURS
from bubblefinder.report.sentences import KIND_LABELS, class_label, plain
from bubblefinder.units import duration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.report.charts import StepTimeline, TimelineBar

WIDTH: Final = 1000.0
LANE: Final = 28
MOST_BARS: Final = 1500
"""Bars of one step; the shortest beyond them are counted instead of drawn."""
TITLE: Final = 0.85
"""Height of a track's title, in lanes."""
_MAX_DEPTH: Final = 5
_INK: Final = frozenset(COLOURS | CHART)


@dataclass(frozen=True, slots=True)
class Mark:
    """A rectangle: position and size in the drawing's units, the palette's name of its colour, and what it is."""

    x: float
    y: float
    width: float
    colour: str
    text: str


@dataclass(frozen=True, slots=True)
class Lane:
    """The name of a row of marks and where it lies."""

    y: float
    name: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Marks in lanes, `height` high; `labels` says what each colour is; `dropped` intervals were too many to draw."""

    marks: list[Mark]
    lanes: list[Lane]
    height: float
    labels: Mapping[str, str]
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class Placed:
    """A bar and the height its lane has in the chart, 0 at the top and negative below."""

    bar: TimelineBar
    y: float


def place_bars(bars: Sequence[TimelineBar]) -> tuple[list[Placed], list[tuple[str, float]], float]:
    """Return the bars with their lanes, the tracks with the height of their titles, and the depth of it all.

    Tracks keep their order. Bars of one track that overlap go to lanes below each other.
    """
    placed: list[Placed] = []
    titles: list[tuple[str, float]] = []
    top = 0.0
    for track in dict.fromkeys(bar.track for bar in bars):
        titles.append((track, -top))
        top += TITLE
        ends: list[int] = []
        for bar in sorted((bar for bar in bars if bar.track == track), key=lambda bar: (bar.start_ns, -bar.end_ns)):
            lane = next((lane for lane, end in enumerate(ends) if end <= bar.start_ns), len(ends))
            lane = min(lane, _MAX_DEPTH - 1)
            ends[lane : lane + 1] = [bar.end_ns]
            placed.append(Placed(bar, -top - lane))
        top += len(ends)
    return placed, titles, top


def ledgers(steps: Sequence[tuple[str, Mapping[str, int]]]) -> Drawing:
    """Return steps cut by ledger class, each with its name in a lane of its own, on one scale."""
    longest = max(sum(parts.values()) for _, parts in steps)
    marks = [mark for row, (_, parts) in enumerate(steps) for mark in _ledger(parts, 2 * row * LANE, longest)]
    lanes = [Lane(2 * row * LANE, name) for row, (name, _) in enumerate(steps)]
    return Drawing(marks, lanes, 2 * len(steps) * LANE, {name: class_label(name) for name in COLOURS})


def timelines(steps: Sequence[tuple[str, StepTimeline]]) -> Drawing:
    """Return steps as they ran, each with its name, one below the other, from one left edge and on one scale."""
    longest = max(step.end_ns - step.start_ns for _, step in steps)
    marks, lanes, top, dropped = list[Mark](), list[Lane](), 0.0, 0
    for name, step in steps:
        kept = sorted(sorted(step.bars, key=_length, reverse=True)[:MOST_BARS], key=step.bars.index)
        placed, titles, depth = place_bars(kept)
        lanes += [Lane(top - LANE * y, f"{name}: {plain(track, 40)}") for track, y in titles]
        marks += [_bar(one.bar, step, top - LANE * (one.y + TITLE), longest) for one in placed]
        top += LANE * (depth + 1)
        dropped += step.dropped + len(step.bars) - len(kept)
    return Drawing(
        marks, lanes, top, {KIND_COLOURS.get(kind, kind): label for kind, label in KIND_LABELS.items()}, dropped
    )


def legend(drawing: Drawing) -> list[tuple[str, str]]:
    """Return what a drawing shows, as colour and label."""
    shown = {mark.colour for mark in drawing.marks}
    return [(colour, label) for colour, label in drawing.labels.items() if colour in shown]


def _ledger(parts: Mapping[str, int], y: float, longest: int) -> list[Mark]:
    marks, x = list[Mark](), 0.0
    for name, ns in parts.items():
        width = WIDTH * ns / longest
        marks.append(Mark(x, y, width, name, f"{class_label(name)}: {duration(ns)}"))
        x += width
    return [mark for mark in marks if mark.width > 0]


def _length(bar: TimelineBar) -> int:
    return bar.end_ns - bar.start_ns


def _bar(bar: TimelineBar, step: StepTimeline, y: float, longest: int) -> Mark:
    start, end = (min(max(ns, step.start_ns), step.end_ns) for ns in (bar.start_ns, bar.end_ns))
    colour = KIND_COLOURS.get(bar.kind, bar.kind)
    return Mark(
        x=WIDTH * (start - step.start_ns) / longest,
        y=y,
        width=max(WIDTH * (end - start) / longest, 0.5),
        colour=colour if colour in _INK else "operation",
        text=f"{plain(bar.name, 80)}: {duration(_length(bar))}",
    )
