"""The verdict of a night: a report judged against its budgets and the history, and stored there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubblefinder.compare.history import add, baseline
from bubblefinder.compare.judge import judge
from bubblefinder.compare.metrics import measurable
from bubblefinder.compare.store import open_store
from bubblefinder.errors import EXIT_GATE

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from bubblefinder.compare.budget import BudgetFile
    from bubblefinder.compare.history import StoredRun
    from bubblefinder.compare.judge import Judged
    from bubblefinder.report.model import Report


@dataclass(frozen=True, slots=True)
class NightlyResult:
    """What came out: the verdict, the stored run (null for a report without steps), and one exit code for both."""

    judged: Judged
    run: StoredRun | None

    @property
    def exit_code(self) -> int:
        """1 if a limit is broken or the run raised an alarm, else 3 if a limit couldn't be judged, else 0."""
        return EXIT_GATE if self.run and self.run.state == "alarm" else self.judged.exit_code


def nightly(report: Report, budgets: BudgetFile, history: Path, today: date) -> NightlyResult:
    """Judge the report against the budgets and the history, and store it.

    A report that broke a limit is stored as an alarm, so that it doesn't become the baseline.
    """
    with open_store(history, create=True) as database:
        judged = judge(report, budgets, baseline(database, report), today)
        broken = judged.headline if judged.exit_code == EXIT_GATE else ""
        run = add(database, report, reason=broken) if measurable(report) else None
    return NightlyResult(judged, run)
