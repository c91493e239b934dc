"""Rendering costs less than analysing, measured side by side."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING

from benchmarks.generate import generate
from bubblefinder.report.build import analyze_trace
from bubblefinder.report.formats import FORMATS, render
from bubblefinder.trace.open import open_trace

if TYPE_CHECKING:
    from pathlib import Path


def test_all_formats_of_sixty_steps_take_less_time_than_their_analysis(tmp_path: Path) -> None:
    capture = tmp_path / "sixty.sqlite"
    generate(capture, kernels=107_000)
    report = analyze_trace(open_trace(capture))
    assert report.steps.count >= 55
    ratios = []
    for _ in range(3):
        begin = time.perf_counter()
        analyze_trace(open_trace(capture))
        middle = time.perf_counter()
        for name in FORMATS:
            render(report, name)
        ratios.append((time.perf_counter() - middle) / (middle - begin))
    assert statistics.median(ratios) < 1
