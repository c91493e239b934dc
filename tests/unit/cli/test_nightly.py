from __future__ import annotations

import json
from typing import TYPE_CHECKING

from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.errors import UsageError
from bubblefinder.render.formats import write
from tests.benches import sglang
from tests.unit.compare.builders import a_report

if TYPE_CHECKING:
    from pathlib import Path

SCENARIO = """
version = 1
[[budget]]
metric = "speculation.tpot.mean"
max = "3.5 ms"
[[scenario]]
name = "coding"
concurrency = [1]
[[scenario.budget]]
metric = "serving.tpot.mean"
max = "4 ms"
[[scenario.budget]]
metric = "serving.greedy_match"
min = 1
"""
BUDGET = 'version = 1\n[[budget]]\nmetric = "step.duration.p50"\nmax = "{limit}"\n'


def night(folder: Path, limit: str) -> tuple[int, str]:
    write("report", a_report("a"), folder / "capture.json")
    (folder / "budget.toml").write_text(BUDGET.format(limit=limit))
    arguments = ["nightly", str(folder / "capture.json"), "--budget", str(folder / "budget.toml")]
    done = CliRunner().invoke(app, [*arguments, "--history", str(folder / "runs.db"), "-o", str(folder / "out"), "-q"])
    return done.exit_code, done.output


def test_a_night_within_its_budget_and_one_beyond_it(tmp_path: Path) -> None:
    assert night(tmp_path, "1 s")[0] == 0
    assert {path.suffix for path in (tmp_path / "out").iterdir()} == {".html", ".json", ".md", ".xml"}
    code, said = night(tmp_path, "1 us")
    assert code == 1
    assert "step.duration.p50" in said


def test_a_night_judges_and_reports_its_benchmark(tmp_path: Path) -> None:
    write("report", a_report("a"), tmp_path / "capture.json")
    (tmp_path / "budget.toml").write_text(SCENARIO)
    (tmp_path / "bench.jsonl").write_text(json.dumps(sglang("coding")))
    seen = {"scenario": "coding", "concurrency": 1, "greedy_match": True}
    (tmp_path / "seen.json").write_text(json.dumps({"schema": "bubblefinder.acceptance/1", "result": [seen]}))
    arguments = ["nightly", str(tmp_path / "capture.json"), "--budget", str(tmp_path / "budget.toml")]
    arguments += ["--history", str(tmp_path / "runs.db"), "-o", str(tmp_path / "out"), "-q"]
    assert CliRunner().invoke(app, arguments).exit_code == 3
    results = ["--bench", str(tmp_path / "bench.jsonl"), "--acceptance", str(tmp_path / "seen.json")]
    assert CliRunner().invoke(app, [*arguments, *results]).exit_code == 0
    (run,) = json.loads((tmp_path / "out" / "report.json").read_text())["economics"]["served"]
    assert (run["scenario"], run["tpot_ns"]) == ("coding", 3_000_000)
    (judged, greedy, step) = json.loads((tmp_path / "out" / "budget.json").read_text())["judgements"]
    assert (judged["outcome"], greedy["outcome"], step["outcome"]) == ("ok", "ok", "ok")


def test_a_file_where_the_folder_should_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    write("report", a_report("a"), tmp_path / "capture.json")
    (tmp_path / "budget.toml").write_text(BUDGET.format(limit="1 s"))
    arguments = ["nightly", str(tmp_path / "capture.json"), "--budget", str(tmp_path / "budget.toml")]
    done = CliRunner().invoke(app, [*arguments, "--history", str(tmp_path / "runs.db"), "-o", str(tmp_path / "out")])
    assert isinstance(done.exception, UsageError)
    assert not (tmp_path / "runs.db").exists()
