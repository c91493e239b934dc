"""Verdicts on limits, and the exit code they add up to."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.compare.baseline import Baseline, of_reports
from bubblefinder.compare.budget import BudgetFile
from bubblefinder.compare.judge import Judged, judge
from bubblefinder.overhead.model import Overhead
from tests.unit.compare.builders import MS, US, a_report, with_steps

if TYPE_CHECKING:
    from bubblefinder.report.model import Report

TODAY = date(2026, 11, 29)


def judged(report: Report, *budgets: dict[str, Any], baseline: Baseline | None = None) -> Judged:
    file = BudgetFile.model_validate({"version": 1, "budget": list(budgets)})
    return judge(report, file, baseline, TODAY)


def outcomes(result: Judged) -> list[str]:
    return [one.outcome for one in result.judgements]


STEP = {"metric": "step.duration.p50"}
WAIVER = {"why": "known", "owner": "decode team"}


def test_a_kept_limit_is_ok_and_a_broken_one_fails() -> None:
    report = a_report(jitter=0.0)
    result = judged(report, STEP | {"max": "7 ms"}, STEP | {"max": "6 ms"}, STEP | {"min": "6 ms"})
    assert outcomes(result) == ["ok", "fail", "ok"]
    assert result.exit_code == 1
    assert result.headline == "Fail: step.duration.p50: 6.87 ms is above 6.00 ms."


def test_what_is_kept_is_said_in_the_words_of_its_limit() -> None:
    report = a_report(jitter=0.0)
    count = {"metric": "findings.count", "where": {"severity": "high"}, "max": 0}
    result = judged(report, STEP | {"max": "7 ms"}, STEP | {"min": "6 ms"}, STEP | {"min": "6.87 ms"}, count)
    assert [one.message for one in result.judgements] == [
        "6.87 ms is within 7.00 ms",
        "6.87 ms is above the least, 6.00 ms",
        "6.87 ms is the least allowed",
        "0 is the most allowed",
    ]


def test_a_warning_fails_nothing() -> None:
    result = judged(a_report(), STEP | {"max": "6 ms", "severity": "warn"})
    assert outcomes(result) == ["warn"]
    assert result.exit_code == 0
    assert result.headline == "Pass: 1 limit judged, 1 warn."


@pytest.mark.parametrize(
    ("until", "outcome"), [(date(2026, 11, 28), "fail"), (date(2026, 11, 29), "warn"), (date(2026, 12, 31), "warn")]
)
def test_a_waiver_holds_up_to_its_last_day(until: date, outcome: str) -> None:
    result = judged(a_report(), STEP | {"max": "6 ms", "until": until} | WAIVER)
    assert outcomes(result) == [outcome]
    assert result.exit_code == (1 if outcome == "fail" else 0)


@pytest.mark.parametrize(
    ("late", "outcome"), [(50 * US, "ok"), (100 * US, "ok"), (300 * US, "fail"), (0, "ok")], ids=str
)
def test_a_regression_needs_to_exceed_the_tolerance_and_the_noise(late: int, outcome: str) -> None:
    base = a_report(host_late=50 * US, jitter=0.0)
    report = a_report(host_late=late, jitter=0.0)
    result = judged(report, STEP | {"regress": 0.02}, baseline=of_reports([base], report))
    assert outcomes(result) == [outcome]


def test_worse_than_allowed_but_within_the_noise_is_told_and_passes() -> None:
    base, report = a_report(host_late=3 * MS), a_report(host_late=3_500_000)
    result = judged(report, STEP | {"regress": "2 %"}, baseline=of_reports([base], report))
    assert outcomes(result) == ["within-noise"]
    assert result.exit_code == 0


def test_better_than_the_noise_is_improved() -> None:
    base, report = a_report(host_late=3 * MS), a_report(host_late=1 * MS)
    assert outcomes(judged(report, STEP | {"regress": 0.02}, baseline=of_reports([base], report))) == ["improved"]


def test_higher_is_better_for_some_metrics() -> None:
    base = a_report()
    report = a_report(
        devices=[type(d)(**{f: getattr(d, f) for f in d.__slots__} | {"run_ahead_share": 0.3}) for d in base.devices]
    )
    limit = {"metric": "launch.run_ahead.share", "regress": 0.05}
    assert outcomes(judged(report, limit, baseline=of_reports([base], report))) == ["fail"]
    assert outcomes(judged(base, limit, baseline=of_reports([report], base))) == ["improved"]


@pytest.mark.parametrize(
    "limit",
    [
        {"metric": "step.intra_graph.p50", "max": "1 ms"},
        {"metric": "corrected.step.duration.p50", "max": "1 ms"},
        {"metric": "role.duration.p50", "where": {"role": "sample"}, "max": "1 ms"},
        {"metric": "step.duration.p50", "regress": 0.02},
    ],
    ids=lambda limit: limit["metric"],
)
def test_what_the_report_can_not_tell_is_missing_and_never_passes(limit: dict[str, Any]) -> None:
    result = judged(a_report(mode="graph", intra_graph=None), limit)
    assert outcomes(result) == ["missing"]
    assert result.exit_code == 3
    assert result.headline.startswith("Can't tell: ")


def test_a_baseline_of_another_kind_is_incomparable() -> None:
    report = a_report()
    other = a_report(mode="graph", intra_graph=None)
    result = judged(report, STEP | {"regress": 0.02}, baseline=of_reports([other], report))
    assert outcomes(result) == ["incomparable"]
    assert result.exit_code == 3


def test_a_broken_limit_wins_over_one_that_can_not_be_judged() -> None:
    assert judged(a_report(), STEP | {"regress": 0.02}, STEP | {"max": "1 ms"}).exit_code == 1


def test_a_report_without_steps_keeps_no_limit_on_steps() -> None:
    report = with_steps(a_report(), by_device=[], rows=[], count=0)
    assert judged(report, STEP | {"max": "7 ms"}).exit_code == 3


def test_every_rank_is_held_to_a_limit_that_names_none() -> None:
    limit = STEP | {"max": "7 ms"}
    assert len(judged(a_report(ranks=2), limit).judgements) == 2
    assert len(judged(a_report(ranks=2), limit | {"where": {"rank": 1}}).judgements) == 1


@pytest.mark.parametrize(("method", "outcome"), [("assumed", "missing"), ("calibration", "ok")])
def test_a_corrected_value_is_judged_only_where_the_profilers_cost_was_measured(method: str, outcome: str) -> None:
    overhead = Overhead(method=method, corrected={"duration": 7 * MS}, inflation=1.04)
    result = judged(a_report(overhead=overhead), {"metric": "corrected.step.duration.p50", "max": "8 ms"})
    assert outcomes(result) == [outcome]
    assert result.exit_code == (0 if outcome == "ok" else 3)
