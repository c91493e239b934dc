"""`bubblefinder report`: another format from a report, without the capture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bubblefinder.cli.options import OutputFormat, Outputs, Verbose


def report(
    source: Annotated[
        Path, typer.Argument(metavar="REPORT", help="A report that bubblefinder wrote: .json, or the .html page.")
    ],
    output: Outputs = None,
    output_format: OutputFormat = None,
    report_url: Annotated[
        str, typer.Option(metavar="URL", help="Where the full report can be read; Markdown links to it.")
    ] = "",
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="With -o, print no summary.")] = False,
    verbose: Verbose = 0,
) -> None:
    """Render a report again, in any format, without the trace."""
    from bubblefinder.cli.output import check_format, check_outputs, emit
    from bubblefinder.report.read import read_report

    form = check_format(output_format)
    check_outputs(output or [])
    known = read_report(source)
    emit(known, form, output or [], quiet=quiet, verbose=bool(verbose), report_url=report_url)
