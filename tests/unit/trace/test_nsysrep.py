from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import InputError, NotATraceError
from bubblefinder.trace.open import open_trace
from tests.unit.trace.rows import save

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "my run.nsys-rep"
    path.write_bytes(b"\1\2report")
    return path


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, script: str) -> None:
    folder.mkdir()
    program = folder / "nsys"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def test_without_nsys_the_command_to_run_elsewhere_is_given(report: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="not installed") as caught:
        open_trace(report)
    assert "nsys export --type sqlite --output 'my run.sqlite' 'my run.nsys-rep'" in caught.value.hint


def test_nsys_exports_to_a_temporary_place(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    export = save(tmp_path / "made.sqlite")
    install(monkeypatch, tmp_path / "bin", f'[ "$1 $2 $3 $4" = "export --type sqlite --output" ] && cp "{export}" "$5"')
    loaded = open_trace(report)
    assert (loaded.info.name, loaded.operations.height) == ("my run.nsys-rep", 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin", "made.sqlite", "my run.nsys-rep"]


def test_what_nsys_says_is_passed_on_in_one_line(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "Processing...\\nError: Report was created in Nsight Systems version 2026.5, newer than 2024.2\\nBye"
    install(monkeypatch, tmp_path / "bin", f"printf '{said}' >&2; exit 1")
    with pytest.raises(NotATraceError, match=r"version 2026\.5, newer than 2024\.2") as caught:
        open_trace(report)
    assert "\n" not in str(caught.value)


def test_a_database_that_is_called_a_report_is_read_as_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert open_trace(save(tmp_path / "x.nsys-rep")).operations.height == 1
