"""The sample captures, each analysed once a run for all tests: what one worker found the others take from a file."""

from __future__ import annotations

import os
import pickle
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
shared: Path | None = None
"""Where the workers of a run leave what they found; null where there is one."""


def path(name: str) -> Path:
    """The sample of a name: `path("nextn_before.node")`, `path("sglang/fi.graph")`."""
    candidates = [FOLDER / f"{name}.sqlite.xz", FOLDER / name]
    return next(one for one in candidates if one.exists())


def analysis(name: str) -> Analysis:
    """A sample with all that is found in it."""
    return _found(name)[0]


def report(name: str) -> Report:
    """The report on a sample; tests that change it copy it first."""
    return _found(name)[1]


@cache
def _found(name: str) -> tuple[Analysis, Report]:
    """Return what another worker of this run has found, or else find it and leave it for them."""
    kept = shared and shared / f"{name.replace('/', '_')}.pickle"
    if kept and kept.exists():
        known: tuple[Analysis, Report] = pickle.loads(kept.read_bytes())  # noqa: S301 - this run's own
        return known
    made = Analysis(open_trace(path(name)))
    found = (made, report_of(made))
    if kept:
        kept.parent.mkdir(exist_ok=True)
        part = kept.with_suffix(f".{os.getpid()}")
        part.write_bytes(pickle.dumps(found))
        part.replace(kept)
    return found


def unmarked(trace: Trace) -> Timeline:
    """The timeline of a capture without its NVTX ranges; a timeline holds what was made of them."""
    return build_timeline(replace(trace, nvtx=trace.nvtx.clear()))
