"""`bubblefinder report`: another format from a report, without the capture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bubblefinder.cli.arguments import Json, OutputFiles, OutputFormat, ReportUrl, Verbose, refuse_untold
from bubblefinder.cli.output import Outputs


def report(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="REPORT", help="A report that bubblefinder wrote: .json, or the .html page; - for stdin."
        ),
    ],
    output: OutputFiles = None,
    output_format: OutputFormat = None,
    json: Json = False,
    report_url: ReportUrl = "",
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="With -o, print no summary.")] = False,
    verbose: Verbose = 0,
) -> None:
    """Render a report again, in any format, without the trace."""
    from bubblefinder.report.json import read_report

    outputs = Outputs("report", "json" if json else output_format, output, quiet=quiet)
    known = read_report(source)
    outputs.emit(known, url=report_url, verbose=bool(verbose))
    refuse_untold(known)
