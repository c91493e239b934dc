"""Times every stage of the analysis: `python -m benchmarks.stages big.sqlite`.

One process, one run; a stage's time is its own, without the stages that it builds on. For what all of them take
together, from starting Python to the written report, see `benchmarks.shapes`.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import report_of
from bubblefinder.trace.open import open_trace


def stages(path: Path) -> dict[str, tuple[float, float]]:
    """Return wall and processor time of each stage, in seconds, in the order in which they run."""
    times: dict[str, tuple[float, float]] = {}
    last = (time.perf_counter(), time.process_time())

    def done(stage: str) -> None:
        nonlocal last
        now = (time.perf_counter(), time.process_time())
        times[stage] = (now[0] - last[0], now[1] - last[1])
        last = now

    analysis = Analysis(open_trace(path))
    done("read")
    for stage in ("timeline", "steps", "causes", "facts", "model", "recoverable"):
        getattr(analysis, stage)
        done(stage)
    report_of(analysis)
    done("report")
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    given = parser.parse_args()
    times = stages(given.path)
    for stage, (wall, processor) in times.items():
        print(f"{stage:<12}{wall:8.2f} s{processor:8.2f} s of processor")
    print(f"{'all':<12}{sum(wall for wall, _ in times.values()):8.2f} s")
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
