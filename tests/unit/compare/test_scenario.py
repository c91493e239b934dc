from __future__ import annotations

import json
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.compare.budget import load_budget
from bubblefinder.compare.judge import Judged, judge
from bubblefinder.compare.metrics import SERVING
from bubblefinder.compare.scenario import Results
from bubblefinder.economics.acceptance import read_acceptance
from bubblefinder.economics.bench import read_bench
from bubblefinder.errors import UsageError
from tests import samples
from tests.benches import sglang

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bubblefinder.report.model import Report

TODAY = date(2026, 12, 1)
CONTRACT = """
version = 1
[[scenario]]
name = "coding"
concurrency = [1, 4]
[[scenario.budget]]
metric = "serving.tpot.p95"
max = "4 ms"
"""


@pytest.fixture(scope="module")
def report() -> Report:
    return samples.report("nextn_before.graph")


@pytest.fixture
def judged(tmp_path: Path, report: Report) -> Callable[..., Judged]:
    def run(contract: str, *runs: dict[str, Any], seen: list[dict[str, Any]] | None = None) -> Judged:
        (tmp_path / "budget.toml").write_text(contract)
        (tmp_path / "bench.jsonl").write_text("\n".join(map(json.dumps, runs)))
        (tmp_path / "seen.json").write_text(json.dumps({"schema": "bubblefinder.acceptance/1", "result": seen or []}))
        results = Results(read_bench(tmp_path / "bench.jsonl") if runs else (), read_acceptance(tmp_path / "seen.json"))
        return judge(report, load_budget(tmp_path / "budget.toml"), None, TODAY, results)

    return run


def outcomes(found: Judged) -> list[tuple[object, ...]]:
    return [(*one.where.values(), one.outcome) for one in found.judgements]


def test_each_concurrency_is_judged_and_a_missing_one_is_missing(judged: Callable[..., Judged]) -> None:
    found = judged(CONTRACT, sglang("coding"))
    assert outcomes(found) == [("coding", 1, "ok"), ("coding", 4, "missing")]
    assert found.exit_code == 3
    assert "no result says it" in found.headline


def test_a_broken_limit_fails_and_wins_over_a_missing_one(judged: Callable[..., Judged]) -> None:
    found = judged(CONTRACT, sglang("coding", p95_tpot_ms=4.5))
    assert found.exit_code == 1
    assert "4.50 ms is above 4.00 ms" in found.headline


def test_limits_that_exclude_each_other_are_refused(judged: Callable[..., Judged]) -> None:
    with pytest.raises(UsageError, match="min is above max"):
        judged(CONTRACT + 'min = "5 ms"')


def test_warm_and_cold_runs_are_apart(judged: Callable[..., Judged]) -> None:
    runs = (sglang("coding/warm"), sglang("coding/cold", p95_tpot_ms=5.0), sglang("coding/warm", concurrency=4))
    assert outcomes(judged(CONTRACT, *runs)) == [
        ("coding", 1, "cold", "fail"), ("coding", 1, "warm", "ok"), ("coding", 4, "warm", "ok"),
    ]  # fmt: skip
    only = CONTRACT.replace("concurrency = [1, 4]", 'concurrency = [1, 4]\ncache = "warm"')
    assert judged(only, *runs).exit_code == 0


def test_of_several_runs_the_worst_is_held_to_the_limit(judged: Callable[..., Judged]) -> None:
    found = judged(CONTRACT, sglang("coding"), sglang("coding", p95_tpot_ms=4.2), sglang("coding", concurrency=4))
    assert [one.value for one in found.judgements] == [pytest.approx(4.2e6), pytest.approx(3.6e6)]


def test_another_scenario_s_run_counts_for_nothing(judged: Callable[..., Judged]) -> None:
    assert {one.outcome for one in judged(CONTRACT, sglang("zh_chat")).judgements} == {"missing"}


