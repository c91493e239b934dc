"""`bubblefinder history`: runs over time, in one SQLite file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bubblefinder.cli.arguments import (
    HISTORY,
    Commit,
    HistoryFile,
    Label,
    Meta,
    OutputFiles,
    OutputFormat,
    Quiet,
    load_all,
    parse_meta,
)
from bubblefinder.cli.output import Outputs, say
from bubblefinder.compare.store import open_store
from bubblefinder.errors import EXIT_GATE, UsageError
from bubblefinder.units import plural

if TYPE_CHECKING:
    from bubblefinder.compare.history import PastRun

history = typer.Typer(help="Keep runs over time and find when they moved.", no_args_is_help=True, rich_markup_mode=None)

Only = Annotated[str | None, typer.Option(metavar="NAME", help="Only the runs of this label.")]
Number = Annotated[int, typer.Argument(metavar="RUN", help="The run's number, as `history list` shows it.")]


@history.command()
def add(
    capture: Annotated[Path, typer.Argument(metavar="REPORT", help="A report JSON, an HTML report or a capture.")],
    file: HistoryFile = HISTORY,
    label: Label = None,
    commit: Commit = None,
    meta: Meta = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing unless the run raises an alarm.")] = False,
) -> None:
    """Store a run. Exit 1 if a step got longer than the baseline by more than the noise."""
    from bubblefinder.compare.history import AGAIN
    from bubblefinder.compare.history import add as store
    from bubblefinder.compare.source import labelled
    from bubblefinder.report.model import DEFINITIONS

    told = parse_meta(meta)
    report = labelled(load_all([capture], quiet=quiet, launch_shapes=True)[0], label=label, commit=commit, meta=told)
    with open_store(file, create=True) as database:
        run = store(database, report)
    if run.state == "alarm" or not quiet:
        _say(_line(run))
    if report.definitions != DEFINITIONS:
        versions = f"the report follows definitions {report.definitions}, this bubblefinder {DEFINITIONS}"
        typer.echo(f"{versions}: {AGAIN}", err=True)
    raise typer.Exit(EXIT_GATE if run.state == "alarm" else 0)


@history.command("list")
def list_runs(file: HistoryFile = HISTORY, label: Only = None) -> None:
    """List the runs, oldest first."""
    from bubblefinder.compare.history import runs

    with open_store(file) as database:
        found = runs(database, label)
    for run in found:
        _say(_line(run))
    if not found:
        typer.echo("no runs")


@history.command()
def show(number: Number, file: HistoryFile = HISTORY) -> None:
    """Show what a run measured and where it came from."""
    from bubblefinder.compare.history import run, values
    from bubblefinder.compare.limit_syntax import format_limit
    from bubblefinder.compare.metrics import METRICS
    from bubblefinder.compare.sentences import place
    from bubblefinder.render.kit.sheet import Table
    from bubblefinder.render.kit.text import draw, page_width
    from bubblefinder.report.sentences import plain

    with open_store(file) as database:
        found, table = run(database, number), values(database, number)
    _say(_line(found))
    for name, fact in found.facts.items():
        _say(f"  {plain(name)}: {plain(fact)}")
    known = {key: value for key, value in table.items() if key[0] in METRICS}
    rows = [(f"{m}{place(dict(where))}", format_limit(v, METRICS[m].unit)) for (m, where), v in known.items()]
    typer.echo(draw(Table("Measured", ("metric", "value"), rows), page_width()))


@history.command()
def trend(
    metric: Annotated[str, typer.Argument(metavar="METRIC", help="A metric's id.")],
    file: HistoryFile = HISTORY,
    label: Only = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="The rank, role or severity, as in rank=1.")
    ] = None,
    output: OutputFiles = None,
    output_format: OutputFormat = None,
    quiet: Quiet = False,
) -> None:
    """Draw a metric over time. Say since which run it moved, and what else changed with it."""
    from bubblefinder.compare.trend import trend as find

    outputs = Outputs("trend", output_format, output, quiet=quiet)
    with open_store(file) as database:
        found = find(database, metric, label, parse_meta(where))
    outputs.emit(found)


@history.command()
def accept(number: Number, file: HistoryFile = HISTORY) -> None:
    """Take a run as the new normal: the baseline begins with it."""
    from bubblefinder.compare.history import accept as take

    with open_store(file, write=True) as database:
        _say(_line(take(database, number)))


@history.command()
def prune(
    keep: Annotated[int, typer.Option(metavar="N", min=1, help="How many of the newest runs of every label stay.")],
    file: HistoryFile = HISTORY,
) -> None:
    """Delete old runs."""
    from bubblefinder.compare.history import prune as delete

    with open_store(file, write=True) as database:
        typer.echo(f"{plural(delete(database, keep), 'run')} deleted")


@history.command()
def export(
    file: HistoryFile = HISTORY,
    label: Only = None,
    output_format: Annotated[str, typer.Option("-f", "--format", metavar="NAME", help="csv or json.")] = "csv",
) -> None:
    """Print every value of every run, one a line."""
    from bubblefinder.compare.history import COLUMNS, records
    from bubblefinder.render.kit import csv
    from bubblefinder.report import json

    if output_format not in {"csv", "json"}:
        raise UsageError(f"there is no format {output_format!r} for a history", hint="use csv or json")
    with open_store(file) as database:
        rows = list(records(database, label))
    typer.echo(json.render(rows) if output_format == "json" else csv.write(rows, COLUMNS), nl=False)


def _say(line: str) -> None:
    say(line, " " * 7)


def _line(run: PastRun) -> str:
    from bubblefinder.report.sentences import plain

    added = f"{run.added_at[:16].replace('T', ' ')} UTC"
    told = [f"run {run.id}", added, plain(run.label, 60), plain(run.commit, 40), plain(run.name, 80)]
    state = f"{run.state}: {plain(run.reason, 300)}" if run.reason else run.state
    return "  ".join([*(part for part in told if part), f"{run.steps} steps", state])
