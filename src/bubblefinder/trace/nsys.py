"""An installed Nsight Systems: where it is, which version, and how to have it import and export."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Timer
from typing import TYPE_CHECKING, Final

from bubblefinder.ending import begun
from bubblefinder.errors import InputError
from bubblefinder.trace.quality import scrubbed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOTS: Final = (Path("/opt"), Path("/usr/local"), Path("/usr/lib"))
"""Where Nsight Systems, CUDA and Nsight Compute, which brings one along, are installed."""

_PLACES: Final = (
    "nsight-systems/**/target-linux-*/nsys",
    "nvidia/nsight-systems/**/target-linux-*/nsys",
    "nvidia/nsight-compute/**/target-linux-*/nsys",
    "cuda*/nsight-systems*/**/target-linux-*/nsys",
    "cuda*/nsight-compute*/**/target-linux-*/nsys",
)
_IMPORTERS: Final = "*linux*/QdstrmImporter"
_VERSION: Final = re.compile(r"version (\d{4})\.(\d+)")
_PERCENT: Final = re.compile(r"(\d+)%")
_PROGRESS: Final = re.compile(r"^(?:\[\d+/\d+\]|Processing \d+ events:|Importing).*%|^\W*$")
_TELLING: Final = re.compile(r"error|newer|mismatch|cannot|can't|failed|denied", re.IGNORECASE)
_LIBRARY: Final = re.compile(r"error while loading shared libraries: ([\w.+-]+)")
_CHUNK: Final = 4096
_ENOUGH: Final = 64 << 10
_PATIENCE_S: Final = 3600

TABLES: Final = (
    "StringIds", "CUPTI_ACTIVITY_KIND_.*", "CUDA_.*", "NVTX_.*", "PROFILER_OVERHEAD.*", "OSRT_API.*", "SCHED_EVENTS.*",
    "ThreadNames", "PROCESSES", "TARGET_INFO_.*", "ANALYSIS_DETAILS", "DIAGNOSTIC_EVENT.*", "META_DATA_.*", "ENUM_.*",
)  # fmt: skip
"""Patterns, each for a whole name, of the tables that are read. The large ones left out are of samples and metrics."""
_SINCE_TABLES: Final = (2023, 4)
"""The first version seen to know ``--tables``; 2022.4 doesn't."""


@dataclass(frozen=True, slots=True)
class Nsys:
    """An installed Nsight Systems.

    Attributes:
        command: the nsys command.
        importer: QdstrmImporter, which turns raw recordings into reports; null where there is none.
        version: year and number, as in (2025, 3); empty if the command doesn't say.
    """

    command: Path
    importer: Path | None
    version: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Done:
    """A tool that ran: its exit code, and on one line why it failed as far as it says."""

    code: int
    reason: str


def installed_nsys(given: Path | None = None) -> Nsys | None:
    """Return the Nsight Systems to use: the one given, the one on PATH, or one installed where they usually are."""
    on_path = shutil.which("nsys")
    found = given or (Path(on_path) if on_path else None)
    found = found or next((place for place in _places() if os.access(place, os.X_OK)), None)
    if found is None or not found.is_file():
        return None
    importers = (tool for link in _links(found) for tool in sorted(link.parent.parent.glob(_IMPORTERS)))
    return Nsys(found.resolve(), next(importers, None), _version(found))


def _places() -> Iterator[Path]:
    """Yield installed commands, the newest of each kind first."""
    for root in ROOTS:
        for pattern in _PLACES:
            yield from sorted(root.glob(pattern), reverse=True)


def _links(path: Path) -> Iterator[Path]:
    """Yield a path and all that it links to in turn: what lies beside a command lies beside one of these."""
    for _ in range(8):
        yield path
        if not path.is_symlink():
            break
        path = path.parent / path.readlink()
    yield path.resolve()


def _version(command: Path) -> tuple[int, ...]:
    try:
        said = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ()
    found = _VERSION.search(said)
    return (int(found[1]), int(found[2])) if found else ()


def export_report(nsys: Nsys, report: Path, database: Path, progress: Callable[[str], None]) -> Done:
    """Have a report exported to SQLite: only the tables that are read, where the version can."""
    tables = ["--tables", ",".join(TABLES)] if nsys.version >= _SINCE_TABLES else []
    command = [str(nsys.command), "export", "--type", "sqlite", "--output", str(database), *tables, str(report)]
    return run_tool(command, "export", progress)


def import_recording(importer: Path, recording: Path, report: Path, progress: Callable[[str], None]) -> Done:
    """Have a raw recording turned into a report; the importer brings some of its libraries along."""
    libraries = ":".join(filter(None, (str(importer.parent), os.environ.get("LD_LIBRARY_PATH"))))
    command = [str(importer), "-i", str(recording), "-o", str(report)]
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
    done = run_tool(command, "import", progress, environment)
    # The importer of 2023.4 was seen to crash once in some dozen runs of one recording, and not when run again.
    return run_tool(command, "import", progress, environment) if done.code < 0 else done


def run_tool(
    command: list[str], stage: str, progress: Callable[[str], None], environment: Mapping[str, str] | None = None
) -> Done:
    """Run a tool and tell how far it is.

    Raises:
        InputError: it can't be run, or isn't done within an hour.
    """
    name = Path(command[0]).name
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment) as tool:
            late = Event()

            def stop() -> None:
                late.set()
                tool.kill()

            patience = Timer(_PATIENCE_S, stop)
            patience.start()
            try:
                with begun(tool.kill):
                    said = _followed(tool, stage, progress)
            finally:
                patience.cancel()  # Python ends only behind its threads: an interrupted run would wait for the hour
    except OSError as error:
        raise InputError(
            f"{name} can't be run: {error.strerror or error}", hint="run it yourself to see more"
        ) from error
    if late.is_set():
        raise InputError(f"{name} {stage} did not finish within an hour", hint="run it by hand")
    return Done(tool.returncode, _reason(said, tool.returncode))


def _followed(tool: subprocess.Popen[bytes], stage: str, progress: Callable[[str], None]) -> str:
    """Read what a tool says until it ends, and return the last of it."""
    said, pipe = b"", tool.stdout
    while pipe is not None and (chunk := os.read(pipe.fileno(), _CHUNK)):
        said = (said + chunk)[-_ENOUGH:]
        if percent := _PERCENT.findall(chunk.decode(errors="replace")):
            progress(f"{stage} {percent[-1]} %")
    return said.decode(errors="replace")


def _reason(said: str, code: int) -> str:
    """Return the last telling thing that a tool said, on one line."""
    if library := _LIBRARY.search(said):
        return f"it needs {library[1]}, which is neither installed here nor in a folder of LD_LIBRARY_PATH"
    lines = [line.strip() for line in re.split(r"[\r\n]+", said) if not _PROGRESS.match(line.strip())]
    reasons = [line for line in lines if _TELLING.search(line)] or lines or [f"exit code {code}"]
    return scrubbed(reasons[-1])
