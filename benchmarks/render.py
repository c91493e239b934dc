"""Times every report format against the analysis: `python -m benchmarks.render capture.sqlite`.

One process, everything in turns, so that the two sides meet the same machine. See README.md.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bubblefinder.render.formats import formats_of, render
from bubblefinder.report.build import analyze_trace
from bubblefinder.trace.open import open_trace

if TYPE_CHECKING:
    from collections.abc import Callable

ANALYSIS = "loading and analysing"


def seconds(work: Callable[[], object]) -> float:
    """Time one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> int:
    """Print a line a format, and fail if all of them together take longer than the analysis."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("capture", type=Path)
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    report = analyze_trace(open_trace(arguments.capture))
    formats = formats_of("report")
    sizes = {name: len(render("report", report, name)) for name in formats}
    times: dict[str, list[float]] = {name: [] for name in (ANALYSIS, *formats)}
    for _ in range(arguments.turns):
        times[ANALYSIS].append(seconds(lambda: analyze_trace(open_trace(arguments.capture))))
        for name in formats:
            times[name].append(seconds(lambda name=name: render("report", report, name)))  # type: ignore[misc]
    typical = {name: statistics.median(turns) for name, turns in times.items()}
    whole = sum(typical[name] for name in formats)
    print(f"{ANALYSIS:<24}{typical[ANALYSIS] * 1e3:10.0f} ms")
    for name in formats:
        print(f"{name:<24}{typical[name] * 1e3:10.1f} ms{sizes[name] / 1e3:12,.0f} kB")
    print(f"{'all formats':<24}{whole * 1e3:10.0f} ms{whole / typical[ANALYSIS]:12.2f} of the analysis")
    return int(whole >= typical[ANALYSIS])


if __name__ == "__main__":
    sys.exit(main())
