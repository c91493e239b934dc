from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from tests import processes

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = Path(sys.executable).with_name("bubblefinder")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(PROGRAM), "batch", *arguments]
    return processes.run(command, env={**os.environ, "CI": ""})


@pytest.fixture(scope="module")
def runs(sample: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    for name in ("null_gpu_1.graph", "tp2_before.node"):
        path = sample(name)
        (place / path.name).write_bytes(path.read_bytes())
    (place / "broken.sqlite").write_text("nothing")
    return place


@pytest.fixture(scope="module")
def out(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("out")
    done = run(str(runs), "-o", str(place), "--workers", "2")
    assert done.returncode == 0, done.stderr
    assert "distributed" not in done.stderr
    lines = sorted(done.stdout.splitlines())
    assert lines[0].startswith(f"{runs}/broken.sqlite: not analysed: it is not an Nsight Systems export")
    assert "58 steps of 4.27 ms, at least" in lines[1]
    assert "on 2 ranks" in lines[2]
    assert lines[3].startswith("2 captures, 3 ranks. Most idle: tp2_before.node.sqlite.xz GPU 1")
    return place


def test_every_rank_is_a_row_and_every_failure_named(out: Path) -> None:
    rows = pl.read_parquet(out / "fleet.parquet")
    assert rows["capture"].to_list() == ["null_gpu_1.graph.sqlite.xz", *["tp2_before.node.sqlite.xz"] * 2]
    assert rows["gpu"].to_list() == [0, 0, 1]
    assert rows["bubble_ns"].null_count() == 1
    document = json.loads((out / "fleet.json").read_text())
    assert [one["reason"] for one in document["failures"]] == ["broken.sqlite is not an Nsight Systems export"]
    assert "Ranks that idle most" in (out / "fleet.html").read_text()
    assert len(list((out / "reports").iterdir())) == 2


def test_what_is_done_is_not_done_again_and_a_cut_line_counts_for_nothing(runs: Path, out: Path) -> None:
    state = out / "captures.jsonl"
    kept = state.read_text()
    reports = {path: path.stat().st_mtime_ns for path in (out / "reports").iterdir()}
    state.write_text(kept + kept[:40])
    again = run(str(runs), "-o", str(out), "-q")
    assert again.returncode == 0
    assert again.stdout.startswith("2 captures, 3 ranks.")
    assert state.read_text() == kept + kept[:40]
    assert {path: path.stat().st_mtime_ns for path in (out / "reports").iterdir()} == reports


def test_no_capture_that_can_be_read_is_exit_3(runs: Path, tmp_path: Path) -> None:
    done = run(str(runs / "broken.sqlite"), "-o", str(tmp_path / "out"), "--workers", "1", "-q")
    assert done.returncode == 3


def test_a_scheduler_that_isn_t_there(runs: Path, tmp_path: Path) -> None:
    done = run(str(runs / "broken.sqlite"), "-o", str(tmp_path / "out"), "--scheduler", "tcp://127.0.0.1:1")
    assert done.returncode == 3
    assert "no scheduler answers at tcp://127.0.0.1:1" in done.stderr
    assert "Traceback" not in done.stderr
    both = run(str(runs), "-o", str(tmp_path / "out"), "--scheduler", "tcp://x:1", "--workers", "2")
    assert both.returncode == 2


def test_ctrl_c_ends_workers_too_without_a_word_and_what_is_done_is_kept(
    sample: Callable[[str], Path], tmp_path: Path
) -> None:
    out, scratch = tmp_path / "out", tmp_path / "scratch"
    scratch.mkdir()
    captures = [tmp_path / f"{number}.sqlite.xz" for number in range(6)]
    for capture in captures:
        capture.symlink_to(sample("null_gpu_1.graph"))
    process = subprocess.Popen(
        [sys.executable, "-m", "bubblefinder", "batch", *map(str, captures), "-o", str(out), "--workers", "1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert process.stdout
    assert process.stdout.readline()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (-signal.SIGINT, b"")
    assert not list(scratch.iterdir())
    assert len((out / "captures.jsonl").read_text().splitlines()) >= 1
