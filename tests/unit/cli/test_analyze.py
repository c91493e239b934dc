"""`bubblefinder analyze` as a user runs it: output, formats, exit codes, and what it leaves behind."""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

import pytest

from bubblefinder import analyze
from bubblefinder.errors import CannotAnswerError
from tests import processes
from tests.command import run

pytestmark = pytest.mark.usefixtures("read_once")

SAMPLES = Path(__file__).parents[3] / "sample_traces"
SAMPLE = SAMPLES / "nextn_before.node.sqlite.xz"


def test_it_runs_in_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "bubblefinder", "analyze", str(SAMPLE)]
    done = processes.run(command)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == run("analyze", SAMPLE).stdout


def test_the_verdict_comes_first() -> None:
    done = run("analyze", SAMPLE)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("The GPU idles 28.3 % of the decode time: 2.53 ms of 8.93 ms a step")


def test_json_on_stdout_is_the_file_that_o_writes(tmp_path: Path) -> None:
    printed = run("analyze", SAMPLE, "--json", "--label", "nightly", "--commit", "abc", "--meta", "host=h1")
    wrote = run(
        "analyze", SAMPLE, "-q", "-o", tmp_path / "x.json", "--label", "nightly", "--commit", "abc", "--meta", "host=h1"
    )
    assert (printed.returncode, wrote.returncode, wrote.stdout) == (0, 0, "")
    report = json.loads(printed.stdout)
    assert report == json.loads((tmp_path / "x.json").read_text())
    assert report["run"] == {"label": "nightly", "commit": "abc", "meta": {"host": "h1"}}


def test_unseen_graph_work_is_no_bubble_share() -> None:
    done = run("analyze", SAMPLES / "dspark_before.nsys2023.graph.sqlite.xz")
    assert done.returncode == 3
    assert "%" not in done.stdout.split("\n")[0]
    assert "lacks the GPU work of its CUDA graph launches" in done.stderr
    assert "2024.2" in done.stderr
    report = analyze(SAMPLES / "dspark_before.nsys2023.graph.sqlite.xz")
    assert report.steps.bubble_share.total is report.steps.bubble_share.inter_graph is None
    assert report.devices[0].idle_ns is report.devices[0].inter_graph.host_late_ns is None
    assert report.findings == []


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A folder of files that are no captures."""
    (tmp_path / "empty.sqlite").write_bytes(b"")
    (tmp_path / "text.sqlite").write_text("not a database at all, but long enough to be looked at")
    (tmp_path / "folder").mkdir()
    with sqlite3.connect(tmp_path / "other.sqlite") as other:
        other.execute("create table notes (id integer)")
    other.close()
    whole = tmp_path / "whole.sqlite"
    import lzma

    whole.write_bytes(lzma.decompress(SAMPLE.read_bytes()))
    (tmp_path / "cut.sqlite").write_bytes(whole.read_bytes()[: 300 * 4096 + 17])
    whole.unlink()
    return tmp_path


@pytest.mark.parametrize(
    "name", ["empty.sqlite", "text.sqlite", "folder", "other.sqlite", "cut.sqlite", "missing.sqlite"]
)
def test_bad_input_is_one_line_and_a_hint_and_leaves_nothing(bad: Path, name: str) -> None:
    before = sorted(bad.rglob("*"))
    done = run("analyze", bad / name, "-o", bad / "report.json")
    assert done.returncode == 3
    assert done.stdout == ""
    message, hint = done.stderr.strip().split("\n")
    assert message.startswith("error: ")
    assert hint.startswith("hint: ")
    assert sorted(bad.rglob("*")) == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["--window", "5"],
        ["--steps", "9"],
        ["--meta", "alone"],
        ["--step-by", "magic"],
        ["--step-by", "nvtx:("],
        ["-f", "docx"],
        ["-o", "report.docx"],
        ["-o", "taken/report.json"],
        ["--no-such-option"],
    ],
)
def test_wrong_usage_exits_with_2(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "taken").write_text("a file where a folder belongs")
    done = run("analyze", SAMPLE, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_what_is_asked_for_and_not_there_is_an_error() -> None:
    with pytest.raises(CannotAnswerError, match="no operations here"):
        analyze(SAMPLE, gpu=5)
    with pytest.raises(CannotAnswerError, match="inside the window"):
        analyze(SAMPLE, window=(10**12, 2 * 10**12))
    with pytest.raises(CannotAnswerError, match="no NVTX range"):
        analyze(SAMPLE, step_by="nvtx:nothing")
    with pytest.raises(CannotAnswerError, match="no decode step"):
        analyze(SAMPLE, steps=(50, 60))


def test_one_window_serves_numerator_and_denominator() -> None:
    report = analyze(SAMPLE, window=(30_000_000, 70_000_000))
    device = report.devices[0]
    assert device.span_ns < 41_000_000
    parts = [device.busy_ns, device.intra_graph_ns, device.profiler_ns, device.unrecorded_ns]
    inter = device.inter_graph
    parts += [inter.host_late_ns, inter.launching_ns, inter.queued_ns, inter.unattributed_ns]
    assert sum(part for part in parts if part is not None) == device.span_ns


def test_selected_steps_alone_make_the_statistics() -> None:
    whole = analyze(SAMPLE)
    some = analyze(SAMPLE, steps=(2, 5))
    assert (some.steps.count, some.steps.excluded) == (3, {"tail": 1})
    chosen = [row.duration_ns for row in whole.steps.rows if 2 <= row.index < 5]
    assert some.steps.per_step["duration"].mean == sum(chosen) / 3


def test_the_folder_of_an_output_is_made(tmp_path: Path) -> None:
    assert (
        run("analyze", SAMPLES / "null_gpu_1.graph.sqlite.xz", "-q", "-o", "new/deep/r.json", cwd=tmp_path).returncode
        == 0
    )
    assert json.loads((tmp_path / "new" / "deep" / "r.json").read_text())["verdict"]["headline"].startswith(
        "The GPU idles"
    )
