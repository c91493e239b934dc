"""`bubblefinder analyze` as a user runs it: output, formats, exit codes, and what it leaves behind."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bubblefinder import analyze
from bubblefinder.errors import CannotAnswerError
from tests import processes
from tests.command import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.model import Report
    from bubblefinder.trace.model import Trace

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


@pytest.fixture(scope="module")
def runs(sample: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    for number, name in enumerate(("null_gpu_1.graph", "tp2_before.node")):
        shutil.copy(sample(name), place / f"{number}.sqlite.xz")
    return place


def test_a_folder_gives_a_line_a_capture_and_one_for_all(runs: Path) -> None:
    done = run("analyze", runs)
    assert done.returncode == 0
    first, second, last = done.stdout.splitlines()
    assert first.startswith(f"{runs}/0.sqlite.xz: 58 steps of 4.27 ms, at least ")
    assert second.startswith(f"{runs}/1.sqlite.xz: 3 steps on 2 ranks of ")
    assert last.startswith("2 captures, 3 ranks. Most idle: 1.sqlite.xz GPU 1, ")


def test_several_files_and_a_pattern_mean_the_same(runs: Path) -> None:
    folder, files, pattern = (
        run("analyze", *given).stdout
        for given in ([runs], [runs / "1.sqlite.xz", runs / "0.sqlite.xz"], [f"{runs}/?.sqlite.xz"])
    )
    assert folder == files == pattern


def test_the_exit_code_is_the_worst_of_any(runs: Path, sample: Callable[[str], Path], tmp_path: Path) -> None:
    gated = run("analyze", *runs.iterdir(), "--fail-on", "high")
    assert gated.returncode == 1
    assert gated.stderr == f"1 capture with findings that --fail-on is for: {runs}/1.sqlite.xz\n"
    (tmp_path / "broken.sqlite").write_text("nothing")
    broken = run("analyze", runs, tmp_path / "broken.sqlite", "--fail-on", "high")
    assert broken.returncode == 3
    assert f"{tmp_path}/broken.sqlite: not analysed: it is not an" in broken.stdout
    assert len(broken.stdout.splitlines()) == 4
    unseen = run("analyze", runs / "0.sqlite.xz", sample("dspark_before.nsys2023.graph"))
    assert unseen.returncode == 3
    assert "the GPU work of its graphs is missing" in unseen.stdout


def test_outputs_and_formats_mean_the_captures_side_by_side(runs: Path, tmp_path: Path) -> None:
    done = run("analyze", runs, "-f", "json", "-o", tmp_path / "all.html")
    document = json.loads(done.stdout)
    assert (document["schema"], len(document["rows"])) == ("bubblefinder.fleet/1", 3)
    assert "Ranks that idle most" in (tmp_path / "all.html").read_text()
    quiet = run("analyze", runs, "-q", "-o", tmp_path / "all.json")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    assert json.loads((tmp_path / "all.json").read_text()) == document


@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (["-f", "junit"], "there is no format 'junit' here", 2),
        (["--select", "NOPE"], "no rule or pack 'NOPE'", 2),
        (["missing.sqlite"], "missing.sqlite holds no capture", 3),
    ],
)
def test_what_is_wrong_for_all_is_said_once_and_before_any_is_read(
    runs: Path, arguments: list[str], said: str, code: int
) -> None:
    done = run("analyze", runs, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"error: {said}")


def test_options_hold_for_each(runs: Path) -> None:
    done = run("analyze", runs, "--gpu", "1")
    assert done.returncode == 3
    first, second = done.stdout.splitlines()[:2]
    assert "not analysed: the GPU or process asked for" in first
    assert "3 steps on 2 ranks" in second


def test_verbose_prints_the_whole_report_of_each_below_its_line(runs: Path) -> None:
    done = run("analyze", runs, "-v")
    alone = [run("analyze", runs / f"{number}.sqlite.xz", "-v").stdout for number in (0, 1)]
    lines = run("analyze", runs).stdout.splitlines(keepends=True)
    assert done.stdout == lines[0] + alone[0] + lines[1] + alone[1] + lines[2]
    named = run("analyze", runs, "-v", "-f", "csv").stdout
    assert named == run("analyze", runs, "-f", "csv").stdout


def test_a_bug_that_one_capture_meets_costs_the_others_nothing(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bubblefinder.report import build

    right = build.analyze_trace
    met = iter([True, False, True])

    def buggy(trace: Trace, options: build.Options | None = None) -> Report:
        if next(met):
            raise ZeroDivisionError("division by zero")
        return right(trace, options)

    monkeypatch.setattr(build, "analyze_trace", buggy)
    done = run("analyze", runs)
    assert done.returncode == 4
    first, second, _ = done.stdout.splitlines()
    assert ": not analysed: internal error: ZeroDivisionError: division by zero; BUBBLEFINDER_DEBUG=1" in first
    assert "3 steps on 2 ranks" in second
    monkeypatch.setenv("BUBBLEFINDER_DEBUG", "1")
    met = iter([True, False, False])
    done = run("analyze", runs)
    assert done.returncode == 4
    assert "raise ZeroDivisionError" in done.stderr


def test_a_folder_without_captures_is_refused_as_one(tmp_path: Path) -> None:
    done = run("analyze", tmp_path)
    assert done.returncode == 3
    assert "is a folder without the tables of an Nsight Systems export" in done.stderr
