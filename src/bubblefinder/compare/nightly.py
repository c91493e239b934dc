"""The verdict of a night: a report judged against its budgets and the history, and stored there."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.explain import change_since, excuse_of, explained, stalls_in
from bubblefinder.compare.history import AGAIN, Failure, PastRun, add, add_failed, baseline, normal_reports
from bubblefinder.compare.judge import NO_BASELINE, SCHEMA, Judged, judge
from bubblefinder.compare.metrics import measurable
from bubblefinder.compare.store import open_store
from bubblefinder.errors import EXIT_GATE, EXIT_INPUT, EXIT_OK, BubblefinderError

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from bubblefinder.compare.baseline import Baseline
    from bubblefinder.compare.budget import BudgetFile
    from bubblefinder.compare.model import Diff
    from bubblefinder.compare.scenario import Results
    from bubblefinder.report.model import Report


FIRST: Final = "Nothing, if that is meant: the next run of this kind is held against this one."


@dataclass(frozen=True, slots=True)
class NightlyResult:
    """What came out: the verdict, the stored run, and what changed since the last runs (null without any).

    The verdict's exit code is 1 if a limit is broken or the run raised an alarm, else 3 if something couldn't be
    judged, else 0.
    """

    judged: Judged
    run: PastRun
    change: Diff | None


def nightly(
    report: Report, budgets: BudgetFile, history: Path, today: date, results: Results | None = None
) -> NightlyResult:
    """Judge the report against the budgets and the history, say what explains a failure, and store it.

    A report that broke a limit is stored as an alarm, so that it doesn't become the baseline; one without measured
    steps as a failed run.
    """
    with open_store(history, create=True) as database:
        change = change_since(normal_reports(database, report), report) if measurable(report) else None
        excuse = excuse_of(change)
        normal = replace(baseline(database, report), excuse=excuse)
        judged = judge(report, budgets, normal, today, results)
        if measurable(report):
            broken = judged.headline.removeprefix("Fail: ") if judged.exit_code == EXIT_GATE else ""
            run = add(database, report, reason=broken or stalls_in(change), excuse=excuse)
        else:
            reason = judged.headline.removeprefix("Can't tell: ")
            run = add_failed(database, report, Failure(judged.name, reason, judged.label, judged.commit))
    judged = _with_run(judged, run, normal if measurable(report) else None)
    failed = judged.exit_code == EXIT_GATE
    return NightlyResult(explained(judged, report, change) if failed else judged, run, change)


def _with_run(judged: Judged, run: PastRun, normal: Baseline | None) -> Judged:
    """Return the verdict with what the history says of the run: an alarm, a doubt, or that it is of another kind.

    Args:
        judged: the verdict on its limits.
        run: as it was stored.
        normal: what it was held against; null where it measured nothing.
    """
    code, reason = judged.exit_code, (run.reason or "").rstrip(".")
    if run.state == "alarm" and code != EXIT_GATE:
        judged = replace(judged, exit_code=EXIT_GATE, headline=f"Alarm: {reason}.")
    elif run.state in {"failed", "unsure"} and code == EXIT_OK:
        judged = replace(judged, exit_code=EXIT_INPUT, headline=f"Can't tell: {reason}.")
    if normal is None or normal.captures:
        return judged
    if NO_BASELINE in judged.headline and AGAIN not in normal.unlike:
        judged = replace(judged, remedy=judged.remedy or FIRST)
    if not normal.unlike or normal.unlike in judged.headline:
        return judged
    return replace(judged, warnings=[*judged.warnings, f"Nothing to compare this run with: {normal.unlike}."])


def failed_night(error: BubblefinderError, failure: Failure, history: Path) -> Judged:
    """Return that a night failed before anything was measured as a verdict, stored too if the history can hold it."""
    with suppress(BubblefinderError), open_store(history, create=True) as database:
        add_failed(database, None, failure)
    return Judged(
        schema=SCHEMA,
        name=failure.name,
        label=failure.label,
        commit=failure.commit,
        steps=0,
        baseline=None,
        exit_code=error.exit_code,
        headline=f"Can't tell: {str(error).rstrip('.')}.",
        remedy=f"{error.hint[:1].upper()}{error.hint[1:]}" or None,
    )
