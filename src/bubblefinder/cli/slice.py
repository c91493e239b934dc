"""`bubblefinder slice`: a small export of some steps, safe to send if scrubbed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bubblefinder.cli.arguments import Capture, StepBy, Steps, Window, parse_steps, parse_window
from bubblefinder.cli.output import stages
from bubblefinder.units import plural


def slice(  # noqa: A001 - the command's name
    trace: Capture,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The export to write: .sqlite or .sqlite.xz.")],
    window: Window = None,
    steps: Steps = None,
    step_by: StepBy = None,
    scrub: Annotated[
        bool, typer.Option("--scrub", help="Leave out all that tells of people, machines and programs.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it exists.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print nothing.")] = False,
) -> None:
    """Write a part of a capture as an export of its own.

    It gives the figures and findings that `analyze` gives with the same --window or --steps. Without either the
    whole capture is written. docs/sharing.md says what --scrub keeps.
    """
    from bubblefinder.pipeline import Analysis
    from bubblefinder.share.slice import check_target, write_slice

    asked_window, asked_steps = parse_window(window), parse_steps(steps)
    check_target(out, force=force)
    with stages(quiet=quiet) as progress:
        part = write_slice(
            trace,
            out,
            lambda whole: Analysis(whole, asked_window, step_by, asked_steps).part,
            scrub=scrub,
            force=force,
            progress=progress,
        )
    if quiet:
        return
    held = f"{plural(len(part.operations), 'operation')}, {plural(len(part.calls), 'API call')}"
    typer.echo(f"wrote {out}: {held}, {out.stat().st_size / 1e3:,.0f} kB", err=True)
    if not scrub:
        typer.echo("It holds what `bubblefinder doctor --privacy` lists; --scrub leaves that out.", err=True)
