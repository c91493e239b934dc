"""Where a report goes: standard output, files, and the exit code that says whether it could answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from bubblefinder.errors import CannotAnswerError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.report.model import Report


def check_format(name: str | None) -> str:
    """Return the format to print.

    Raises:
        UsageError: there is no such format.
    """
    from bubblefinder.render.formats import FORMATS

    if name is not None and name not in FORMATS:
        raise UsageError(f"there is no format {name!r}", hint="use one of " + " ".join(FORMATS))
    return name or "text"


def check_severity(name: str | None) -> tuple[str, ...]:
    """Return the severities that fail a run with --fail-on NAME: that one and the worse ones.

    Raises:
        UsageError: there is no such severity.
    """
    known = ("high", "medium", "low")
    if name is not None and name not in known:
        raise UsageError(f"--fail-on {name!r} is not a severity", hint="use low, medium or high")
    return () if name is None else known[: known.index(name) + 1]


def check_outputs(paths: list[Path]) -> None:
    """Refuse outputs that can't be written before the capture is loaded.

    Raises:
        UsageError: an unknown suffix or a missing folder.
    """
    from bubblefinder.render.formats import format_for

    for path in paths:
        format_for(path)
        if not path.parent.is_dir():
            raise UsageError(f"there is no folder {str(path.parent)!r} to write {path.name!r} to")


def emit(report: Report, form: str, paths: list[Path], *, quiet: bool, verbose: bool, report_url: str = "") -> None:
    """Write the files, print the report, and say by exception that the capture couldn't answer.

    Markdown links to the full report at `report_url`.

    Raises:
        CannotAnswerError: graph work is missing from the export, so there is no bubble to tell.
    """
    from bubblefinder.render.formats import write

    for path in paths:
        write(report, path, report_url=report_url)
    if not (quiet and paths):
        print_report(report, form, verbose=verbose, report_url=report_url)
    for path in paths:
        if not quiet:
            typer.echo(f"wrote {path}", err=True)
    if report.trace.capture_mode == "unseen":
        raise CannotAnswerError(
            "the export lacks the GPU work of its CUDA graph launches, so no bubble can be told",
            hint="export the .nsys-rep again with Nsight Systems 2024.2 or newer, "
            "or capture with --cuda-graph-trace=node",
        )


def print_report(report: Report, form: str, *, verbose: bool, report_url: str = "") -> None:
    """Print a report: text as wide as the terminal and coloured if it is one, other formats as they are."""
    from bubblefinder.render.formats import render

    if form == "text":
        from bubblefinder.render.report.text import print_text

        print_text(report, verbose=verbose)
        return
    content = render(report, form, report_url=report_url)
    sys.stdout.buffer.write(content.encode() if isinstance(content, str) else content)
    if isinstance(content, str) and not content.endswith("\n"):
        sys.stdout.buffer.write(b"\n")
    sys.stdout.flush()
