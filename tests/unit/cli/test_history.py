from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.render.formats import write
from tests.unit.compare.builders import a_report

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A history of two runs."""
    for name in ("a", "b"):
        write("report", a_report(name), tmp_path / f"{name}.json")
        done = CliRunner().invoke(app, ["history", "add", str(tmp_path / f"{name}.json"), *at(tmp_path / "runs.db")])
        assert done.exit_code == 0, done.output
    return tmp_path / "runs.db"


def at(history: Path) -> tuple[str, str]:
    return "--history", str(history)


def said(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["history", *arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.output


def test_runs_are_listed_shown_accepted_and_deleted(runs: Path) -> None:
    assert [line.split()[1] for line in said("list", *at(runs)).splitlines()] == ["1", "2"]
    assert "step.duration.p50" in said("show", "2", *at(runs))
    assert said("accept", "2", *at(runs)).startswith("run 2")
    assert said("prune", "--keep", "1", *at(runs)) == "1 run deleted\n"
    assert [line.split()[1] for line in said("list", *at(runs)).splitlines()] == ["2"]


def test_values_are_exported(runs: Path) -> None:
    rows = list(csv.DictReader(said("export", *at(runs)).splitlines()))
    assert {row["metric"] for row in rows} >= {"step.duration.p50"}
    assert len(json.loads(said("export", "-f", "json", *at(runs)))) == len(rows)


def test_a_trend_is_printed_and_written_in_any_format(runs: Path, tmp_path: Path) -> None:
    page, table = tmp_path / "trend.html", tmp_path / "trend.csv"
    text = said("trend", "step.duration.p50", *at(runs), "-o", str(page), "-o", str(table))
    assert text.splitlines()[0] == "step.duration.p50 (rank 0): 2 runs"
    assert "<svg" in page.read_text()
    assert len(table.read_text().splitlines()) == 3
    document = json.loads(said("trend", "step.duration.p50", *at(runs), "-f", "json"))
    assert [run["run"] for run in document["runs"]] == [1, 2]
