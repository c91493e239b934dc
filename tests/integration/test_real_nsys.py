"""The whole path from a report, with the real Nsight Systems: a recording, a report, an export, an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from bubblefinder.cli.app import app
from bubblefinder.errors import CannotAnswerError, NotATraceError
from bubblefinder.report.build import analyze_trace
from bubblefinder.trace import nsys as installed
from bubblefinder.trace.nsys import export_report, installed_nsys
from bubblefinder.trace.open import open_source, open_trace
from tests.processes import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _on_path(real_nsys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{real_nsys.parent}:/usr/bin:/bin")


@pytest.fixture
def report(root: Path, tmp_path: Path) -> Path:
    """A report that nsys 2023.4 wrote of ten steps in NVTX, on a machine without a GPU."""
    path = tmp_path / "my loop.nsys-rep"
    path.write_bytes((root / "sample_traces" / "nvtx_loop.nsys-rep").read_bytes())
    return path


def test_it_is_found_with_its_version_and_its_importer() -> None:
    found = installed_nsys()
    assert found is not None
    assert found.version == (2023, 4)
    assert found.importer is not None
    assert found.importer.name == "QdstrmImporter"


def test_a_report_is_exported_and_read_with_progress(report: Path) -> None:
    told: list[str] = []
    trace = open_trace(report, progress=told.append)
    assert trace.info.nsys_version == "2023.4.4.54"
    assert trace.info.schema_version == "3.7.2"
    assert sorted(trace.nvtx["text"]) == ["decode_step"] * 10 + ["verify"] * 10
    assert told[-1] == "export 100 %"
    assert [path.name for path in report.parent.iterdir()] == [report.name]


def test_a_report_of_2020_is_read(root: Path, tmp_path: Path) -> None:
    """Nsight Systems 2020.4 called its reports .qdrep; a later one exports them."""
    report = tmp_path / "old.qdrep"
    report.write_bytes((root / "sample_traces" / "nvtx_loop.qdrep").read_bytes())
    trace = open_trace(report)
    assert sorted(trace.nvtx["text"]) == ["decode_step"] * 10 + ["verify"] * 10
    assert trace.info.nsys_version == "2023.4.4.54"
    with pytest.raises(CannotAnswerError, match="no GPU activity recorded"):
        analyze_trace(trace)
    clean = tmp_path / "clean.sqlite"
    assert CliRunner().invoke(app, ["slice", str(report), str(clean), "--scrub"]).exit_code == 0
    assert [secret for secret in (b"/mnt/", b"HOME=", b"nsys-launcher") if secret in clean.read_bytes()] == []


def test_only_tables_that_are_read_are_exported(report: Path, tmp_path: Path) -> None:
    nsys = installed_nsys()
    assert nsys is not None
    for part, version in (("some", nsys.version), ("all", ())):
        database = tmp_path / f"{part}.sqlite"
        done = export_report(installed.Nsys(nsys.command, None, version), report, database, lambda _: None)
        assert done.code == 0
        with open_source(database) as source:
            tables = set(source.tables)
        assert {"NVTX_EVENTS", "StringIds", "META_DATA_EXPORT"} <= tables
        assert ("ProcessStreams" in tables) == (part == "all")


def test_a_capture_without_gpu_work_is_told_apart_from_a_bad_one(report: Path) -> None:
    with pytest.raises(CannotAnswerError, match="no GPU activity recorded"):
        analyze_trace(open_trace(report))
    said = CliRunner().invoke(app, ["doctor", str(report)])
    assert said.exit_code == 0
    assert "decode_step ×10" in said.stdout


def test_a_recording_is_imported_first(tmp_path: Path, real_nsys: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    options = ["--trace=nvtx", "--sample=none", "--cpuctxsw=none", "-o", "raw"]
    clean = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [str(real_nsys.resolve()), "profile", *options, "./program"]
    recording = tmp_path / "raw.qdstrm"
    for _ in range(3):  # on a busy machine nsys once ended well and left nothing
        run(command, cwd=tmp_path, env=clean, check=True)
        if recording.is_file():
            break
    assert recording.is_file()
    told: list[str] = []
    trace = open_trace(recording, progress=told.append)
    assert trace.info.nsys_version == "2023.4.4.54"
    assert trace.operations.is_empty()
    assert told[-1] == "export 100 %"
    assert {stage.split()[0] for stage in told} == {"import", "export"}


@pytest.mark.parametrize(
    ("name", "what"),
    [("cut.nsys-rep", "nsys can't export"), ("cut.qdrep", "nsys can't export"), ("cut.qdstrm", "can't read")],
)
def test_what_it_says_of_a_damaged_file_is_one_line(name: str, what: str, report: Path, tmp_path: Path) -> None:
    damaged = tmp_path / name
    damaged.write_bytes(report.read_bytes()[:1000])
    with pytest.raises(NotATraceError, match=f"{what} {name}: .*") as caught:
        open_trace(damaged)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_stale_export_beside_the_report_is_noticed_and_not_used(report: Path) -> None:
    import os

    export = report.with_suffix(".sqlite")
    export.write_text("an older one")
    os.utime(export, (1, 1))
    codes = {note.code: note.message for note in open_trace(report).notes}
    assert codes["export-older-than-report"].startswith("my loop.sqlite beside this report is older")


def test_a_report_can_be_scrubbed(report: Path, tmp_path: Path) -> None:
    out = tmp_path / "clean.sqlite"
    assert CliRunner().invoke(app, ["slice", str(report), str(out), "--scrub"]).exit_code == 0
    left = out.read_bytes()
    for secret in (b"/mnt/", b"HOME=", b"/usr/bin", b"nsys-launcher", b"Debian"):
        assert secret not in left
    assert sorted(open_trace(out).nvtx["text"]) == ["decode_step"] * 10 + ["verify"] * 10


def test_capture_runs_the_whole_way(tmp_path: Path, real_nsys: Path) -> None:
    stem = str(tmp_path / "sleep")
    words = ["capture", "--nsys", str(real_nsys), "--mode", "node", "--delay", "0", "--duration", "1", "--run"]
    done = CliRunner().invoke(app, [*words, "-o", stem, "--", "/bin/sleep", "2"])
    assert isinstance(done.exception, CannotAnswerError)
    assert str(done.exception) == "sleep.sqlite: no GPU activity recorded: nothing can be said about idle time"
    assert open_trace(tmp_path / "sleep.sqlite").info.nsys_version == "2023.4.4.54"
    assert (tmp_path / "sleep.nsys-rep").is_file()
