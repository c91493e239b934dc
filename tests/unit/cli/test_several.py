from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.command import run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bubblefinder.report.model import Report
    from bubblefinder.trace.model import Trace

pytestmark = pytest.mark.usefixtures("read_once")


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
