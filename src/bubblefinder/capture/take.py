"""Runs what was planned: the program under nsys, then the export of what nsys wrote."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from bubblefinder.ending import temporary_folder
from bubblefinder.errors import CannotAnswerError, InputError, UsageError
from bubblefinder.trace.nsys import Done, Nsys, export_report, import_recording, installed_nsys, run_tool

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bubblefinder.capture.plan import Plan, Recording, Wish


def check_free(plan: Plan, wish: Wish) -> None:
    """Refuse to replace files.

    Raises:
        UsageError: a file is there and may not be replaced, or its folder is missing.
    """
    if not wish.stem.parent.is_dir():
        raise UsageError(f"there is no folder {str(wish.stem.parent)!r} to write {wish.stem.name!r} to")
    files = [file for one in plan.recordings for file in (one.report, one.raw, one.export)]
    taken = next((file for file in (*files, wish.functions) if file.exists()), None)
    if taken and not wish.force:
        raise UsageError(f"{taken} exists", hint="give another name with -o, or --force to replace it")


def find_nsys(given: Path | None = None) -> Nsys:
    """Return the Nsight Systems to use, see `trace.nsys.installed_nsys`.

    Raises:
        UsageError: there is none, or the given path is no file.
    """
    found = installed_nsys(given)
    if found is None:
        raise UsageError("Nsight Systems wasn't found", hint="install it, or name the command with --nsys PATH")
    return found


def take(recording: Recording, nsys: Nsys, progress: Callable[[str], None], *, is_shown: bool = True) -> Path:
    """Run the program under nsys and return the export of what was recorded.

    What was written tells success, since `nsys profile` hands on the exit status of the program.

    Args:
        recording: what to run, and where its files go.
        nsys: the Nsight Systems that imports and exports.
        progress: told how far these are.
        is_shown: the program has this terminal; else only an error says what it said last.

    Raises:
        CannotAnswerError: nothing was recorded.
        InputError: nsys can't be run.
        UsageError: nsys can't import or export what it recorded.
    """
    for stale in (recording.report, recording.raw, recording.export):
        stale.unlink(missing_ok=True)
    run = _run_here if is_shown else run_tool
    said = run(list(recording.command), "profile", progress).reason
    if recording.raw.exists() and not recording.report.exists() and nsys.importer:
        done = import_recording(nsys.importer, recording.raw, recording.report, progress)
        if not recording.report.exists():
            raise UsageError(
                f"{recording.raw.name} was recorded but can't be imported: {done.reason}",
                hint="keep the file: another machine's QdstrmImporter can turn it into a report",
            )
    if not recording.report.exists():
        raise CannotAnswerError(
            f"nothing was recorded ({said})",
            hint="the program must call cudaProfilerStart while it decodes; or record by time with --delay",
        )
    return _exported(recording, nsys, progress)


def _run_here(command: list[str], _stage: str, _progress: Callable[[str], None]) -> Done:
    """Run a tool in this terminal."""
    try:
        code = subprocess.run(command, check=False).returncode
    except OSError as error:
        raise InputError(f"{command[0]} can't be run: {error.strerror}", hint="name it with --nsys") from error
    return Done(code, f"nsys exit {code}")


def _exported(recording: Recording, nsys: Nsys, progress: Callable[[str], None]) -> Path:
    with temporary_folder(recording.export.parent, ".bubblefinder-") as place:
        part = place / recording.export.name
        done = export_report(nsys, recording.report, part, progress)
        if done.code or not part.exists():
            raise UsageError(f"{recording.report.name} can't be exported: {done.reason}", hint="the report is kept")
        part.replace(recording.export)
    return recording.export
