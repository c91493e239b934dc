"""The files of a night."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.render.formats import write

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.compare.judge import Judged
    from bubblefinder.compare.nightly import NightlyResult
    from bubblefinder.report.model import Report

REPORTS: Final = ("report.html", "report.json", "report.md")
CHANGES: Final = ("diff.html", "diff.json", "diff.md")
VERDICTS: Final = ("budget.html", "budget.json", "budget.md", "budget.xml")


def write_night(report: Report, night: NightlyResult, folder: Path, url: str = "") -> None:
    """Write the report, the verdict on it and what changed since the last runs, each in the formats of a night."""
    for name in REPORTS:
        write("report", report, folder / name, url=url)
    for name in CHANGES:
        if night.change:
            write("diff", night.change, folder / name, url=url)
        else:
            (folder / name).unlink(missing_ok=True)
    _write_verdict(night.judged, folder, url)


def write_failure(judged: Judged, folder: Path, url: str = "") -> None:
    """Write the verdict on a night that measured nothing; what an earlier night left of a report goes."""
    for name in (*REPORTS, *CHANGES):
        (folder / name).unlink(missing_ok=True)
    _write_verdict(judged, folder, url)


def _write_verdict(judged: Judged, folder: Path, url: str) -> None:
    for name in VERDICTS:
        write("budget", judged, folder / name, url=url)
