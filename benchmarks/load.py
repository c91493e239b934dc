"""Times `bubblefinder analyze` against reading the same columns with sqlite3: `python -m benchmarks.load big.sqlite`.

Everything runs in this one call, on one file, each in a process of its own, taking turns. See README.md.
"""

from __future__ import annotations

import argparse
import compileall
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

PLAIN = "sqlite3 fetchall of the same columns"
SWEEP = "  the same, then a numpy sweep for busy time"
FLOOR = "SELECT sum(end - start) inside SQLite"
ANALYZE = "bubblefinder analyze, end to end"


@dataclass(frozen=True, slots=True)
class Run:
    """Wall time, processor time, and the largest resident set of the process."""

    seconds: float
    processor: float
    megabytes: float


def measured(command: list[str]) -> Run:
    """Run a command to its end and measure it."""
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - begin
    if process.returncode:
        raise SystemExit(f"exit {process.returncode}: {' '.join(command)}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def columns_read(db: sqlite3.Connection) -> dict[str, list[str]]:
    """The tables that grow with the capture, and those of their columns that the analysis reads."""
    from bubblefinder.trace.schema import CALLS, NVTX, OPERATIONS

    found = {}
    for table in (*OPERATIONS, CALLS, NVTX):
        stored = {row[1] for row in db.execute(f'PRAGMA table_info("{table.name}")')}
        if wanted := [column.source for column in table.columns if column.source in stored]:
            found[table.name] = wanted
    return found


def plain(path: Path, *, sweep: bool) -> None:
    """Read the columns as the standard library does; with `sweep`, find each device's busy time in them."""
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        rows = {
            table: db.execute(f'SELECT {", ".join(map(quoted, names))} FROM "{table}"').fetchall()
            for table, names in columns_read(db).items()
        }
    if sweep:
        report_busy({table: found for table, found in rows.items() if table not in SWEPT_NOT})


SWEPT_NOT = {"CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"}


def quoted(name: str) -> str:
    return f'"{name}"'


def report_busy(rows: dict[str, list[tuple[int, ...]]]) -> None:
    import numpy as np

    times = np.concatenate([np.array([row[:2] for row in found], np.int64) for found in rows.values() if found])
    starts, ends = times[np.argsort(times[:, 0], kind="stable")].T
    reach = np.maximum.accumulate(ends)
    gaps = np.maximum(starts[1:] - reach[:-1], 0)
    print(f"busy {int(reach[-1] - starts[0] - gaps.sum())} ns, all devices as one")


def floor(path: Path) -> None:
    uri = f"{path.resolve().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as db:
        print(db.execute('SELECT sum("end" - start) FROM CUPTI_ACTIVITY_KIND_KERNEL').fetchone()[0])


def commands(path: Path, report: Path) -> dict[str, list[str]]:
    ours = Path(sys.executable).with_name("bubblefinder")
    again = [sys.executable, "-m", "benchmarks.load", str(path), "--only"]
    return {
        FLOOR: [*again, "floor"],
        PLAIN: [*again, "plain"],
        SWEEP: [*again, "sweep"],
        ANALYZE: [str(ours), "analyze", str(path), "--quiet", "--output", str(report)],
    }


def warm(path: Path) -> None:
    """Read a file once, so that nobody reads it from a cold disk, and compile our source, as installing does."""
    import bubblefinder

    compileall.compile_dir(Path(bubblefinder.__file__).parent, quiet=2)
    with path.open("rb") as file:
        while file.read(1 << 24):
            pass


def compare(path: Path, repeat: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        todo = commands(path, Path(folder) / "report.json")
        runs: dict[str, list[Run]] = {name: [] for name in todo}
        warm(path)
        for _ in range(repeat):
            for name, command in todo.items():
                runs[name].append(measured(command))
    wall = {name: statistics.median(run.seconds for run in found) for name, found in runs.items()}
    print(f"{path.name}, {path.stat().st_size / 1e6:.0f} MB, median of {repeat}")
    for name, found in runs.items():
        peak = max(run.megabytes for run in found)
        processor = statistics.median(run.processor for run in found)
        times = f"{wall[name]:8.2f} s{wall[name] / wall[PLAIN]:7.2f} x{processor:8.2f} s of processor"
        print(f"{name:<46}{times}{peak:8.0f} MB peak")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--repeat", type=int, default=3, help="how often each is run; the median counts")
    parser.add_argument("--only", choices=["floor", "plain", "sweep"], help="run one of the others, here, once")
    given = parser.parse_args()
    if given.only is None:
        compare(given.path, given.repeat)
    elif given.only == "floor":
        floor(given.path)
    else:
        plain(given.path, sweep=given.only == "sweep")


if __name__ == "__main__":
    main()
