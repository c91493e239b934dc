"""`bubblefinder nightly`: the whole job in one line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bubblefinder.cli.arguments import (
    HISTORY,
    Acceptance,
    Bench,
    Commit,
    HistoryFile,
    Label,
    Meta,
    ReportUrl,
    load_all,
    parse_meta,
    results_of,
    today,
)
from bubblefinder.cli.output import make_folder
from bubblefinder.errors import BubblefinderError

if TYPE_CHECKING:
    from bubblefinder.compare.history import Failure
    from bubblefinder.compare.judge import Judged
    from bubblefinder.compare.nightly import NightlyResult
    from bubblefinder.report.model import Report

REPORTS: Final = ("report.html", "report.json", "report.md")
CHANGES: Final = ("diff.html", "diff.json", "diff.md")
VERDICTS: Final = ("budget.html", "budget.json", "budget.md", "budget.xml")


def nightly(
    capture: Annotated[Path, typer.Argument(metavar="TRACE", help="A capture, a report JSON or an HTML report.")],
    budget: Annotated[Path, typer.Option(metavar="FILE", help="The budget file (TOML).")],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", help="The folder to write HTML, Markdown, JUnit and JSON to."),
    ],
    history: HistoryFile = HISTORY,
    label: Label = None,
    commit: Commit = None,
    meta: Meta = None,
    bench: Bench = None,
    acceptance: Acceptance = None,
    report_url: ReportUrl = "",
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but the verdict.")] = False,
) -> None:
    """Analyse, judge, store and report. Exit 1 for a broken limit or an alarm, 3 if a limit can't be judged."""
    from bubblefinder.compare.budget import load_budget
    from bubblefinder.compare.history import Failure
    from bubblefinder.compare.nightly import nightly as judge_night
    from bubblefinder.compare.source import labelled
    from bubblefinder.report.economics_build import with_benches
    from bubblefinder.report.sentences import plain

    make_folder(output / REPORTS[0])
    try:
        budgets = load_budget(budget)
        results = results_of(bench or (), acceptance)
        told = parse_meta(meta)
        report = load_all([capture], quiet=quiet, launch_shapes=True)[0]
        report = labelled(report, label=label, commit=commit, meta=told)
        report = with_benches(report, results.benches)
        night = judge_night(report, budgets, history, today(), results)
    except BubblefinderError as error:
        _failed(error, Failure(capture.name, str(error), label, commit), history, output, report_url)
        raise
    _write(report, night, output, report_url)
    typer.echo(night.judged.headline)
    if night.judged.cause:
        typer.echo(f"Cause: {plain(night.judged.cause, 600).rstrip('.')}.")
    if night.run.state == "alarm":
        typer.echo(_alarm(night))
    if not quiet:
        typer.echo(f"run {night.run.id} stored in {history}, reports in {output}", err=True)
    raise typer.Exit(night.judged.exit_code)


def _alarm(night: NightlyResult) -> str:
    """Return why the run raised an alarm, unless the verdict says it, and what to do if it is as it should be."""
    from bubblefinder.report.sentences import plain

    number, reason = night.run.id, plain(night.run.reason, 300).rstrip(".")
    why = "" if reason in night.judged.headline else f": {reason}"
    return f"Run {number} raised an alarm{why}. If it is the new normal: bubblefinder history accept {number}"


def _failed(error: BubblefinderError, failure: Failure, history: Path, output: Path, url: str) -> None:
    """Leave the reason where the verdict would be; what an earlier night left of a report goes."""
    from bubblefinder.compare.nightly import failed_night

    for name in (*REPORTS, *CHANGES):
        (output / name).unlink(missing_ok=True)
    _write_verdict(failed_night(error, failure, history), output, url)


def _write(report: Report, night: NightlyResult, folder: Path, url: str) -> None:
    """Write the report, the verdict on it and what changed since the last runs, each in the formats of a night."""
    from bubblefinder.render.formats import write

    for name in REPORTS:
        write("report", report, folder / name, url=url)
    for name in CHANGES:
        if night.change:
            write("diff", night.change, folder / name, url=url)
        else:
            (folder / name).unlink(missing_ok=True)
    _write_verdict(night.judged, folder, url)


def _write_verdict(judged: Judged, folder: Path, url: str) -> None:
    from bubblefinder.render.formats import write

    for name in VERDICTS:
        write("budget", judged, folder / name, url=url)
