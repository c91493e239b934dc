"""Budgets proposed from measured runs, with room for their noise."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.baseline import step_ns
from bubblefinder.compare.changes import measures_of
from bubblefinder.compare.comparable import refusals
from bubblefinder.compare.metrics import METRICS, Measure, Metric, NoiseSource, ranks
from bubblefinder.compare.noise import Setting, line_between, waiting_of
from bubblefinder.compare.reach import reach_of
from bubblefinder.errors import CannotAnswerError
from bubblefinder.units import NS_PER_MS, NS_PER_US, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.report.model import Report

PROPOSED: Final[dict[str, dict[str, str]]] = {
    "step.duration.p50": {},
    "bubble.share.total": {},
    "bubble.share.inter_graph": {},
    "waits.draining.per_step": {},
    "launch.run_ahead.share": {},
    "findings.count": {"severity": "high"},
}
_WIDE: Final = 1.5


def suggest_budget(reports: Sequence[Report]) -> str:
    """Return a budget file that these runs keep, and would keep again.

    Every limit is the worst of the runs plus the noise between captures. None needs a baseline to be judged; the file
    says how to add one that does.

    Raises:
        CannotAnswerError: the runs can't be compared with each other, or have no steps.
    """
    reasons = refusals(reports, reports)
    if reasons:
        raise CannotAnswerError(" ".join(reasons), hint="give captures of one program on one kind of GPU")
    setting = Setting(
        waiting=max(waiting_of(report) for report in reports),
        step_ns=min(step_ns(report) for report in reports),
        ranks=max(len(ranks(report)) for report in reports),
        reach=max(map(reach_of, reports)),
    )
    table = measures_of(reports)
    chosen = [
        row
        for name, of in PROPOSED.items()
        for key, row in table.items()
        if key[0] == name and of.items() <= dict(key[1]).items()
    ]
    blocks = [_block([m for m in row if m is not None], setting, reports) for row in chosen]
    head = [
        f"# Proposed from {plural(len(reports), 'run')}; every limit leaves room for the noise between captures.",
        '# regress = "2 %" beside a max also holds the value against earlier runs: --history or --baseline.',
        "version = 1",
    ]
    return "\n".join(head) + "\n" + "".join(blocks)


def _block(row: list[Measure], setting: Setting, reports: Sequence[Report]) -> str:
    known = [m.value for m in row if m.value is not None]
    if not known:
        return ""
    metric = row[0].metric
    limit = _limit(metric, known, setting)
    if _unbreakable(metric, limit):
        return ""
    lines = ["", "[[budget]]", f"metric = {json.dumps(metric.id)}"]
    if row[0].where:
        lines.append(f"where = {{ {', '.join(f'{key} = {json.dumps(value)}' for key, value in row[0].where)} }}")
    lines.append(f"{'max' if metric.better == 'lower' else 'min'} = {_written(limit, metric.id)}")
    measured = ", ".join(_written(value, metric.id).strip('"') for value in known)
    why = f"measured {measured} in {plural(len(reports), 'run')}"
    why += (
        ", which scatter too widely for a tighter limit" if metric.unit == "ns" and limit > _WIDE * max(known) else ""
    )
    lines.append(f"why = {json.dumps(why)}")
    return "\n".join(lines) + "\n"


def _unbreakable(metric: Metric, limit: float) -> bool:
    """Tell a limit that nothing can break."""
    highest = 1.0 if metric.unit == "ratio" else math.inf
    return limit >= highest if metric.better == "lower" else limit <= 0


def _limit(metric: Metric, known: list[float], setting: Setting) -> float:
    """Return the worst of the runs plus the noise; counts are rounded up instead, since some steps miss a call."""
    if metric.noise is NoiseSource.COUNT:
        return math.ceil(max(known))
    line = line_between(metric.noise, known, known[:1], setting)
    return max(known) + line if metric.better == "lower" else max(min(known) - line, 0.0)


def _written(number: float, name: str) -> str:
    """Return a limit as it is written in a budget file."""
    unit = METRICS[name].unit
    if unit == "ns":
        return f'"{number / NS_PER_MS:.3f} ms"' if number >= NS_PER_MS else f'"{number / NS_PER_US:.0f} us"'
    return f'"{100 * number:.1f} %"' if unit == "ratio" else f"{number:.2f}".rstrip("0").rstrip(".")
