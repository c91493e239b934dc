"""`bubblefinder nightly`: the whole job in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def nightly(
    capture: Annotated[Path, typer.Argument(metavar="TRACE", help="A capture, a report JSON or an HTML report.")],
    budget: Annotated[Path, typer.Option("--budget", metavar="FILE", help="The budget file (TOML).")],
    history: Annotated[
        Path,
        typer.Option(
            "--history", metavar="FILE", envvar="BUBBLEFINDER_HISTORY", help="The history file; made if it isn't there."
        ),
    ],
    output: Annotated[
        Path,
        typer.Option("-o", "--output", metavar="DIR", help="The folder to write HTML, Markdown, JUnit and JSON to."),
    ],
    label: Annotated[
        str | None, typer.Option(metavar="NAME", help="What was run; only runs of one label are compared.")
    ] = None,
    commit: Annotated[str | None, typer.Option(metavar="SHA", help="The commit that was captured.")] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing but the verdict.")] = False,
) -> None:
    """Analyse, judge, store and report. Exit 1 for a broken limit or an alarm, 3 if a limit can't be judged."""
    from bubblefinder.cli.arguments import load_all, today
    from bubblefinder.compare.budget import load_budget
    from bubblefinder.compare.nightly import nightly as judge_night
    from bubblefinder.compare.source import labelled
    from bubblefinder.render.nightly import make_folder, write_night
    from bubblefinder.report.sentences import plain

    budgets = load_budget(budget)
    report = labelled(load_all([capture], quiet=quiet)[0], label=label, commit=commit)
    make_folder(output)
    night = judge_night(report, budgets, history, today())
    write_night(report, night.judged, output)
    typer.echo(night.judged.headline)
    if night.run and night.run.state == "alarm":
        typer.echo(f"Run {night.run.id} raised an alarm: {plain(night.run.reason, 300)}")
    if not quiet:
        stored = f"run {night.run.id} stored in {history}" if night.run else "nothing to store"
        typer.echo(f"{stored}, reports in {output}", err=True)
    raise typer.Exit(night.exit_code)