@pytest.mark.parametrize(
    ("metric", "limit", "seen", "outcome"),
    [
        ("task_success", "min = 0.9", {"task_success": 0.95}, "ok"),
        ("task_success", "min = 0.9", {"task_success": 0.85}, "fail"),
        ("task_success", "min = 0.9", {}, "missing"),
        ("greedy_match", "min = 1", {"greedy_match": True}, "ok"),
        ("greedy_match", "min = 1", {"greedy_match": False}, "fail"),
        ("rollback_ready", "min = 1", {}, "missing"),
        ("invalid_tool_calls", 'max = "1 %"', {"invalid_tool_calls": 0.02}, "fail"),
        ("accept_length", "min = 2.5", {"accept_length": 1.6, "accept_counts_own": False}, "ok"),
        ("accept_length", "min = 2.5", {"accept_length": 1.6}, "fail"),
    ],
)
def test_what_no_benchmark_writes(
    judged: Callable[..., Judged], metric: str, limit: str, seen: dict[str, Any], outcome: str
) -> None:
    contract = CONTRACT.replace("[1, 4]", "[1]").replace("serving.tpot.p95", f"serving.{metric}")
    found = judged(contract.replace('max = "4 ms"', limit), seen=[{"scenario": "coding", "concurrency": 1, **seen}])
    assert [one.outcome for one in found.judgements] == [outcome]


def test_traps_are_warnings(judged: Callable[..., Judged]) -> None:
    found = judged(CONTRACT, sglang("coding", accept_length=1.0), sglang("coding", concurrency=4, failed=1))
    assert any("accept length is 1.00 while drafts run" in line for line in found.warnings)
    assert any(line.startswith("coding at 4: 1 of 11 requests failed") for line in found.warnings)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            ("serving.tpot.p95", "serving.tpott.p95"),
            r"line 7, scenario coding, budget\[0\].metric: .* did you mean 'serving.tpot.p95'",
        ),
        (("serving.tpot.p95", "step.duration.p50"), "no serving metric"),
        (('max = "4 ms"', "max = 4"), "no time"),
        (('max = "4 ms"', ""), "no limit"),
        (('max = "4 ms"', 'max = "4 ms"\nregress = 0.1'), "line 9, scenario coding, budget.*regress: unknown key"),
        (('max = "4 ms"', 'max = "4 ms"\nuntil = 2026-12-31'), "needs why and owner"),
        (("concurrency = [1, 4]", "concurrency = []"), "concurrency"),
    ],
)
def test_mistakes_in_a_scenario(tmp_path: Path, change: tuple[str, str], reason: str) -> None:
    (tmp_path / "budget.toml").write_text(CONTRACT.replace(*change))
    with pytest.raises(UsageError, match=reason):
        load_budget(tmp_path / "budget.toml")


def test_a_file_without_any_limit_and_a_serving_metric_outside_a_scenario(tmp_path: Path) -> None:
    path = tmp_path / "budget.toml"
    path.write_text("version = 1\n")
    with pytest.raises(UsageError, match="no limit"):
        load_budget(path)
    path.write_text('version = 1\n[[budget]]\nmetric = "serving.tpot.p95"\nmax = "4 ms"\n')
    with pytest.raises(UsageError, match="belongs into a"):
        load_budget(path)


def test_every_serving_metric_has_a_meaning_and_dimensions() -> None:
    for name, metric in SERVING.items():
        assert name.startswith("serving.")
        assert metric.meaning.endswith(".")
        assert metric.dimensions == ("scenario", "concurrency", "cache")


def test_results_files_are_validated(tmp_path: Path) -> None:
    path = tmp_path / "seen.json"
    path.write_text(
        '{"schema": "bubblefinder.acceptance/1", "result": [{"scenario": "a", "concurrency": 1, "task": 1}]}'
    )
    with pytest.raises(UsageError, match="unknown key"):
        read_acceptance(path)
    path.write_text("{")
    with pytest.raises(UsageError, match="not JSON"):
        read_acceptance(path)
