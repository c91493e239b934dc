"""The trend of a metric over the runs of a label: a line to draw, and where it moved by more than noise."""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.metrics import METRICS as KNOWN
from bubblefinder.compare.noise import Setting
from bubblefinder.compare.sentences import value
from bubblefinder.compare.trend import moves as found
from bubblefinder.render.kit.chart import WIDTH, Chart
from bubblefinder.render.kit.chart import chart as draw
from bubblefinder.units import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.web.shelf import StoredRun

METRICS: Final = {
    metric: KNOWN[metric].meaning.rstrip(".")
    for metric in (
        "step.duration.p50",
        "bubble.share.total",
        "bubble.share.inter_graph",
        "bubble.share.intra_graph",
        "step.host_late.p50",
        "step.launching.p50",
        "step.queued.p50",
        "step.busy.p50",
    )
}
"""The metrics that the page offers, and what each means."""
_COMMIT_PX: Final = 74
"""Room for eight characters of a commit under the axis."""


@dataclass(frozen=True, slots=True)
class Point:
    """A run, its value of the metric, and how far its GPU waited for the host; null where unknown."""

    run: StoredRun
    value: float | None
    waiting: float | None = None


@dataclass(frozen=True, slots=True)
class Move:
    """A new level that noise doesn't explain: where in the points it begins, the means around it, and if it is bad."""

    at: int
    before: float
    after: float
    is_worse: bool


def words(number: float | None, metric: str) -> str:
    """Return a metric's value with its unit."""
    return value(number, KNOWN[metric].unit)


def moves(points: Sequence[Point], metric: str) -> list[Move]:
    """Return where the metric moved by more than the noise between captures, as `bubblefinder history trend` does."""
    known = [(place, point.value) for place, point in enumerate(points) if point.value is not None]
    if not known:
        return []
    numbers = [number for _, number in known]
    steps = [point.run.step_p50_ns for point in points if point.run.step_p50_ns]
    waiting = max(1.0 if points[place].waiting is None else points[place].waiting or 0.0 for place, _ in known)
    setting = Setting(waiting=waiting, step_ns=min(steps, default=max(numbers)), ranks=1)
    lower_is_better = KNOWN[metric].better == "lower"
    return [
        Move(known[at][0], before, after, (after > before) == lower_is_better)
        for at, before, after in _found(metric, tuple(numbers), setting)
    ]


@lru_cache(maxsize=64)
def _found(metric: str, numbers: tuple[float, ...], setting: Setting) -> list[tuple[int, float, float]]:
    """Return where a metric moved; a change of another label, or of what people say of a run, leaves the numbers."""
    return found(KNOWN[metric], numbers, setting)


def chart(points: Sequence[Point], moved: Sequence[Move] = ()) -> Chart:
    """Return the drawing of a trend, scaled to the data; a run without the metric leaves a hole in the line."""
    edges = [0, *(move.at for move in moved), len(points)] if moved else ()
    return draw([point.value for point in points], edges, zero=False)


def commits(points: Sequence[Point], drawn: Chart, moved: Sequence[Move]) -> list[tuple[float, str]]:
    """Return the commits that fit under the axis with their middles: those of moves first, then from the right."""
    begun = {move.at for move in moved}
    kept: list[tuple[float, str]] = []
    for dot in [*(dot for dot in drawn.dots if dot.index in begun), *reversed(drawn.dots)]:
        commit = points[dot.index].run.commit
        middle = min(dot.x, WIDTH - _COMMIT_PX / 2)
        place = bisect(kept, (middle,))
        beside = kept[max(place - 1, 0) : place + 1]
        if commit and all(abs(middle - x) >= _COMMIT_PX for x, _ in beside):
            kept.insert(place, (middle, printable(commit)[:8]))
    return kept
