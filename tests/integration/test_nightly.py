"""The whole nightly job, as the command line runs it, night after night."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.compare.source import load
from bubblefinder.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

pytestmark = pytest.mark.usefixtures("read_once")

BUDGET = """
version = 1

[[budget]]
metric = "step.duration.p50"
max = "4.4 ms"
regress = "2 %"

[[budget]]
metric = "launch.run_ahead.share"
min = 0.9
"""
FILES = {"report.html", "report.json", "report.md", "budget.html", "budget.json", "budget.md", "budget.xml"}


@pytest.fixture
def night(tmp_path: Path, sample: Callable[[str], Path]) -> Callable[..., Result]:
    """Runs one night on a sample capture."""
    (tmp_path / "budget.toml").write_text(BUDGET)

    def run(name: str, *more: str) -> Result:
        arguments = ["nightly", str(sample(name)), "--budget", str(tmp_path / "budget.toml")]
        arguments += ["--history", str(tmp_path / "history.sqlite"), "-o", str(tmp_path / "out"), *more]
        return CliRunner().invoke(app, arguments)

    return run


def history(tmp_path: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["history", *arguments, "--history", str(tmp_path / "history.sqlite")])


def test_a_folder_that_can_not_be_made_is_said_before_anything_is_stored(
    night: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "out").write_text("a file")
    refused = night("null_gpu_1.graph").exception
    assert isinstance(refused, UsageError)
    assert str(tmp_path / "out") in str(refused)
    assert not (tmp_path / "history.sqlite").exists()


def test_nights_pass_until_one_is_worse_and_the_alarm_is_kept_out(night: Callable[..., Result], tmp_path: Path) -> None:
    first = night("null_gpu_1.graph", "--label", "nightly", "--commit", "a1")
    assert first.exit_code == 3
    assert first.stdout.startswith("Can't tell: step.duration.p50: there is no baseline to hold it against.")
    assert night("null_gpu_2.graph", "--label", "nightly", "--commit", "a2").exit_code == 0
    assert night("null_gpu_3.graph", "--label", "nightly", "--commit", "a3").exit_code == 0
    worse = night("null_host_1.graph", "--label", "nightly", "--commit", "a4")
    assert worse.exit_code == 1
    assert worse.stdout.startswith("Fail: step.duration.p50: 7.71 ms is above 4.40 ms.")
    assert "Run 4 raised an alarm" in worse.stdout
    still = night("null_host_2.graph", "--label", "nightly", "--commit", "a5")
    assert still.exit_code == 1
    assert "against 4.27 ms in 3 runs of the history" in still.stdout
    trend = history(tmp_path, "trend", "step.duration.p50", "-o", str(tmp_path / "trend.html"))
    assert trend.exit_code == 0
    assert "worse since run 4" in trend.stdout
    assert "commits a3 to a4" in trend.stdout
    assert (tmp_path / "trend.html").read_text().count("<circle") == 5


def test_every_file_is_written_and_can_be_read(night: Callable[..., Result], tmp_path: Path) -> None:
    night("null_gpu_1.graph", "--label", "nightly", "--commit", "a1")
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == FILES
    report = load(out / "report.json")
    assert (report.run.label, report.run.commit) == ("nightly", "a1")
    assert load(out / "report.html").steps.per_step == report.steps.per_step
    assert json.loads((out / "budget.json").read_text())["exit_code"] == 3
    assert ET.parse(out / "budget.xml").getroot().get("errors") == "1"
    assert (out / "budget.md").read_text().endswith("<!-- bubblefinder:budget -->\n")


def test_a_capture_that_can_not_answer_is_a_failed_night(night: Callable[..., Result], tmp_path: Path) -> None:
    done = night("dspark_before.nsys2023.graph")
    assert done.exit_code == 3
    assert done.stdout.startswith("Can't tell: ")
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES
    assert "nsys2023.graph.sqlite.xz can't be judged, since the export lacks the GPU work" in done.stdout
    assert "failed: dspark_before.nsys2023.graph" in history(tmp_path, "list").stdout
    assert "Export the .nsys-rep again" in (tmp_path / "out" / "budget.md").read_text()


def test_a_night_without_a_readable_capture_leaves_its_reason_everywhere(
    night: Callable[..., Result], tmp_path: Path
) -> None:
    night("null_gpu_1.graph", "--label", "nightly")
    cut = tmp_path / "cut.sqlite"
    cut.write_bytes(b"SQLite format 3\0 and no more")
    arguments = ["nightly", str(cut), "--budget", str(tmp_path / "budget.toml"), "-o", str(tmp_path / "out")]
    arguments += ["--history", str(tmp_path / "history.sqlite"), "--label", "nightly", "--commit", "a2"]
    failed = CliRunner().invoke(app, arguments)
    assert isinstance(failed.exception, InputError)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f for f in FILES if f.startswith("budget.")}
    assert "cut short" in (tmp_path / "out" / "budget.md").read_text()
    assert json.loads((tmp_path / "out" / "budget.json").read_text())["exit_code"] == 3
    listed = history(tmp_path, "list").stdout.splitlines()
    assert "nightly  a2  cut.sqlite" in listed[-1]
    assert "failed: cut.sqlite is cut short" in listed[-1]
    assert night("null_gpu_2.graph", "--label", "nightly").exit_code == 0


def test_a_wrong_budget_leaves_its_reason_as_well(night: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "budget.toml").write_text("version = 7")
    assert isinstance(night("null_gpu_1.graph").exception, UsageError)
    assert "line 1, version: input should be 1" in (tmp_path / "out" / "budget.md").read_text()


def test_a_night_that_was_traced_otherwise_raises_no_alarm(night: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "budget.toml").write_text('version = 1\n[[budget]]\nmetric = "step.duration.p50"\nregress = "2 %"\n')
    codes = [night(f"seeded/{name}.node", "--label", "nightly").exit_code for name in ("base_1", "base_2", "base_3")]
    assert codes == [3, 0, 0]
    judged = json.loads((tmp_path / "out" / "budget.json").read_text())
    assert judged["judgements"][0]["message"].endswith("(2 runs of the history, as if traced like this capture)")
    assert history(tmp_path, "add", "sample_traces/seeded/grid.node.sqlite.xz", "--label", "nightly").exit_code == 1


def test_across_definitions_nothing_is_alarmed_and_the_night_says_so(
    night: Callable[..., Result], tmp_path: Path
) -> None:
    (tmp_path / "budget.toml").write_text('version = 1\n[[budget]]\nmetric = "step.duration.p50"\nregress = "2 %"\n')
    for name in ("null_gpu_1.graph", "null_gpu_2.graph"):
        night(name, "--label", "nightly")
    with sqlite3.connect(tmp_path / "history.sqlite") as older:
        older.execute("UPDATE runs SET definitions = 1, report = NULL")
    slower = night("null_host_1.graph", "--label", "nightly")
    assert slower.exit_code == 3
    assert "definitions 1 there and 2 here" in slower.stdout
    assert "add its capture again (bubblefinder history add)" in (tmp_path / "out" / "budget.md").read_text()
    assert history(tmp_path, "list").stdout.splitlines()[-1].endswith("ok")
    assert "2 runs of older definitions left out" in history(tmp_path, "trend", "step.duration.p50").stdout
    assert history(tmp_path, "add", str(tmp_path / "out" / "report.json"), "--label", "nightly").exit_code == 0


def test_another_model_on_the_label_is_said(night: Callable[..., Result], tmp_path: Path) -> None:
    night("null_gpu_1.graph", "--label", "nightly", "--meta", "model=ling")
    other = night("null_gpu_2.graph", "--label", "nightly", "--meta", "model=qwen")
    assert other.exit_code == 3
    assert "model ling there and qwen here" in other.stdout
    told = (tmp_path / "out" / "budget.md").read_text().split("<details>")[0]
    assert told.count("of another kind") == 1
    assert "* **What to do**: Nothing, if that is meant: the next run of this kind" in told
    added = history(
        tmp_path, "add", "sample_traces/null_gpu_3.graph.sqlite.xz", "--label", "nightly", "--meta", "model=ling"
    )
    assert added.exit_code == 0


def test_a_report_of_older_definitions_is_kept_apart(night: Callable[..., Result], tmp_path: Path) -> None:
    night("null_gpu_1.graph", "--label", "nightly")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    (tmp_path / "old.json").write_text(json.dumps(report | {"definitions": 1}))
    added = history(tmp_path, "add", str(tmp_path / "old.json"), "--label", "nightly")
    assert added.exit_code == 0
    assert "the report follows definitions 1, this bubblefinder 2" in added.stderr


def test_a_failed_night_leads_with_cause_remedy_runs_and_link(night: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "budget.toml").write_text(BUDGET.replace("4.4 ms", "8 ms").replace('"2 %"', '"2 %"\nwhy = "agreed"'))
    night("nextn_after.node", "--label", "nightly", "--commit", "a1")
    worse = night("nextn_before.node", "--label", "nightly", "--commit", "a2", "--report-url", "https://ci.example/7")
    assert worse.exit_code == 1
    assert "Cause: the host waits in cudaMemcpyAsync DtoH in FutureMap.resolve_seq_lens_cpu" in worse.stdout
    for name in ("budget.md", "diff.md"):
        opened = (tmp_path / "out" / name).read_text().split("<details>")[0]
        assert "resolve_seq_lens_cpu" in opened
        assert "Keep the value on the GPU" in opened
        assert "[full report](https://ci.example/7)" in opened
        assert "a1" in opened
        assert "a2" in opened
    assert json.loads((tmp_path / "out" / "diff.json").read_text())["suspects"][0]["kind"] == "new wait"


def test_a_run_can_be_added_listed_shown_accepted_exported_and_pruned(
    tmp_path: Path, sample: Callable[[str], Path]
) -> None:
    for name, code in (("null_gpu_1", 0), ("null_gpu_2", 0), ("null_host_1", 1)):
        done = history(tmp_path, "add", str(sample(f"{name}.graph")), "--label", "nightly", "--commit", name)
        assert done.exit_code == code
    assert [line.split()[-1] for line in history(tmp_path, "list").stdout.splitlines()[:2]] == ["ok", "ok"]
    assert "step.duration.p50 (rank 0)" in history(tmp_path, "show", "1").stdout
    assert history(tmp_path, "accept", "3").stdout.rstrip().endswith("accepted")
    rows = json.loads(history(tmp_path, "export", "-f", "json").stdout)
    step = [row["value"] for row in rows if row["metric"] == "step.duration.p50"]
    assert step[0] == pytest.approx(4_267_000, rel=0.001)
    assert history(tmp_path, "export").stdout.splitlines()[0].startswith("run,added_at,label")
    assert history(tmp_path, "prune", "--keep", "1").stdout == "2 runs deleted\n"
