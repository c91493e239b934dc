"""`bubblefinder doctor`: what a capture is and what it can answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bubblefinder.cli.arguments import Capture
from bubblefinder.cli.output import stages


def doctor(
    trace: Capture,
    privacy: Annotated[
        bool, typer.Option("--privacy", help="List the kinds of personal data that the capture holds instead.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a capture is, and what it can and can't answer.

    The last line is the nsys command that would answer more, and what for.
    """
    if privacy:
        _privacy(trace, json=json)
        return
    from bubblefinder.render.doctor import print_examination
    from bubblefinder.report.examination import examine, render
    from bubblefinder.trace.open import open_trace

    with stages(quiet=False) as progress:
        examination = examine(open_trace(trace, progress=progress))
    if json:
        typer.echo(render(examination), nl=False)
    else:
        print_examination(examination)


def _privacy(trace: Path, *, json: bool) -> None:
    """Print the kinds of personal data that a capture holds, never the values."""
    from bubblefinder.share.personal import listed, personal_data, render
    from bubblefinder.trace.open import open_source

    with open_source(trace) as source:
        found = personal_data(source)
    if json:
        typer.echo(render(found), nl=False)
        return
    for line in listed(found):
        typer.echo(line)
