"""Every metric of a real capture against what the report says, each taken by hand from where it stands."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pytest

from bubblefinder.compare.metrics import METRICS, measure
from bubblefinder.overhead.model import Source
from bubblefinder.report.build import Options, report_of
from tests.samples import analysis

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.model import Report, Role
    from bubblefinder.timeline.shares import BubbleShare

CAPTURE = "nextn_before.node"


@cache
def known() -> Report:
    """The report on a capture whose step without the profiler was measured, so that nothing is assumed."""
    return report_of(analysis(CAPTURE), Options(overhead=Source(untraced_step_ns=8.56e6)))


def verify(report: Report) -> Role:
    return next(role for role in report.steps.roles if role.role == "verify")


def corrected(report: Report) -> BubbleShare:
    assert report.overhead.corrected_bubble_share is not None
    return report.overhead.corrected_bubble_share


def median_lead(report: Report) -> float:
    return float(np.median([lead.lead_ns for lead in report.detail.leads]))


def waits(report: Report, *, harmless: bool) -> float:
    blamed = [f.per_step_count or 0 for f in report.findings if f.site.api and f.host_blocked_ns.p50 is not None]
    return sum(blamed) + (sum(one.per_step_count or 0 for one in report.benign) if harmless else 0)


KNOWN: Final[dict[str, Callable[[Report], float | None]]] = {
    "bubble.share.total": lambda r: r.steps.bubble_share.total,
    "bubble.share.inter_graph": lambda r: r.steps.bubble_share.inter_graph,
    "bubble.share.intra_graph": lambda r: r.steps.bubble_share.intra_graph,
    "corrected.bubble.share.total": lambda r: corrected(r).total,
    "corrected.bubble.share.inter_graph": lambda r: corrected(r).inter_graph,
    "corrected.bubble.share.intra_graph": lambda r: corrected(r).intra_graph,
    "overhead.inflation": lambda r: r.overhead.inflation,
    "role.duration.p50": lambda r: verify(r).p50_ns,
    "role.intra_graph.p50": lambda r: verify(r).intra_graph_p50_ns,
    "role.nodes": lambda r: verify(r).nodes,
    "role.replays": lambda r: verify(r).replays_per_step,
    "waits.per_step": lambda r: waits(r, harmless=True),
    "waits.draining.per_step": lambda r: waits(r, harmless=False),
    "launches.per_step": lambda r: r.detail.launches_per_step,
    "launch.lead.p50": median_lead,
    "launch.run_ahead.share": lambda r: r.devices[0].run_ahead_share,
    "launch.coverage": lambda r: r.devices[0].launches.recorded / r.devices[0].launches.seen,
    "pdl.overlap.share": lambda r: r.detail.pdl_overlap_share,
    "findings.count": lambda r: sum(finding.severity == "high" for finding in r.findings),
}
WHERE: Final = {"role": "verify", "severity": "high", "rank": 0}
STATISTICS: Final[dict[str, Callable[[list[int]], float]]] = {
    "mean": lambda values: float(np.mean(values)),
    "p50": lambda values: float(np.percentile(values, 50)),
    "p95": lambda values: float(np.percentile(values, 95)),
}
SUMS: Final[dict[str, tuple[str, ...]]] = {"inter_graph": ("host_late", "launching", "queued", "unattributed")}
SUMS["bubble"] = (*SUMS["inter_graph"], "intra_graph")


def measured(metric: str) -> float | None:
    rows = [m for m in measure(known()) if m.metric.id == metric]
    return next(m.value for m in rows if all(WHERE[key] == value for key, value in m.where))


# What needs a model or a benchmark beside the capture is tested where that is read.
@pytest.mark.parametrize(
    "metric", [one for one in METRICS if not one.startswith(("step.", "corrected.step.", "floor.", "speculation."))]
)
def test_a_metric_is_what_the_report_says(metric: str) -> None:
    assert metric in KNOWN, "say here where a report holds it"
    assert measured(metric) == pytest.approx(KNOWN[metric](known()))


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric.startswith("step.")])
def test_a_part_of_the_step_is_taken_over_the_decode_steps(metric: str) -> None:
    _, name, statistic = metric.split(".")
    rows = [row for row in known().steps.rows if row.excluded is None]
    values = [sum(getattr(row, f"{part}_ns") for part in SUMS.get(name, (name,))) for row in rows]
    assert measured(metric) == pytest.approx(STATISTICS[statistic](values))


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric.startswith("corrected.step.")])
def test_a_part_of_the_corrected_step_is_the_reports(metric: str) -> None:
    assert measured(metric) == known().overhead.corrected[metric.split(".")[2]]
