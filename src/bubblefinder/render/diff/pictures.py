"""One real step a side, the one nearest its median: ledgers as bars of one scale, timelines aligned at the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit.palette import CHART, COLOURS
from bubblefinder.render.report.timeline_figure import KIND_LABELS
from bubblefinder.report.sentences import class_label, plain
from bubblefinder.units import duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bubblefinder.compare.model import Diff, TypicalStep
    from bubblefinder.report.pictures import StepTimeline, TimelineBar

WIDTH: Final = 1000.0
LANE: Final = 28
MOST_BARS: Final = 1500
_KINDS: Final = {
    "wait": "wait",
    "blamed_wait": "blamed",
    "nvtx": "nvtx",
    "api": "host",
    "launch": "launch",
    "replay": "busy",
    "operations": "operation",
}
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


def waterfalls(diff: Diff) -> Drawing | None:
    """Return the step that stands for each side, cut by class, one lane a side; null where a side has none to show."""
    if diff.base_step is None or diff.head_step is None:
        return None
    sides = (("base", diff.base_step), ("head", diff.head_step))
    longest = max(step.duration_ns for _, step in sides)
    marks = [mark for number, (_, step) in enumerate(sides) for mark in _ledger(step, 2 * number * LANE, longest)]
    lanes = [
        Lane(2 * number * LANE, f"{name}: step {step.index}, {duration(step.duration_ns)}")
        for number, (name, step) in enumerate(sides)
    ]
    return Drawing(marks, lanes, 4 * LANE, {name: class_label(name) for name in COLOURS})


def timelines(diff: Diff) -> Drawing | None:
    """Return the step that stands for each side as it ran, base above head, from one left edge; null where unknown."""
    steps = [(name, s.timeline) for name, s in (("base", diff.base_step), ("head", diff.head_step)) if s and s.timeline]
    if len(steps) < 2:  # noqa: PLR2004 - two sides
        return None
    longest = max(t.end_ns - t.start_ns for _, t in steps)
    marks, lanes, top, dropped = list[Mark](), list[Lane](), 0.0, 0
    for name, timeline in steps:
        tracks = list(dict.fromkeys(bar.track for bar in timeline.bars))
        lanes += [Lane(top + LANE * row, f"{name}: {plain(track, 40)}") for row, track in enumerate(tracks)]
        kept = sorted(timeline.bars, key=_length, reverse=True)[:MOST_BARS]
        marks += [_bar(bar, timeline, top + LANE * tracks.index(bar.track), longest) for bar in kept]
        top += LANE * (len(tracks) + 1)
        dropped += timeline.dropped + len(timeline.bars) - len(kept)
    return Drawing(marks, lanes, top, {_KINDS.get(kind, kind): label for kind, label in KIND_LABELS.items()}, dropped)


def legend(drawing: Drawing) -> list[tuple[str, str]]:
    """Return what a drawing shows, as colour and label."""
    shown = {mark.colour for mark in drawing.marks}
    return [(colour, label) for colour, label in drawing.labels.items() if colour in shown]


def _ledger(step: TypicalStep, y: float, longest: int) -> list[Mark]:
    marks, x = list[Mark](), 0.0
    for name, ns in step.parts.items():
        width = WIDTH * ns / longest
        marks.append(Mark(x, y, width, name, f"{class_label(name)}: {duration(ns)}"))
        x += width
    return [mark for mark in marks if mark.width > 0]


def _length(bar: TimelineBar) -> int:
    return bar.end_ns - bar.start_ns


def _bar(bar: TimelineBar, timeline: StepTimeline, y: float, longest: int) -> Mark:
    start, end = (min(max(ns, timeline.start_ns), timeline.end_ns) for ns in (bar.start_ns, bar.end_ns))
    colour = _KINDS.get(bar.kind, bar.kind)
    return Mark(
        x=WIDTH * (start - timeline.start_ns) / longest,
        y=y,
        width=max(WIDTH * (end - start) / longest, 0.5),
        colour=colour if colour in _INK else "operation",
        text=f"{plain(bar.name, 80)}: {duration(_length(bar))}",
    )
