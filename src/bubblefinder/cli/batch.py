"""`bubblefinder batch`: many captures at once, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bubblefinder.cli.output import say
from bubblefinder.errors import EXIT_INPUT, UsageError


def batch(
    places: Annotated[
        list[str], typer.Argument(metavar="DIR|GLOB", help="Folders, files or patterns such as 'runs/*.sqlite'.")
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="DIR", help="The folder for reports and tables; taken up if it is there."
        ),
    ],
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Processes on this machine (default: one a core).")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A dask scheduler that runs already, as in tcp://host:8786.")
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print only the verdict.")] = False,
) -> None:
    """Analyse many captures and put them side by side.

    In folders, captures are told by their names: .sqlite, also packed, .nsys-rep, .qdrep, _pqtdir and
    _arwdir. One that can't be read is reported and stops nothing. What is there already is not analysed
    again. Exit 3 if no capture could be read.
    """
    from bubblefinder.fleet.batch import Workers
    from bubblefinder.fleet.batch import batch as run
    from bubblefinder.fleet.find import find_captures
    from bubblefinder.render.fleet import line, sheet
    from bubblefinder.render.formats import write

    if workers and scheduler:
        raise UsageError("--workers and --scheduler exclude each other", hint="a scheduler has workers of its own")
    paths = find_captures(places)
    fleet = run(
        paths, output, Workers(number=workers, scheduler=scheduler), lambda done: None if quiet else say(line(done))
    )
    for name in ("fleet.html", "fleet.md", "fleet.json", "fleet.parquet"):
        write("fleet", fleet, output / name)
    say(sheet(fleet).headline)
    typer.echo(f"wrote {output / 'fleet.html'} and a report for each capture", err=True)
    if not fleet.rows:
        raise typer.Exit(EXIT_INPUT)
