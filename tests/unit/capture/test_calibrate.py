from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from bubblefinder.capture import calibrate
from bubblefinder.capture.take import find_nsys
from bubblefinder.errors import CannotAnswerError, InputError, UsageError
from tests.unit.capture.fake_nsys import install

if TYPE_CHECKING:
    from pathlib import Path

WORKLOAD = (sys.executable, "-c", "import sys; open(sys.argv[1], 'w').write('{\"mode\": 1}')")


def test_every_kind_of_run_is_played_as_often_as_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "_WORKLOAD", WORKLOAD)
    command, said = install(tmp_path / "install"), list[str]()
    folder = tmp_path / "out"
    folder.mkdir()
    played = calibrate.play(find_nsys(command), folder, 2, said.append)
    assert [len(kind) for kind in (played.untraced, played.graph, played.node)] == [2, 2, 2]
    assert played.export.read_text() == "export"
    modes = [line.split("--cuda-graph-trace=")[1].split()[0] for line in _profiled(command)]
    assert modes == ["graph", "node", "graph", "node"]
    for option in ("--capture-range-end=stop", "--sample=none", "--trace=cuda"):
        assert all(f" {option} " in line for line in _profiled(command))
    assert not any("osrt" in line for line in _profiled(command))
    assert said[0] == "no profiler, run 1 of 2"


def _profiled(command: Path) -> list[str]:
    return [line for line in command.with_name("log").read_text().splitlines() if line.startswith("profile")]


def test_a_workload_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "_WORKLOAD", (sys.executable, "-c", "raise SystemExit('no NVIDIA driver here')"))
    with pytest.raises(UsageError, match="no NVIDIA driver here"):
        calibrate.play(find_nsys(install(tmp_path / "install")), tmp_path, 1)


def test_a_workload_that_fails_under_the_profiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only_untraced = "import sys, pathlib; p = pathlib.Path(sys.argv[1]); p.name.startswith('un') and p.write_text('{}')"
    monkeypatch.setattr(calibrate, "_WORKLOAD", (sys.executable, "-c", only_untraced))
    with pytest.raises(UsageError, match="failed under the profiler"):
        calibrate.play(find_nsys(install(tmp_path / "install")), tmp_path, 1)


def test_a_command_that_records_nothing_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "_WORKLOAD", WORKLOAD)
    broken = _broken(tmp_path, "#!/bin/sh\necho permission denied on the counters\nexit 1\n")
    with pytest.raises(CannotAnswerError, match=r"nothing was recorded \(permission denied on the counters\)"):
        calibrate.play(find_nsys(broken), tmp_path, 1)


def test_a_command_that_can_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "_WORKLOAD", WORKLOAD)
    with pytest.raises(InputError, match="can't be run"):
        calibrate.play(find_nsys(_broken(tmp_path, "not a program")), tmp_path, 1)


def _broken(folder: Path, content: str) -> Path:
    command = folder / "target-linux-x64" / "nsys"
    command.parent.mkdir()
    command.write_text(content)
    command.chmod(0o755)
    return command
