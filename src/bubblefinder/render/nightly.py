"""The files of a night."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.errors import UsageError
from bubblefinder.render.formats import write

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.compare.judge import Judged
    from bubblefinder.report.model import Report

REPORTS: Final = ("report.html", "report.json", "report.md")
VERDICTS: Final = ("budget.html", "budget.json", "budget.md", "budget.xml")


def make_folder(folder: Path) -> None:
    """Make the folder that the files go to.

    Raises:
        UsageError: it can't be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"there can be no folder {folder}: {error.strerror}", hint="name a folder for the reports, not a file"
        ) from error


def write_night(report: Report, judged: Judged, folder: Path) -> None:
    """Write the report and the verdict on it, each in every format that a night leaves behind."""
    for name in REPORTS:
        write("report", report, folder / name)
    for name in VERDICTS:
        write("budget", judged, folder / name)
