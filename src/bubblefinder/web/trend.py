"""The trend of a metric over the runs of a label, as points and as a line to draw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.units import duration, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.web.store import StoredRun

METRICS: Final = {
    "step.duration.p50": "Step, median",
    "bubble.share.total": "Idle share of the step",
    "bubble.share.inter_graph": "Idle share between graph replays",
    "bubble.share.intra_graph": "Idle share inside graph replays",
    "step.host_late.p50": "Host late, median a step",
    "step.launching.p50": "Launching, median a step",
    "step.queued.p50": "Queued, median a step",
    "step.busy.p50": "Busy, median a step",
}
WIDTH: Final = 860
HEIGHT: Final = 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 16, 16, 34
_TICKS: Final = 5
_ROUND: Final = (1, 2, 5, 10)
_HEADROOM: Final = 1.05


@dataclass(frozen=True, slots=True)
class Point:
    """A run and its value of the metric; null where unknown."""

    run: StoredRun
    value: float | None


@dataclass(frozen=True, slots=True)
class Mark:
    """A point with its place in the drawing."""

    x: float
    y: float
    point: Point


@dataclass(frozen=True, slots=True)
class Chart:
    """What to draw: marks, the line through them in pieces, and (y, words) of the ticks."""

    marks: list[Mark]
    lines: list[str]
    ticks: list[tuple[float, str]]


def words(metric: str, value: float | None) -> str:
    """Return a value with its unit."""
    return share(value) if metric.startswith("bubble.share") else duration(value)


def chart(points: Sequence[Point], metric: str) -> Chart:
    """Return the drawing of a trend from zero; a run without the metric leaves a hole in the line."""
    tick, ticks = _ticks(max((p.value for p in points if p.value is not None), default=0.0))
    top = tick * ticks
    step = (WIDTH - _LEFT - _RIGHT) / max(len(points) - 1, 1)
    marks = [
        Mark(_LEFT + step * position, _height(point.value, top), point)
        for position, point in enumerate(points)
        if point.value is not None
    ]
    drawn = [(_height(tick * number, top), words(metric, tick * number)) for number in range(ticks + 1)]
    return Chart(marks, _lines(points, marks), drawn)


def _ticks(highest: float) -> tuple[float, int]:
    """Return a round distance of ticks, and how many reach above the highest value."""
    needed = highest * _HEADROOM / _TICKS or 1 / _TICKS
    power = 10.0 ** math.floor(math.log10(needed))
    tick = next(one * power for one in _ROUND if one * power >= needed)
    return tick, math.ceil(needed * _TICKS / tick)


def _height(value: float, top: float) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * value / top


def _lines(points: Sequence[Point], marks: Sequence[Mark]) -> list[str]:
    placed = {mark.point.run.id: f"{mark.x:.1f},{mark.y:.1f}" for mark in marks}
    lines: list[list[str]] = [[]]
    for point in points:
        place = placed.get(point.run.id)
        if place is None:
            lines.append([])
        else:
            lines[-1].append(place)
    return [" ".join(line) for line in lines if len(line) > 1]
