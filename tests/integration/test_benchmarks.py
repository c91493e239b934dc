from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benchmarks import answers, reading, shapes
from benchmarks.generate import Shape, generate
from benchmarks.stages import stages
from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.ledger import window_ledger
from bubblefinder.trace.open import open_trace
from tests.processes import run
from tests.unit.trace.rows import differences

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("kernels", "options"),
    [
        pytest.param(4_000, {"nodes": 200, "eager": 20}, id="one GPU"),
        pytest.param(6_000, {"nodes": 160, "eager": 10, "gpus": 3}, id="three GPUs"),
        pytest.param(1_500, {"nodes": 30, "eager": 0}, id="graphs only"),
        pytest.param(1_500, {"nodes": 0, "eager": 60, "ranges": 0}, id="a call a kernel"),
        pytest.param(1_500, {"nodes": 0, "eager": 60, "ranges": 50}, id="ranges around the calls"),
        pytest.param(1_500, {"nodes": 0, "eager": 60, "streams": 20}, id="many streams"),
        pytest.param(12_000, {"nodes": 0, "eager": 60, "gpus": 30}, id="many GPUs"),
    ],
)
def test_the_analysis_gives_the_generators_answer(tmp_path: Path, kernels: int, options: dict[str, Any]) -> None:
    answer: Any = generate(tmp_path / "made.sqlite", kernels, Shape(**options))
    timeline = build_timeline(open_trace(tmp_path / "made.sqlite"))
    windows = find_steps(timeline).windows
    assert [device.gpu for device in timeline.devices] == [known["gpu"] for known in answer["devices"]]
    for device, known in zip(timeline.devices, answer["devices"], strict=True):
        whole = pl.Series([device.start_ns]).to_numpy(), pl.Series([device.end_ns]).to_numpy()
        found = window_ledger(timeline, device.gpu, *whole).row(0, named=True)
        names = ("busy_ns", "intra_graph_ns", "host_late_ns", "launching_ns", "queued_ns")
        assert {name: found[name] for name in names} == {name: known[name] for name in names}
        assert (device.end_ns - device.start_ns, device.replays) == (known["span_ns"], known["replays"])
        assert len(windows.filter(pl.col("gpu") == device.gpu)) == known["steps"]
        assert len(timeline.operations.filter(pl.col("gpu") == device.gpu)) == known["operations"]


def test_the_benchmark_compares_all_four(tmp_path: Path) -> None:
    generate(tmp_path / "made.sqlite", 2_000, Shape(nodes=100))
    command = [sys.executable, "-m", "benchmarks.load", str(tmp_path / "made.sqlite"), "--repeat", "1"]
    done = run(command, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"\d\.\d\d s +\d+\.\d\d x +\d+\.\d\d s of processor +\d+ MB peak", done.stdout)) == 4


def test_one_table_has_every_shape(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.shapes", str(tmp_path), "--kernels", "2000", "--repeat", "1"]
    command += ["--shape", "nvtx", "--shape", "gpus"]
    done = run(command, cwd=ROOT, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows[1][:5] == ["shape", "floor", "stdlib", "analyze", "ratio"]
    assert [row[0] for row in rows[2:]] == ["nvtx", "gpus"]
    assert all(float(value) > 0 for row in rows[2:] for value in row[2:7])


def test_another_tool_runs_on_a_copy_that_it_may_write_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nsys"
    tool.write_text('#!/bin/sh\nfor last; do :; done\ntest -s "$last" && echo more >> "$last" && : > "$last.kept"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    made = tmp_path / "captures" / "made.sqlite"
    made.parent.mkdir()
    generate(made, 500, Shape(nodes=50))
    before = made.read_bytes()
    assert shapes.times(made, 1)[shapes.NSYS][0].seconds > 0
    assert (made.read_bytes(), [path.name for path in made.parent.iterdir()]) == (before, ["made.sqlite"])


def test_every_stage_is_timed(tmp_path: Path) -> None:
    generate(tmp_path / "made.sqlite", 2_000, Shape(nodes=100))
    found = stages(tmp_path / "made.sqlite")
    assert list(found) == ["read", "timeline", "steps", "causes", "facts", "model", "recoverable", "report"]
    assert all(wall > 0 for wall, _ in found.values())


def test_every_way_of_reading_is_timed_on_the_same_rows(tmp_path: Path) -> None:
    made = tmp_path / "made.sqlite"
    generate(made, 2_000, Shape(nodes=100))
    command = [sys.executable, "-m", "benchmarks.reading", str(made), "--repeat", "1"]
    done = run(command, cwd=ROOT)
    found = re.findall(r"^(\w+) +\d+\.\d\d s of processor +\d+ MB peak$", done.stdout, re.MULTILINE)
    assert found == list(reading.WAYS), done.stderr
    assert differences(open_trace(made), open_trace(reading.folder_of(made))) == []


def test_the_generator_writes_its_answer_beside_the_export(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.generate", str(tmp_path / "made.sqlite"), "--kernels", "500"]
    done = run([*command, "--nodes", "50"], cwd=ROOT, check=True)
    assert json.loads((tmp_path / "made.answer.json").read_text()) == json.loads(done.stdout)


def test_every_field_that_differs_is_named_with_an_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {"steps": {"rows": [{"busy": 1}, {"busy": 2}], "mark": None}, "findings": [1, 2]}
    after = {"steps": {"rows": [{"busy": 1}, {"busy": 3}], "mark": None, "new": 4}, "findings": [1]}
    for folder, told in (("a", before), ("b", after)):
        (tmp_path / folder).mkdir()
        for name in ("one.json", "two.json"):
            (tmp_path / folder / name).write_text(json.dumps(told if name == "one.json" else before))
    assert answers.compare(tmp_path / "a", tmp_path / "b") == 3
    assert capsys.readouterr().out.splitlines() == [
        "findings: 1 of 2 samples; one.json: [1, 2] -> [1]",
        "steps.new: 1 of 2 samples; one.json: None -> 4",
        "steps.rows[].busy: 1 of 2 samples; one.json: 2 -> 3",
        "3 fields differ in 1 of 2 samples",
    ]
    assert answers.compare(tmp_path / "a", tmp_path / "a") == 0
