"""Nsight Systems command lines: record a program's profiler range and export it to SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from bubblefinder.errors import UsageError
from bubblefinder.trace.nsys import Nsys, export_report, import_recording, installed_nsys, run_tool

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

GraphMode = Literal["graph", "node"]


def find_nsys(given: Path | None = None) -> Nsys:
    """Return the Nsight Systems to use, see `trace.nsys.installed_nsys`.

    Raises:
        UsageError: there is none, or the given path is no file.
    """
    found = installed_nsys(given)
    if found is None:
        raise UsageError("Nsight Systems wasn't found", hint="install it, or name the command with --nsys PATH")
    return found


def profile_command(nsys: Nsys, output: Path, mode: GraphMode, program: Sequence[str]) -> list[str]:
    """Return the command that records the profiler range of `program`; `output` has no suffix."""
    options = ["-c", "cudaProfilerApi", "--capture-range-end=stop", "--sample=none", "--cpuctxsw=none", "--trace=cuda"]
    written = [f"--cuda-graph-trace={mode}", "-f", "true", "-o", str(output)]
    return [str(nsys.command), "profile", *options, *written, *program]


def record(nsys: Nsys, output: Path, mode: GraphMode, program: Sequence[str]) -> Path:
    """Record `program` and return the export, `output` with the suffix .sqlite.

    What was written tells success, since `nsys profile` hands on the exit status of the program.

    Raises:
        InputError: Nsight Systems can't be run.
        UsageError: Nsight Systems or the program failed; the message holds the end of what it said.
    """
    report, raw, export = (output.with_suffix(suffix) for suffix in (".nsys-rep", ".qdstrm", ".sqlite"))
    done = run_tool(profile_command(nsys, output, mode, program), "profile", _silent)
    if raw.exists() and not report.exists() and nsys.importer:
        done = import_recording(nsys.importer, raw, report, _silent)
    if report.exists():
        done = export_report(nsys, report, export, _silent)
    if not export.exists():
        raise UsageError(f"nsys wrote nothing: {done.reason}", hint="run the command yourself to see more")
    return export


def _silent(_: str) -> None:
    """Show no progress."""
