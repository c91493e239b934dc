"""One capture of many, analysed where a worker runs: what comes back is small and plain, and a failure is no error."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bubblefinder.errors import EXIT_INPUT, EXIT_OK, BubblefinderError, InternalError, UsageError, bugs_told
from bubblefinder.fleet.model import Failure, Fleet, Row, rows_of
from bubblefinder.timeline.missing import missing_work

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.report.build import Options


@dataclass(frozen=True, slots=True)
class Analysed:
    """What one capture gave: its rows and its report as JSON, or why not.

    `severities` are those of its findings; `code` is the exit code of an analysis of it alone without a gate.
    """

    path: str
    rows: tuple[Row, ...] = ()
    report: bytes = b""
    failure: Failure | None = None
    severities: frozenset[str] = frozenset()
    code: int = EXIT_OK


def analyse(path: str, options: Options | None = None) -> Analysed:
    """Return what one capture gives; one that can't be read, or meets a bug here, costs the others nothing.

    Raises:
        UsageError: an option is wrong, whatever the capture.
    """
    from bubblefinder.report.build import analyze_trace
    from bubblefinder.report.json import encode
    from bubblefinder.trace.open import open_trace

    try:
        with bugs_told():
            trace = open_trace(path)
            report = analyze_trace(trace, options)
    except UsageError:
        raise
    except BubblefinderError as error:
        told = str(error).splitlines()[0]
        reason = f"{told}; {error.hint}" if isinstance(error, InternalError) and error.hint else told
        return Analysed(path, failure=Failure(path, reason), code=error.exit_code)
    return Analysed(
        path,
        tuple(rows_of(report, Path(path), trace.info.utc_ns)),
        encode(report),
        severities=frozenset(finding.severity for finding in report.findings),
        code=EXIT_INPUT if missing_work(report.trace.capture_mode, report.quality) else EXIT_OK,
    )


def side_by_side(done: Sequence[Analysed]) -> Fleet:
    """Return what captures gave as one fleet, in their order."""
    rows = tuple(row for one in done for row in one.rows)
    return Fleet(rows, tuple(one.failure for one in done if one.failure))
