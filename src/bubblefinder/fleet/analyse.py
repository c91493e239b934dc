"""One capture, analysed where a worker runs: what comes back is small, plain and never an exception."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bubblefinder.errors import BubblefinderError
from bubblefinder.fleet.model import Failure, rows_of

if TYPE_CHECKING:
    from bubblefinder.fleet.model import Row


@dataclass(frozen=True, slots=True)
class Analysed:
    """What one capture gave: its rows and its report as JSON, or why not."""

    path: str
    rows: tuple[Row, ...] = ()
    report: bytes = b""
    failure: Failure | None = None


def analyse(path: str) -> Analysed:
    """Return what one capture gives; a capture that can't be read is a failure, not an error."""
    from bubblefinder.report.build import analyze_trace
    from bubblefinder.report.json import encode
    from bubblefinder.trace.open import open_trace

    try:
        trace = open_trace(path)
        report = analyze_trace(trace)
    except BubblefinderError as error:
        return Analysed(path, failure=Failure(path, str(error).splitlines()[0]))
    except MemoryError:
        return Analysed(path, failure=Failure(path, "out of memory"))
    return Analysed(path, tuple(rows_of(report, Path(path), trace.info.utc_ns)), encode(report))
