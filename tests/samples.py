"""The sample captures, each analysed once a run for all tests of a process."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import report_of
from bubblefinder.timeline.build import build_timeline
from bubblefinder.trace.open import open_trace

if TYPE_CHECKING:
    from bubblefinder.report.model import Report
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import Trace

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


def unmarked(trace: Trace) -> Timeline:
    """The timeline of a capture without its NVTX ranges; a timeline holds what was made of them."""
    return build_timeline(replace(trace, nvtx=trace.nvtx.clear()))
