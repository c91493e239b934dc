"""A number over runs: where its dots, lines, levels and ticks lie in a drawing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH: Final = 860
_HEIGHT: Final = 240
_LEFT: Final = 84
_RIGHT: Final = 16
_TOP, _BOTTOM = 16, 34
_TICKS: Final = 5
_ROUND: Final = (1, 2, 5, 10)
_HEADROOM: Final = 1.05
"""The axis reaches this far beyond the highest value."""
_LEAST_SPAN: Final = 0.02
"""The axis shows at least so much of the highest value, so that noise of a thousandth doesn't look like a mountain."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A value with its place; `index` is its position among the values."""

    x: float
    y: float
    index: int


@dataclass(frozen=True, slots=True)
class Level:
    """The mean of some neighbours, as a line."""

    x1: float
    x2: float
    y: float


@dataclass(frozen=True, slots=True)
class Chart:
    """What to draw: dots, the line through them in pieces, levels, and (y, value) of the ticks, between the margins."""

    width: ClassVar = WIDTH
    height: ClassVar = _HEIGHT
    left: ClassVar = _LEFT
    right: ClassVar = WIDTH - _RIGHT

    dots: list[Dot]
    lines: list[str]
    levels: list[Level]
    ticks: list[tuple[float, float]]


def chart(values: Sequence[float | None], edges: Sequence[int] = (), *, zero: bool = True) -> Chart:
    """Return the drawing of values in their order; an unknown one leaves a hole in the line.

    Args:
        values: what to draw.
        edges: positions between which the values keep one level; none draws no levels.
        zero: whether the axis reaches down to zero, or only to the least value.
    """
    known = [value for value in values if value is not None]
    axis = _Axis.over([0.0, *known] if zero or not known else known)
    step = (WIDTH - _LEFT - _RIGHT) / max(len(values) - 1, 1)
    dots = [
        Dot(_LEFT + step * place, axis.height(value), place) for place, value in enumerate(values) if value is not None
    ]
    return Chart(dots, _lines(dots, len(values)), _levels(dots, values, edges, axis), axis.ticks())


@dataclass(frozen=True, slots=True)
class _Axis:
    tick: float
    first: int
    last: int

    @classmethod
    def over(cls, values: Sequence[float]) -> _Axis:
        """Return an axis of a few round ticks around the values."""
        low, high = min(values), max(values)
        span = max((high - low) * _HEADROOM, _LEAST_SPAN * abs(high)) or 1.0
        power = 10.0 ** math.floor(math.log10(span / _TICKS))
        tick = next(one * power for one in _ROUND if one * power >= span / _TICKS)
        return cls(tick, math.floor(low / tick), math.ceil((low + span) / tick))

    def height(self, value: float) -> float:
        """Return the place of a value, from the top of the drawing."""
        share = (value / self.tick - self.first) / (self.last - self.first)
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share

    def ticks(self) -> list[tuple[float, float]]:
        """Return the place and the value of every tick."""
        values = [number * self.tick for number in range(self.first, self.last + 1)]
        return [(self.height(value), value) for value in values]


def _lines(dots: Sequence[Dot], count: int) -> list[str]:
    places = {dot.index: f"{dot.x:.1f},{dot.y:.1f}" for dot in dots}
    lines: list[list[str]] = [[]]
    for index in range(count):
        if index in places:
            lines[-1].append(places[index])
        else:
            lines.append([])
    return [" ".join(line) for line in lines if len(line) > 1]


def _levels(dots: Sequence[Dot], values: Sequence[float | None], edges: Sequence[int], axis: _Axis) -> list[Level]:
    levels = []
    for begin, end in pairwise(edges):
        part = [dot for dot in dots if begin <= dot.index < end]
        known = [value for value in values[begin:end] if value is not None]
        if part:
            levels.append(Level(part[0].x, part[-1].x, axis.height(sum(known) / len(known))))
    return levels
