"""`bubblefinder budget`: limits on what a step may take, and whether a capture keeps them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bubblefinder.cli.arguments import (
    Acceptance,
    Bench,
    Json,
    KnownLabel,
    OutputFiles,
    OutputFormat,
    Quiet,
    ReportUrl,
    load_all,
    results_of,
    today,
)
from bubblefinder.cli.output import Outputs, make_folder
from bubblefinder.errors import EXIT_GATE, UsageError

if TYPE_CHECKING:
    from bubblefinder.compare.baseline import Baseline
    from bubblefinder.report.model import Report

budget = typer.Typer(help="Propose and check budgets.", no_args_is_help=True, rich_markup_mode=None)


@budget.command()
def init(
    captures: Annotated[list[Path], typer.Argument(metavar="TRACE", help="Captures or reports of one program.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write the budget here instead of printing it."),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print no progress.")] = False,
) -> None:
    """Propose budgets that these runs keep. They leave room for the noise between captures."""
    from bubblefinder.compare.suggest_budget import suggest_budget
    from bubblefinder.render.formats import write_whole

    text = suggest_budget(load_all(captures, quiet=quiet))
    if output is None:
        typer.echo(text, nl=False)
        return
    make_folder(output)
    write_whole(output, text.encode())
    typer.echo(f"wrote {output}", err=True)


@budget.command()
def check(
    capture: Annotated[
        Path, typer.Argument(metavar="TRACE|REPORT", help="A capture, a report JSON or an HTML report.")
    ],
    budget_file: Annotated[Path, typer.Option("--budget", metavar="FILE", help="The budget file (TOML).")],
    baseline: Annotated[
        list[Path] | None,
        typer.Option(metavar="TRACE", help="Hold `regress` limits against this capture or report. May be repeated."),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Hold `regress` limits against the last comparable runs in this file."),
    ] = None,
    label: KnownLabel = None,
    bench: Bench = None,
    acceptance: Acceptance = None,
    output: OutputFiles = None,
    output_format: OutputFormat = None,
    json: Json = False,
    report_url: ReportUrl = "",
    quiet: Quiet = False,
) -> None:
    """Judge a capture. Exit 1 if a limit is broken, 3 if one can't be judged, 2 if the budget file is wrong."""
    from bubblefinder.compare.budget import load_budget
    from bubblefinder.compare.explain import change_since, excuse_of, explained
    from bubblefinder.compare.judge import judge
    from bubblefinder.compare.source import labelled
    from bubblefinder.report.economics_build import with_benches

    outputs = Outputs("budget", "json" if json else output_format, output, quiet=quiet)
    if baseline and history:
        raise UsageError("give --baseline or --history, not both")
    budgets = load_budget(budget_file)
    results = results_of(bench or (), acceptance)
    report, *earlier = load_all([capture, *(baseline or [])], quiet=quiet, launch_shapes=True)
    report = with_benches(labelled(report, label=label), results.benches)
    known, earlier = _baseline(report, earlier, history)
    change = change_since(earlier, report)
    known = replace(known, excuse=excuse_of(change)) if known else None
    judged = judge(report, budgets, known, today(), results)
    if judged.exit_code == EXIT_GATE:
        judged = explained(judged, report, change)
    outputs.emit(judged, url=report_url)
    raise typer.Exit(judged.exit_code)


def _baseline(report: Report, earlier: list[Report], history: Path | None) -> tuple[Baseline | None, list[Report]]:
    """Return what the report is held against, and the reports behind it."""
    from bubblefinder.compare.baseline import of_reports
    from bubblefinder.compare.history import baseline, normal_reports
    from bubblefinder.compare.store import open_store
    from bubblefinder.report.sentences import plain

    if earlier:
        return of_reports(earlier, report), earlier
    if history is None:
        return None, []
    with open_store(history) as database:
        known, kept = baseline(database, report), normal_reports(database, report)
    if not known.captures:
        why = known.unlike or "name the runs to take with --label"
        typer.echo(f"no run in {history} is comparable with this one: {plain(why, 300)}", err=True)
    return known, kept
