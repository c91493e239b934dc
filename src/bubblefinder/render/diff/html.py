"""A comparison as one HTML file that works offline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.compare import json
from bubblefinder.render.diff.sheet import sheet
from bubblefinder.render.kit import drawing
from bubblefinder.render.kit.html import environment, harmless, page
from bubblefinder.report.sentences import plain
from bubblefinder.units import duration

if TYPE_CHECKING:
    from bubblefinder.compare.model import Capture, Diff
    from bubblefinder.render.kit.drawing import Drawing

ELEMENT_ID: Final = "bubblefinder-diff"


def write(diff: Diff) -> str:
    """Return the whole page, with the comparison embedded as JSON."""
    return page(sheet(diff).title, body(diff))


def body(diff: Diff) -> str:
    """Return what stands between <body> and </body>; any page that loads `kit.html.sheet_style()` can carry it."""
    shown = sheet(diff)
    return (
        environment()
        .get_template("diff.html.j2")
        .render(
            sheet=shown,
            waterfalls=waterfalls(diff),
            timelines=timelines(diff),
            sources=[
                f"{source}, Nsight Systems {_version(one)}"
                for source, one in zip(shown.sources, (*diff.base, *diff.head), strict=True)
            ],
            embedded=harmless(json.render(diff)),
            element_id=ELEMENT_ID,
        )
    )


def waterfalls(diff: Diff) -> Drawing | None:
    """Return the step that stands for each side, cut by class; null where a side has none to show."""
    steps = [(name, step) for name, step in (("base", diff.base_step), ("head", diff.head_step)) if step]
    if len(steps) < 2:  # noqa: PLR2004 - two sides
        return None
    return drawing.ledgers([(f"{side}: step {s.index}, {duration(s.duration_ns)}", s.parts) for side, s in steps])


def timelines(diff: Diff) -> Drawing | None:
    """Return the step that stands for each side as it ran, base above head; null where unknown."""
    steps = [(name, s.timeline) for name, s in (("base", diff.base_step), ("head", diff.head_step)) if s and s.timeline]
    return drawing.timelines(steps) if len(steps) == 2 else None  # noqa: PLR2004 - two sides


def _version(capture: Capture) -> str:
    return plain(capture.nsys_version) or "unknown"
