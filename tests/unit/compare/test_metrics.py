"""What the metrics say about a report, and that the catalogue is whole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblefinder.compare.metrics import METRICS, measure
from bubblefinder.overhead.model import Overhead
from tests.unit.compare.builders import MS, US, a_benign, a_finding, a_report, with_rows


def value(report: object, metric: str, **where: object) -> float | None:
    found = [m.value for m in measure(report) if m.metric.id == metric and dict(m.where) == where]  # type: ignore[arg-type]
    assert len(found) == 1, metric
    return found[0]


def test_every_metric_says_what_it_is() -> None:
    for metric in METRICS.values():
        assert metric.meaning.endswith(".")
        assert metric.unit in {"ns", "ratio", "count"}
        assert metric.better in {"lower", "higher", "neither"}


def test_every_measure_is_of_a_metric_with_its_dimensions_and_comes_once() -> None:
    overhead = Overhead(method="calibration", corrected={"duration": 7 * MS, "busy": 6 * MS}, inflation=1.04)
    report = a_report(ranks=2, findings=[a_finding()], overhead=overhead)
    measures = measure(report)
    assert len({m.key for m in measures}) == len(measures)
    for one in measures:
        assert METRICS[one.metric.id] is one.metric
        assert tuple(key for key, _ in one.where) == one.metric.dimensions


def test_steps_are_measured_per_rank() -> None:
    report = a_report(ranks=2, jitter=0.0, busy=6 * MS, host_late=100 * US)
    for rank in (0, 1):
        assert value(report, "step.duration.p50", rank=rank) == 6 * MS + 100 * US + 800 * US + 20 * US
        assert value(report, "step.inter_graph.p50", rank=rank) == 120 * US
        assert value(report, "step.bubble.p50", rank=rank) == 920 * US


def test_excluded_windows_count_for_nothing() -> None:
    report = a_report(steps=3, jitter=0.0)
    longer = [replace(row, duration_ns=10**9) if row.excluded else row for row in report.steps.rows]
    assert value(with_rows(report, longer), "step.duration.p95", rank=0) == value(report, "step.duration.p95", rank=0)


def test_what_was_not_measured_is_unknown_and_never_zero() -> None:
    report = a_report(mode="graph", intra_graph=None)
    assert value(report, "step.intra_graph.p50", rank=0) is None
    assert value(report, "step.bubble.p50", rank=0) is None


def test_without_graphs_the_idle_time_is_all_outside() -> None:
    report = a_report(mode="none", intra_graph=None, jitter=0.0, host_late=1 * MS)
    assert value(report, "step.bubble.p50", rank=0) == 1 * MS + 20 * US


def test_waits_count_whether_they_drained_the_gpu_or_not() -> None:
    finding = a_finding(per_step_count=3.0)
    report = a_report(findings=[finding], benign=[a_benign(finding.site)])
    assert value(report, "waits.per_step") == pytest.approx(4.0)
    assert value(report, "waits.draining.per_step") == pytest.approx(3.0)
    assert value(report, "findings.count", severity="high") == 1
    assert value(replace(report, findings=[a_finding(per_step_count=None)]), "waits.per_step") is None


def test_without_steps_no_finding_is_no_praise() -> None:
    steps = a_report().steps
    without = a_report(steps=0)
    without = replace(without, steps=replace(steps, count=0, rows=[], by_device=[], per_step={}))
    assert value(without, "findings.count", severity="high") is None
    assert value(replace(without, findings=[a_finding()]), "findings.count", severity="high") == 1


def test_a_capture_without_its_graphs_work_knows_nothing() -> None:
    assert {m.value for m in measure(a_report(mode="unseen"))} == {None}
