"""What explains a failed budget."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

from bubblefinder.compare.budget import BudgetFile
from bubblefinder.compare.explain import change_since, explained
from bubblefinder.compare.judge import Judged, judge
from bubblefinder.render.budget import sheet
from tests.seeded import HEALTHY, Seed, ranks, report, trace
from tests.unit.compare.builders import MS, a_finding, a_report

if TYPE_CHECKING:
    from bubblefinder.report.model import Report
from bubblefinder.compare.nightly import nightly
from bubblefinder.compare.sentences import CAPTURE_AGAIN

if TYPE_CHECKING:
    from pathlib import Path

LIMIT = BudgetFile.model_validate({"version": 1, "budget": [{"metric": "step.duration.p50", "max": "1 us"}]})
OPEN = BudgetFile.model_validate({"version": 1, "budget": [{"metric": "step.duration.p50", "max": "1 s"}]})


def failed(head: Report, *earlier: Report) -> Judged:
    return explained(judge(head, LIMIT, None, date(2026, 11, 30)), head, change_since(earlier, head))


def at(made: Report, commit: str) -> Report:
    return replace(made, run=replace(made.run, commit=commit))


def test_the_first_suspect_against_earlier_runs_is_the_cause() -> None:
    swapped = Seed(swapped=("gate_fp32", 9.0))
    judged = failed(at(report(trace(swapped, number=2)), "a2"), at(report(trace(HEALTHY)), "a1"))
    assert judged.cause is not None
    assert judged.cause.startswith("gate_fp32 runs in place of gate in verify (12 nodes)")
    assert judged.cause.endswith("(high confidence)")
    assert judged.remedy == "Find what chooses the kernel: library version, data type, dispatch by shape."
    assert (judged.base, judged.head) == ("seeded_1 a1", "seeded_2 a2")


def test_a_slower_host_is_said_to_be_one() -> None:
    busy = Seed(work_us=800)
    judged = failed(report(trace(replace(busy, host_speed=1.9), number=2)), report(trace(busy)))
    assert judged.cause is not None
    assert judged.cause.startswith("the host was 1.9 times slower")
    assert judged.remedy == CAPTURE_AGAIN


def test_a_night_on_a_slower_host_is_unsure_and_not_an_alarm(tmp_path: Path) -> None:
    busy = Seed(work_us=800)
    limits = {"version": 1, "budget": [{"metric": "step.duration.p50", "regress": "2 %"}]}
    budgets, history, today = BudgetFile.model_validate(limits), tmp_path / "h.sqlite", date(2026, 11, 30)
    for number in (1, 2, 3):
        nightly(report(trace(busy, number=number)), budgets, history, today)
    slow = nightly(report(trace(replace(busy, host_speed=1.9), number=4)), budgets, history, today)
    assert (slow.run.state, slow.judged.exit_code) == ("unsure", 3)
    assert "the host was 1.9 times slower" in str(slow.run.reason)
    assert "the host was 1.9 times slower" in slow.judged.headline
    longer = nightly(report(trace(replace(busy, work_us=1_600), number=5)), budgets, history, today)
    assert (longer.run.state, longer.judged.exit_code) == ("alarm", 1)
    assert longer.judged.cause is not None
    assert longer.judged.cause.startswith("the host works longer between its calls in prepare_batch")
    assert nightly(report(trace(busy, number=6)), budgets, history, today).judged.exit_code == 0


def test_without_earlier_runs_the_costliest_finding_is_the_cause() -> None:
    judged = failed(a_report(findings=[a_finding(remedy="Keep it on the GPU.")]))
    assert (judged.cause, judged.remedy, judged.base) == ("A blocking read", "Keep it on the GPU.", None)
    assert failed(a_report()).cause is None


def test_runs_that_can_not_be_compared_explain_nothing() -> None:
    assert change_since([a_report(mode="graph", intra_graph=None)], a_report()) is None
    assert change_since([], a_report()) is None
    assert change_since([a_report(busy=3 * MS)], a_report()) is not None


def test_a_night_with_stalls_is_an_alarm_that_its_verdict_leads_with(tmp_path: Path) -> None:
    limits = {"version": 1, "budget": [{"metric": "step.duration.p50", "max": "9 ms"}]}
    budgets, history, today = BudgetFile.model_validate(limits), tmp_path / "h.sqlite", date(2026, 11, 30)
    busy = Seed(work_us=6_000)
    first = nightly(report(trace(busy, steps=60)), budgets, history, today)
    assert (first.run.state, first.judged.exit_code) == ("ok", 0)
    stalling = replace(busy, pause_us=12_000, pause_every=20)
    night = nightly(report(trace(stalling, steps=60, number=2)), budgets, history, today)
    assert (night.run.state, night.judged.exit_code) == ("alarm", 1)
    assert night.judged.headline.startswith("Alarm: the mean step takes 6.74 ms against 6.13 ms, by 3 steps longer")
    (case,) = [case for case in sheet(night.judged).cases if case.level == "fail"]
    assert case.message == night.judged.headline


def test_a_night_of_another_kind_says_what_differs_though_no_limit_asks(tmp_path: Path) -> None:
    history, today = tmp_path / "h.sqlite", date(2026, 11, 30)
    nightly(report(trace()), OPEN, history, today)
    other = nightly(report(ranks()), OPEN, history, today)
    (told,) = other.judged.warnings
    assert told == "Nothing to compare this run with: run 1 of this label is of another kind: ranks 1 there and 2 here."
