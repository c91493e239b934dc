"""Nsight Systems command lines: record a program's profiler range and export it to SQLite."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bubblefinder.errors import UsageError
from bubblefinder.trace.nsys import Nsys, installed_nsys

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

GraphMode = Literal["graph", "node"]
_TIMEOUT_S = 600


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
    return [
        str(nsys.command),
        "profile",
        *options,
        f"--cuda-graph-trace={mode}",
        "-f",
        "true",
        "-o",
        str(output),
        *program,
    ]


def record(
    nsys: Nsys, output: Path, mode: GraphMode, program: Sequence[str], environment: Mapping[str, str] | None = None
) -> Path:
    """Record `program` and return the export, `output` with the suffix .sqlite.

    Raises:
        UsageError: Nsight Systems or the program failed; the message holds the end of what it said.
    """
    variables = {**os.environ, **(environment or {})}
    report, raw, export = (output.with_suffix(suffix) for suffix in (".nsys-rep", ".qdstrm", ".sqlite"))
    _run(profile_command(nsys, output, mode, program), variables, (report, raw))
    if not report.exists() and nsys.importer:
        libraries = ":".join(filter(None, (str(nsys.importer.parent), variables.get("LD_LIBRARY_PATH"))))
        _run(
            [str(nsys.importer), "-i", str(raw), "-o", str(report), "-f"],
            {**variables, "LD_LIBRARY_PATH": libraries},
            (report,),
        )
    _run(
        [str(nsys.command), "export", "-q", "true", "--type", "sqlite", "-f", "true", "-o", str(export), str(report)],
        variables,
        (export,),
    )
    return export


def _run(command: list[str], variables: dict[str, str], written: tuple[Path, ...]) -> None:
    """Run `command`; what it wrote tells success, since `nsys profile` hands on the exit status of the program."""
    try:
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(
            f"{Path(command[0]).name} couldn't be run: {error}", hint="Run the command yourself to see more."
        ) from error
    if not any(path.exists() for path in written):
        tail = " ".join((done.stdout + done.stderr).split())[-400:]
        raise UsageError(
            f"{Path(command[0]).name} {command[1]} wrote nothing: {tail}", hint="Run the command yourself to see more."
        )
