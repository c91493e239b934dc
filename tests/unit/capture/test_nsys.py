from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bubblefinder.capture import nsys
from bubblefinder.errors import InputError, UsageError
from bubblefinder.trace import nsys as installed
from bubblefinder.trace.nsys import Nsys
from tests.unit.capture.fake_nsys import install

PROGRAM = [sys.executable, "-c", "pass"]


def test_the_command_records_only_the_profiler_range() -> None:
    command = nsys.profile_command(Nsys(Path("/opt/nsys"), None), Path("/tmp/a"), "node", ["python", "x.py"])  # noqa: S108
    assert command[:2] == ["/opt/nsys", "profile"]
    assert command[-2:] == ["python", "x.py"]
    for option in ("--cuda-graph-trace=node", "--capture-range-end=stop", "--sample=none", "--trace=cuda"):
        assert option in command
    assert not any("osrt" in part for part in command)


def test_a_report_is_recorded_and_exported(tmp_path: Path) -> None:
    command = install(tmp_path / "install")
    found = nsys.find_nsys(command)
    export = nsys.record(found, tmp_path / "run", "graph", PROGRAM)
    assert export == tmp_path / "run.sqlite"
    assert export.read_text() == "export"
    assert found.importer is None


def test_a_raw_file_goes_through_the_importer_beside(tmp_path: Path) -> None:
    found = nsys.find_nsys(install(tmp_path / "install", importer=True))
    nsys.record(found, tmp_path / "run", "node", PROGRAM)
    assert (tmp_path / "run.nsys-rep").read_text() == "imported"


def test_nsys_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = install(tmp_path / "install")
    monkeypatch.setenv("PATH", str(command.parent))
    assert nsys.find_nsys().command == command


def test_no_nsys_is_said_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(installed, "ROOTS", ())
    with pytest.raises(UsageError, match="wasn't found") as caught:
        nsys.find_nsys()
    assert "--nsys" in caught.value.hint


def test_a_path_given_that_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="wasn't found"):
        nsys.find_nsys(tmp_path / "gone")


def test_a_command_that_writes_nothing_is_quoted(tmp_path: Path) -> None:
    broken = tmp_path / "target-linux-x64" / "nsys"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho permission denied on the counters\nexit 1\n")
    broken.chmod(0o755)
    with pytest.raises(UsageError, match="nsys wrote nothing: permission denied"):
        nsys.record(nsys.find_nsys(broken), tmp_path / "run", "node", PROGRAM)


def test_a_command_that_can_not_run(tmp_path: Path) -> None:
    broken = tmp_path / "target-linux-x64" / "nsys"
    broken.parent.mkdir()
    broken.write_text("not a program")
    with pytest.raises(InputError, match="can't be run"):
        nsys.record(nsys.find_nsys(broken), tmp_path / "run", "node", PROGRAM)
