"""Captures and reports alike: whatever a path holds, as a report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bubblefinder.reading import STDIN
from bubblefinder.report.json import read_report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from bubblefinder.report.model import Report

_REPORT_STARTS: Final = (b"{", b"<")
_SNIFFED: Final = 64


def load(path: Path, progress: Callable[[str], None] | None = None, *, launch_shapes: bool = False) -> Report:
    """Return the report that a JSON or HTML file holds, or the report on the capture at this path.

    `progress` is called with each stage as it begins; `launch_shapes` reads how a capture's kernels were launched.

    Raises:
        InputError: there is neither a report nor a readable capture.
    """
    if _is_report(path):
        return read_report(path)
    from bubblefinder.report.build import Options, analyze_trace
    from bubblefinder.trace.open import open_trace

    told = progress or (lambda _: None)
    return analyze_trace(open_trace(path, progress=told), Options(launch_shapes=launch_shapes), progress=told)


def labelled(
    report: Report, *, label: str | None = None, commit: str | None = None, meta: Mapping[str, str] | None = None
) -> Report:
    """Return the report with another label, commit or anything else about the run, where one is given."""
    run = report.run
    run = replace(run, label=label or run.label, commit=commit or run.commit, meta={**run.meta, **(meta or {})})
    return replace(report, run=run)


def _is_report(path: Path) -> bool:
    if path == STDIN:
        return True
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            start = file.read(_SNIFFED)
    except OSError:
        return False
    return start.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in _REPORT_STARTS
