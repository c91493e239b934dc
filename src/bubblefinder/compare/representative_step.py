"""The step that stands for a side in pictures: one real step, so that its parts add up."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from bubblefinder.compare.baseline import step_ns
from bubblefinder.compare.metrics import decode_rows, ranks
from bubblefinder.compare.model import TypicalStep
from bubblefinder.timeline.model import LEDGER_CLASSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.report.charts import StepTimeline
    from bubblefinder.report.model import Report, StepRow


def representative_step(side: Sequence[Report]) -> TypicalStep | None:
    """Return the median step of the capture whose median lies closest to the side's mean; null without rows."""
    report = _closest(side)
    rows = sorted(decode_rows(report, ranks(report)[0]), key=lambda row: (row.duration_ns, row.index))
    if not rows:
        return None
    timeline = _drawn(report, {row.index for row in rows})
    row = next((r for r in rows if timeline and r.index == timeline.index), rows[(len(rows) - 1) // 2])
    return TypicalStep(
        capture=report.trace.name,
        index=row.index,
        gpu=row.gpu,
        duration_ns=row.duration_ns,
        parts=_parts(row),
        timeline=timeline,
    )


def _closest(side: Sequence[Report]) -> Report:
    lengths = [step_ns(report) for report in side]
    mean = fmean(lengths)
    return min(zip(lengths, side, strict=True), key=lambda pair: abs(pair[0] - mean))[1]


def _drawn(report: Report, indices: set[int]) -> StepTimeline | None:
    rank = ranks(report)[0]
    drawn = [t for t in report.detail.timelines if (t.gpu, t.pid) == (rank.gpu, rank.pid) and t.index in indices]
    return next((t for t in drawn if t.which == "median"), None)


def _parts(row: StepRow) -> dict[str, int]:
    values: dict[str, int | None] = {name: getattr(row, f"{name}_ns") for name in LEDGER_CLASSES}
    return {name: value for name, value in values.items() if value is not None}
