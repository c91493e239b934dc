"""A comparison as one HTML file that works offline."""

from __future__ import annotations

from json import dumps
from typing import TYPE_CHECKING, Final

from bubblefinder.render.diff.sheet import sheet
from bubblefinder.render.kit.bars import Segment, lay_out
from bubblefinder.render.kit.html import environment, harmless, page
from bubblefinder.render.kit.step_chart import step_chart
from bubblefinder.report import json
from bubblefinder.report.sentences import class_label, plain
from bubblefinder.units import duration

if TYPE_CHECKING:
    from bubblefinder.compare.model import Diff
    from bubblefinder.report.charts import StepTimeline

ELEMENT_ID: Final = "bubblefinder-diff"


def write(diff: Diff) -> str:
    """Return the whole page, with the comparison embedded as JSON."""
    return page(sheet(diff).title, body(diff), charts=bool(_timelines(diff)))


def body(diff: Diff) -> str:
    """Return what stands between <body> and the scripts; any page with those and the style can carry it."""
    shown, timelines = sheet(diff), _timelines(diff)
    figures = {"timelines": step_chart(timelines)} if timelines else {}
    return (
        environment()
        .get_template("diff.html.j2")
        .render(
            sheet=shown,
            ledgers=ledgers(diff),
            merged=sum(step.dropped for _, step in timelines),
            figures=harmless(dumps(figures, separators=(",", ":"))) if figures else "",
            sources=[
                f"{source}, Nsight Systems {plain(one.nsys_version) or 'unknown'}"
                for source, one in zip(shown.sources, (*diff.base, *diff.head), strict=True)
            ],
            embedded=harmless(json.render(diff)),
            element_id=ELEMENT_ID,
        )
    )


def ledgers(diff: Diff) -> list[tuple[str, tuple[Segment, ...]]]:
    """Return the step that stands for each side, cut by class, on one scale; empty where a side has none to show."""
    steps = [(name, step) for name, step in (("base", diff.base_step), ("head", diff.head_step)) if step]
    if len(steps) < 2:  # noqa: PLR2004 - two sides
        return []
    longest = max(sum(step.parts.values()) for _, step in steps)
    return [
        (
            f"{side}: step {step.index}, {duration(step.duration_ns)}",
            lay_out(((name, class_label(name), ns) for name, ns in step.parts.items() if ns), longest),
        )
        for side, step in steps
    ]


def _timelines(diff: Diff) -> list[tuple[str, StepTimeline]]:
    """Return the step that stands for each side as it ran; empty where one is unknown."""
    steps = [(name, s.timeline) for name, s in (("base", diff.base_step), ("head", diff.head_step)) if s and s.timeline]
    return steps if len(steps) == 2 else []  # noqa: PLR2004 - two sides
