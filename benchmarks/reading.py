"""Times reading alone, from pages, through sqlite3 and from Parquet: `python -m benchmarks.reading big.sqlite`.

Makes a folder of Parquet files with what is read of the export beside it, as `nsys export --type parquetdir` lays them
out, unless it is there. Each way runs in a process of its own, in turns. See README.md.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import patch

from benchmarks.load import warm
from bubblefinder.trace import schema
from bubblefinder.trace.open import open_source, open_trace
from bubblefinder.trace.pages import PagesRefusedError

PAGES, SQLITE3, PARQUET = WAYS = ("pages", "sqlite3", "parquet")
TABLES = [table for table in vars(schema).values() if isinstance(table, schema.Table)]
ROWS_OF_A_GROUP = 2_048


def folder_of(path: Path) -> Path:
    return path.with_name(f"{path.stem}_pqtdir")


def make_folder(path: Path) -> None:
    """Write the columns that are read of each table of an export, uncompressed and in small groups of rows."""
    folder_of(path).mkdir(exist_ok=True)
    with open_source(path) as source:
        for table in TABLES:
            stored, present = source.stored_name(table), source.columns(table)
            if stored:
                names = {column.name: column.source for column in table.columns if column.source in present}
                frame = source.read(table).frame.select(names.keys()).rename(names)
                target = folder_of(path) / f"{stored}.parquet"
                frame.write_parquet(target, compression="uncompressed", row_group_size=ROWS_OF_A_GROUP)


def read(path: Path, way: str) -> list[float]:
    """Read a capture one way; return the processor seconds and the largest resident set in MB."""
    begin = time.process_time()
    refused = patch("bubblefinder.trace.sqlite.read_pages", side_effect=PagesRefusedError)
    with refused if way == SQLITE3 else nullcontext():
        open_trace(folder_of(path) if way == PARQUET else path)
    return [time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]


def compare(path: Path, ways: list[str], repeat: int) -> None:
    if not folder_of(path).exists():
        make_folder(path)
    warm(path)
    again = [sys.executable, "-m", "benchmarks.reading", str(path), "--once", "--way"]
    runs: dict[str, list[list[float]]] = {way: [] for way in ways}
    for _ in range(repeat):
        for way in ways:
            runs[way].append(json.loads(subprocess.run([*again, way], stdout=subprocess.PIPE, check=True).stdout))
    for way, found in runs.items():
        processor, peak = statistics.median(one for one, _ in found), max(mb for _, mb in found)
        print(f"{way:<9}{processor:8.2f} s of processor{peak:8.0f} MB peak")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--way", action="append", choices=WAYS, help="only this one. May be repeated.")
    parser.add_argument("--repeat", type=int, default=3, help="how often each is run; the median counts")
    parser.add_argument("--once", action="store_true", help="read here, once, and print the figures as JSON")
    given = parser.parse_args()
    if given.once:
        print(json.dumps(read(given.path, given.way[0])))
    else:
        compare(given.path, given.way or list(WAYS), given.repeat)


if __name__ == "__main__":
    main()
