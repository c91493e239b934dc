"""The trend of a metric over the runs of a label, as points and as a line to draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.metrics import METRICS as KNOWN
from bubblefinder.compare.sentences import value
from bubblefinder.render.kit.chart import HEIGHT, WIDTH, Chart
from bubblefinder.render.kit.chart import chart as draw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.web.store import StoredRun

__all__ = ["HEIGHT", "METRICS", "WIDTH", "Point", "chart", "values", "words"]

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


@dataclass(frozen=True, slots=True)
class Point:
    """A run and its value of the metric; null where unknown."""

    run: StoredRun
    value: float | None


def values(runs: Sequence[StoredRun], metric: str) -> list[Point]:
    """Return the metric of every run, oldest first as given."""
    return [Point(run, run.metrics.get(metric)) for run in runs]


def words(metric: str, number: float | None) -> str:
    """Return a value with its unit."""
    return value(number, KNOWN[metric].unit)


def chart(points: Sequence[Point]) -> Chart:
    """Return the drawing of a trend from zero; a run without the metric leaves a hole in the line."""
    return draw([point.value for point in points])
