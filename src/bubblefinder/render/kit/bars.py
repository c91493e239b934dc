"""A length of time cut into parts, as the segments of one bar."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH: Final = 1000
"""Width of every drawn bar in user units; the page scales it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a bar: the palette's name of its colour, what it is, and where it lies, in user units."""

    css: str
    name: str
    ns: float
    x: float
    width: float
    share: float


def segment(css: str, name: str, ns: float, start: float, scale: float) -> Segment:
    """Return the segment of `ns` that begins at `start` where the whole width is `scale`, never too thin to see."""
    return Segment(css, name, ns, round(WIDTH * start / scale, 2), round(max(WIDTH * ns / scale, 1.0), 2), ns / scale)


def lay_out(parts: Iterable[tuple[str, str, float]], scale: float) -> tuple[Segment, ...]:
    """Return (css, name, ns) one behind the other."""
    segments, start = [], 0.0
    for css, name, ns in parts:
        segments.append(segment(css, name, ns, start, scale))
        start += ns
    return tuple(segments)
