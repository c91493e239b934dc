"""Runs what was planned: the program under nsys, then the export of what nsys wrote."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from bubblefinder.ending import temporary_folder
from bubblefinder.errors import CannotAnswerError, UsageError
from bubblefinder.trace.nsys import Nsys, export_report, import_recording

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


def take(recording: Recording, nsys: Nsys, progress: Callable[[str], None]) -> Path:
    """Run the program under nsys, in this terminal, and return the export of what was recorded.

    Raises:
        CannotAnswerError: nothing was recorded.
        UsageError: nsys can't be run, or can't export what it recorded.
    """
    for stale in (recording.report, recording.raw, recording.export):
        stale.unlink(missing_ok=True)
    try:
        code = subprocess.run(recording.command, check=False).returncode
    except OSError as error:
        raise UsageError(
            f"{recording.command[0]} can't be run: {error.strerror}", hint="name it with --nsys"
        ) from error
    if recording.raw.exists() and not recording.report.exists() and nsys.importer:
        done = import_recording(nsys.importer, recording.raw, recording.report, progress)
        if not recording.report.exists():
            raise UsageError(
                f"{recording.raw.name} was recorded but can't be imported: {done.reason}",
                hint="keep the file: another machine's QdstrmImporter can turn it into a report",
            )
    if not recording.report.exists():
        raise CannotAnswerError(
            f"nothing was recorded (nsys exit {code})",
            hint="the program must call cudaProfilerStart while it decodes; or record by time with --delay",
        )
    return _exported(recording, nsys, progress)


def _exported(recording: Recording, nsys: Nsys, progress: Callable[[str], None]) -> Path:
    with temporary_folder(recording.export.parent, ".bubblefinder-") as place:
        part = place / recording.export.name
        done = export_report(nsys, recording.report, part, progress)
        if done.code or not part.exists():
            raise UsageError(f"{recording.report.name} can't be exported: {done.reason}", hint="the report is kept")
        part.replace(recording.export)
    return recording.export
