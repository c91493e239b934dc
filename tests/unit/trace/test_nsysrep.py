from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import InputError, NotATraceError
from bubblefinder.trace import nsys
from bubblefinder.trace.open import open_trace
from tests.unit.trace.rows import save

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nsys, "ROOTS", ())


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


def test_an_old_report_without_nsys_is_told_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "run.qdrep"
    report.write_bytes(b"NVIDIA Tegra Profiler Report 1.")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match=r"run\.qdrep is a report that must be exported first") as caught:
        open_trace(report)
    assert caught.value.exit_code == 3
    assert caught.value.hint.endswith("nsys export --type sqlite --output run.sqlite run.qdrep")


def test_a_recording_needs_the_importer_and_both_commands_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = tmp_path / "run.qdstrm"
    recording.write_bytes(b"CDFVEVENTS")
    by_hand = (
        "QdstrmImporter -i run.qdstrm -o run.nsys-rep && nsys export --type sqlite --output run.sqlite run.nsys-rep"
    )
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(InputError, match="raw recording") as caught:
        open_trace(recording)
    assert caught.value.hint.endswith(by_hand)
    install(monkeypatch, tmp_path / "bin", "exit 0")
    with pytest.raises(InputError, match="no QdstrmImporter lies beside") as caught:
        open_trace(recording)
    assert caught.value.hint.endswith(by_hand)


def test_a_recording_is_imported_and_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = tmp_path / "run.qdstrm"
    recording.write_bytes(b"CDFVEVENTS")
    export = save(tmp_path / "made.sqlite")
    importer = tmp_path / "host-linux-x64" / "QdstrmImporter"
    importer.parent.mkdir()
    importer.write_text('#!/bin/sh\necho "Importing [==50%]"; cp "$2" "$4"\n')
    importer.chmod(0o755)
    install(monkeypatch, tmp_path / "bin", f'[ "$1" = export ] && cp "{export}" "$5"')
    told: list[str] = []
    assert open_trace(recording, progress=told.append).operations.height == 1
    assert told == ["import 50 %"]


def test_a_missing_library_is_named(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "nsys: error while loading shared libraries: libssh.so.4: cannot open shared object file"
    install(monkeypatch, tmp_path / "bin", f"echo '{said}' >&2; exit 127")
    with pytest.raises(NotATraceError, match=r"it needs libssh\.so\.4, which is neither installed here nor in"):
        open_trace(report)


@pytest.mark.parametrize(("version", "narrow"), [("2022.4.2.1", False), ("2023.4.4.54", True), ("", False)])
def test_only_versions_that_can_export_some_tables_alone(
    version: str, narrow: bool, report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export, asked = save(tmp_path / "made.sqlite"), tmp_path / "asked"
    script = f'[ "$1" = --version ] && echo "NVIDIA Nsight Systems version {version}" && exit; echo "$*" > {asked}; '
    install(monkeypatch, tmp_path / "bin", f'{script} cp "{export}" "$5"')
    assert open_trace(report).operations.height == 1
    assert ("--tables StringIds,CUPTI_ACTIVITY_KIND_.*," in asked.read_text()) == narrow
