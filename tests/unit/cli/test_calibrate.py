"""`bubblefinder calibrate`, with a stand-in for the GPU and for Nsight Systems."""

from __future__ import annotations

import json
import lzma
import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from bubblefinder.capture import calibrate as runs
from bubblefinder.cli.app import app
from bubblefinder.errors import UsageError
from bubblefinder.overhead.calibration import read_calibration
from tests.unit.capture.fake_nsys import install
from tests.unit.overhead.test_fit import GRAPH, NODE, Profiler, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Sample = Callable[[str], Path]

RUNNER = CliRunner()
COPY = "import shutil, sys, pathlib; p = pathlib.Path(sys.argv[1]); shutil.copy(pathlib.Path(FOLDER) / p.name, p)"


@pytest.fixture
def nsys(tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An nsys whose export is a real capture, and a workload that hands out made-up measurements."""
    made = tmp_path / "made"
    made.mkdir()
    for name, tax in (("untraced0", Profiler()), ("graph0", GRAPH), ("node0", NODE)):
        (made / f"{name}.json").write_text(json.dumps(run(tax)))
    hand_out = COPY.replace("FOLDER", repr(str(made)))
    monkeypatch.setattr(runs, "_WORKLOAD", (sys.executable, "-c", hand_out))
    export = tmp_path / "real.sqlite"
    export.write_bytes(lzma.decompress(sample("nextn_before.graph").read_bytes()))
    return install(tmp_path / "install", export=export)


def test_it_writes_a_calibration_and_says_how_to_use_it(nsys: Path, tmp_path: Path) -> None:
    output = tmp_path / "here.json"
    result = RUNNER.invoke(app, ["calibrate", "--repeats", "1", "--nsys", str(nsys), "-o", str(output)])
    assert result.exit_code == 0, result.output
    written = read_calibration(output)
    assert (written.cupti, written.driver, written.nsys) == ("13.0", "580.159.04", "2025.3.2.0")
    assert written.node.kernel_node.value == pytest.approx(NODE.kernel, rel=0.01)
    assert f"--calibration {output}" in result.output.replace("\n", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.json", "install", "made", "real.sqlite"]


def test_quiet_says_nothing(nsys: Path, tmp_path: Path) -> None:
    arguments = ["calibrate", "-q", "--repeats", "1", "--nsys", str(nsys), "-o", str(tmp_path / "c.json")]
    assert RUNNER.invoke(app, arguments).output == ""


def test_a_collector_that_does_not_name_its_cupti_is_refused(nsys: Path, tmp_path: Path, sample: Sample) -> None:
    old = lzma.decompress(sample("nextn_before.nsys2023.node").read_bytes())
    (tmp_path / "real.sqlite").write_bytes(old)
    result = RUNNER.invoke(app, ["calibrate", "--repeats", "1", "--nsys", str(nsys), "-o", str(tmp_path / "c.json")])
    assert isinstance(result.exception, UsageError)
    assert "which CUPTI it loaded" in str(result.exception)
    assert not (tmp_path / "c.json").exists()


def test_a_folder_that_is_not_there_is_said_before_anything_runs(nsys: Path, tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["calibrate", "--nsys", str(nsys), "-o", str(tmp_path / "gone" / "c.json")])
    assert isinstance(result.exception, UsageError)
    assert not nsys.with_name("log").exists()
