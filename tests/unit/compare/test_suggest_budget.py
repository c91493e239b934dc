"""Proposed budgets are kept by the runs they come from, and by others like them."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.baseline import of_reports
from bubblefinder.compare.budget import load_budget
from bubblefinder.compare.judge import judge
from bubblefinder.compare.suggest_budget import suggest_budget
from bubblefinder.errors import CannotAnswerError
from bubblefinder.timeline.shares import BubbleShare
from tests.unit.compare.builders import MS, a_finding, a_report

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.report.model import Report

TODAY = date(2026, 11, 29)


def exit_code(tmp_path: Path, runs: list[Report], report: Report) -> int:
    path = tmp_path / "budget.toml"
    path.write_text(suggest_budget(runs))
    return judge(report, load_budget(path), of_reports(runs, report), TODAY).exit_code


@pytest.mark.parametrize("late", [0, 3 * MS], ids=["gpu", "host"])
@pytest.mark.parametrize("count", [1, 3])
def test_runs_like_those_measured_pass(tmp_path: Path, late: int, count: int) -> None:
    runs = [a_report(host_late=late, seed=seed, ranks=2) for seed in range(count)]
    for seed in range(10, 15):
        assert exit_code(tmp_path, runs, a_report(host_late=late, seed=seed, ranks=2)) == 0


def test_a_slower_run_and_a_new_blocking_read_fail(tmp_path: Path) -> None:
    runs = [a_report(seed=seed) for seed in range(3)]
    assert exit_code(tmp_path, runs, a_report(host_late=1 * MS)) == 1
    assert exit_code(tmp_path, runs, a_report(findings=[a_finding(severity="low")])) == 1


def test_a_call_that_some_steps_miss_is_counted_whole() -> None:
    text = suggest_budget([a_report(findings=[a_finding(per_step_count=0.97)])])
    assert 'metric = "waits.draining.per_step"\nmax = 1\n' in text


def test_runs_that_scatter_get_no_limit_that_nothing_could_break() -> None:
    reports = [a_report(), a_report(host_late=30 * MS)]
    shares = [BubbleShare(intra_graph=0.1, inter_graph=inter, total=0.1 + inter) for inter in (0.01, 0.8)]
    scattered = zip(reports, shares, strict=True)
    text = suggest_budget([replace(r, steps=replace(r.steps, bubble_share=share)) for r, share in scattered])
    assert "bubble.share" not in text
    assert "which scatter too widely for a tighter limit" in text
    assert "scatter" not in suggest_budget([a_report(seed=seed) for seed in range(3)])


def test_runs_that_can_not_be_compared_propose_nothing() -> None:
    with pytest.raises(CannotAnswerError, match="trace CUDA graphs differently"):
        suggest_budget([a_report(), a_report(mode="graph", intra_graph=None)])
