"""The sample captures, each analysed once a run for all tests of a process."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import report_of
from bubblefinder.trace.open import open_trace

if TYPE_CHECKING:
    from bubblefinder.report.model import Report

FOLDER = Path(__file__).parents[1] / "sample_traces"


def path(name: str) -> Path:
    """The sample of a name: `path("nextn_before.node")`, `path("sglang/fi.graph")`."""
    candidates = [FOLDER / f"{name}.sqlite.xz", FOLDER / name]
    return next(one for one in candidates if one.exists())


@cache
def analysis(name: str) -> Analysis:
    """A sample with all that is found in it."""
    return Analysis(open_trace(path(name)))


@cache
def report(name: str) -> Report:
    """The report on a sample; tests that change it copy it first."""
    return report_of(analysis(name))
