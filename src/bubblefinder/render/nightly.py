"""The whole nightly job: judge a report, store it, write everything, and answer with one exit code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.history import add, baseline
from bubblefinder.compare.judge import judge
from bubblefinder.compare.metrics import measurable
from bubblefinder.compare.store import open_store
from bubblefinder.errors import EXIT_GATE, UsageError
from bubblefinder.render.formats import encoded, render, write_whole

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from bubblefinder.compare.budget import BudgetFile
    from bubblefinder.compare.history import StoredRun
    from bubblefinder.compare.judge import Judged
    from bubblefinder.report.model import Report

REPORTS: Final = {"report.html": "html", "report.json": "json", "report.md": "markdown"}
VERDICTS: Final = {"budget.html": "html", "budget.json": "json", "budget.md": "markdown", "budget.xml": "junit"}


@dataclass(frozen=True, slots=True)
class Night:
    """What came out: the verdict, the stored run (null for a report without steps), and one exit code for both."""

    judged: Judged
    run: StoredRun | None

    @property
    def exit_code(self) -> int:
        """1 if a limit is broken or the run raised an alarm, else 3 if a limit couldn't be judged, else 0."""
        return EXIT_GATE if self.run and self.run.state == "alarm" else self.judged.exit_code


def nightly(report: Report, budgets: BudgetFile, history: Path, folder: Path, today: date) -> Night:
    """Judge the report against the budgets and the history, store it, and write every file.

    A report that broke a limit is stored as an alarm, so that it doesn't become the baseline.

    Raises:
        UsageError: the folder can't be made; nothing is stored then.
    """
    _make(folder)
    with open_store(history, create=True) as database:
        judged = judge(report, budgets, baseline(database, report), today)
        broken = judged.headline if judged.exit_code == EXIT_GATE else ""
        run = add(database, report, reason=broken) if measurable(report) else None
    for name, form in REPORTS.items():
        write_whole(folder / name, encoded(render("report", report, form)))
    for name, form in VERDICTS.items():
        write_whole(folder / name, encoded(render("budget", judged, form)))
    return Night(judged, run)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"there can be no folder {folder}: {error.strerror}", hint="name a folder for the reports, not a file"
        ) from error
