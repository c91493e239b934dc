"""Arguments and options that several commands take, declared once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Capture = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE", help="A SQLite export (also .xz, .gz, .zst), a parquetdir or arrowdir folder, or a .nsys-rep."
    ),
]
Outputs = Annotated[
    list[Path] | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write a report here; the suffix picks the format. May be repeated."
    ),
]
OutputFormat = Annotated[
    str | None,
    typer.Option(
        "-f", "--format", metavar="NAME", help="What to print: text, json, markdown, ... (see docs/formats.md)."
    ),
]
StepBy = Annotated[
    str | None,
    typer.Option(metavar="METHOD", help="How to find steps: nvtx:REGEX, kernel:REGEX, nvtx, cadence or sequence."),
]
Verbose = Annotated[
    int, typer.Option("-v", "--verbose", count=True, show_default=False, help="Print every quality note and every gap.")
]
