"""`bubblefinder budget` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.compare.history import add
from bubblefinder.compare.store import open_store
from bubblefinder.errors import UsageError
from bubblefinder.report.json import render
from tests.unit.compare.builders import MS, a_report

if TYPE_CHECKING:
    from pathlib import Path

    from typer.testing import Result


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["budget", *map(str, arguments)])


@pytest.fixture
def reports(tmp_path: Path) -> dict[str, Path]:
    """A few runs of one loop, and a slower one."""
    made = {f"run{seed}": a_report(seed=seed) for seed in range(3)} | {"slow": a_report(host_late=2 * MS)}
    for name, report in made.items():
        (tmp_path / f"{name}.json").write_text(render(report))
    return {name: tmp_path / f"{name}.json" for name in made}


def test_a_proposed_budget_passes_its_runs_and_fails_a_slow_one(reports: dict[str, Path], tmp_path: Path) -> None:
    budget = tmp_path / "budget.toml"
    assert run("init", *list(reports.values())[:3], "-o", budget).exit_code == 0
    options = ("--budget", budget)
    passed = run("check", reports["run0"], *options)
    assert passed.exit_code == 0
    assert passed.stdout.startswith("Pass")
    done = run("check", reports["slow"], *options, "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["judgements"][0]["outcome"] == "fail"


def test_without_a_baseline_a_regression_limit_is_no_pass(reports: dict[str, Path], tmp_path: Path) -> None:
    budget = tmp_path / "budget.toml"
    budget.write_text('version = 1\n[[budget]]\nmetric = "step.duration.p50"\nregress = "2 %"\n')
    done = run("check", reports["run1"], "--budget", budget)
    assert done.exit_code == 3
    assert done.stdout.startswith("Can't tell")


def test_the_history_is_a_baseline(reports: dict[str, Path], tmp_path: Path) -> None:
    budget, history = tmp_path / "budget.toml", tmp_path / "h.sqlite"
    budget.write_text('version = 1\n[[budget]]\nmetric = "step.duration.p50"\nregress = "2 %"\n')
    with open_store(history, create=True) as database:
        for seed in range(5, 8):
            add(database, a_report(seed=seed))
    options = ("--budget", budget, "--history", history)
    assert run("check", reports["run0"], *options).exit_code == 0
    done = run("check", reports["slow"], *options, "-o", tmp_path / "v.xml", "-o", tmp_path / "v.html")
    assert done.exit_code == 1
    assert "3 runs of the history" in done.stdout
    assert (tmp_path / "v.xml").exists()
    other = run("check", reports["run0"], *options, "--label", "nobody's")
    assert "is comparable with this one: name the runs to take with --label" in other.stderr
    both = run("check", reports["run0"], *options, "--baseline", reports["run1"])
    assert isinstance(both.exception, UsageError)


def test_the_metrics_are_listed() -> None:
    listed = CliRunner().invoke(app, ["metrics"]).stdout
    assert "step.duration.p50" in listed
    told = json.loads(CliRunner().invoke(app, ["metrics", "--json"]).stdout)
    assert {"id", "unit", "better", "dimensions", "meaning"} == set(told[0])
