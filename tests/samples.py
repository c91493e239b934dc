"""The sample captures, each analysed once a run for all tests: what one worker found the others take from a file.

Commands that are run one after the other on the same files find what is known of them within `read_once`.
"""

from __future__ import annotations

import os
import pickle
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import report_of
from bubblefinder.timeline.build import build_timeline
from bubblefinder.trace import open as opening
from bubblefinder.trace.open import open_trace

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    return _found(name.removesuffix(".sqlite.xz"))[0]


def report(name: str) -> Report:
    """The report on a sample; tests that change it copy it first."""
    return _found(name.removesuffix(".sqlite.xz"))[1]


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


@contextmanager
def read_once() -> Iterator[None]:
    """While it lasts each file is read once, and two analyses of the same part of it are one.

    Samples are taken as `analysis` has them.
    """
    opened: dict[tuple[Path, int, int], Trace] = {}
    found: dict[tuple[object, ...], dict[str, Any]] = {}
    make = Analysis.__init__

    def open_it(given: str | Path, **options: Any) -> Trace:
        place = Path(given)
        if not place.is_file():
            return open_trace(place, **options)
        key = (place, place.stat().st_size, place.stat().st_mtime_ns)
        if key not in opened and place.is_relative_to(FOLDER) and place.suffix == ".xz":
            known = analysis(str(place.relative_to(FOLDER)))
            opened[key], found[id(known.trace), None, None, None] = known.trace, dict(vars(known))
        elif key not in opened:
            opened[key] = open_trace(place, **options)
        return opened[key]

    def begin(self: Analysis, *arguments: Any, **options: Any) -> None:
        make(self, *arguments, **options)
        known = found.setdefault((id(self.trace), self.window, self.step_by, self.selected), vars(self))
        known["progress"] = self.progress
        object.__setattr__(self, "__dict__", known)

    with mock.patch.object(opening, "open_trace", open_it), mock.patch.object(Analysis, "__init__", begin):
        yield


def unmarked(trace: Trace) -> Timeline:
    """The timeline of a capture without its NVTX ranges; a timeline holds what was made of them."""
    return build_timeline(replace(trace, nvtx=trace.nvtx.clear()))
