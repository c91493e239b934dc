"""Damages exports in every way of `tests/mutations.py` and checks what the product makes of them. By hand:

    python -m benchmarks.mutate --each 40 EXPORT.sqlite...

Every mutated file must end in a report that keeps the laws of `tests/laws.py`, or in one line that says why not;
in time, whatever it is: ten times what reading all its rows takes, and a fixed cost.
"""

from __future__ import annotations

import argparse
import lzma
import multiprocessing
import re
import resource
import shutil
import sqlite3
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import polars as pl

from bubblefinder.errors import EXIT_INPUT, BubblefinderError
from bubblefinder.report.build import analyze_trace
from bubblefinder.trace.open import open_trace
from bubblefinder.trace.schema import CALLS_TABLE, KIND_TABLES
from bubblefinder.trace.sqlite import MAGIC
from tests.laws import ALL_IDLE, broken, idle_share, lost_rows, seems_idle
from tests.mutations import BYTES, DATABASES, FOLDERS, MUTATIONS, SAME, SAME_OR_TOLD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.connection import Connection

    from bubblefinder.report.model import Report
    from tests.mutations import Mutation

HANG_S = 60
SLOWER = 10
FIXED_S = 0.5
MEMORY = 6 << 30
VALUES = ("gpu", "pids", "span_ns", "busy_ns", "idle_ns", "replays", "intra_graph_ns", "profiler_ns", "unrecorded_ns",
          "inter_graph", "launches", "run_ahead_share")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Job:
    """One file to damage in one way; an empty mutation leaves it as it is."""

    source: Path
    mutation: str
    seed: int
    other: Path

    def __str__(self) -> str:
        return f"{self.source.name} {self.mutation or 'as it is'} {self.seed}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a file: a report or a refusal, what was wrong with it, and how long it took."""

    kind: str
    told: str = ""
    wrong: tuple[str, ...] = ()
    seconds: float = 0
    allowed: float = 0


@dataclass(frozen=True, slots=True)
class Known:
    """What the report on an undamaged file said."""

    values: dict[str, Any]
    warnings: set[str]
    idle: float


class Checker:
    """Runs jobs, remembering what the reports on undamaged files said."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[Path, Known] = {}

    def run(self, job: Job) -> Outcome:
        path = self.folder / "mutated.sqlite"
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        shutil.copytree(job.source, path) if job.source.is_dir() else shutil.copyfile(job.source, path)
        if job.mutation:
            try:
                MUTATIONS[job.mutation](path, Random(job.seed), job.other)
            except (sqlite3.Error, UnicodeDecodeError, IndexError, ValueError):
                return Outcome("inapplicable")
        return self._check(job, path)

    def _check(self, job: Job, path: Path) -> Outcome:
        plain = _plain_read_s(path)
        began = time.process_time()
        try:
            trace = open_trace(path)
            report = analyze_trace(trace)
        except BubblefinderError as error:
            seconds = time.process_time() - began
            proper = error.exit_code == EXIT_INPUT and "\n" not in str(error)
            refused = () if proper else (f"{error!r}",)
            return Outcome("refused", str(error), (*refused, *_late(seconds, plain)), seconds, plain)
        except Exception:  # noqa: BLE001 - it is what this program looks for
            return Outcome("traceback", wrong=(_told(),))
        seconds = time.process_time() - began
        wrong: tuple[str, ...]
        try:
            rows = () if path.is_dir() else lost_rows(trace, _stored(path))
            wrong = (*broken(report, trace), *rows, *self._differs(job, report))
        except Exception:  # noqa: BLE001 - a format that doesn't render
            wrong = (_told(),)
        return Outcome("report", wrong=(*wrong, *_late(seconds, plain)), seconds=seconds, allowed=plain)

    def _differs(self, job: Job, report: Report) -> Iterator[str]:
        if not job.mutation:
            self.known[job.source] = Known(_values(report), _warnings(report), idle_share(report))
            return
        known = self.known.get(job.source)
        if known is None:
            return
        if known.idle < ALL_IDLE and seems_idle(report, known.warnings):
            yield "a GPU is told to idle always, and no warning says why it may not"
        if job.mutation not in SAME | SAME_OR_TOLD or _values(report) == known.values:
            return
        if job.mutation in SAME or _warnings(report) <= known.warnings:
            parts = [name for name, value in _values(report).items() if value != known.values[name]]
            yield f"the report changed without a word: {', '.join(parts)}"


def _told() -> str:
    """The innermost frames of the exception at hand."""
    return traceback.format_exc(limit=-4)


def _values(report: Report) -> dict[str, Any]:
    """What a report says, without when."""
    return {
        "devices": [[asdict(device)[name] for name in VALUES] for device in report.devices],
        "steps": (report.steps.method, report.steps.count, report.steps.per_step, report.steps.bubble_share),
        "findings": [(finding.rule, finding.recoverable_ns, finding.bubble_ns) for finding in report.findings],
    }


def _warnings(report: Report) -> set[str]:
    return {note.code for note in report.quality if note.level != "info"}


def _late(seconds: float, plain: float) -> tuple[str, ...]:
    allowed = SLOWER * plain + FIXED_S
    return (f"{seconds:.2f} s of CPU time, reading all rows takes {plain:.3f} s",) if seconds > allowed else ()


def _plain_read_s(path: Path) -> float:
    began = time.process_time()
    if path.is_dir():
        return _plain_folder_s(path)
    with suppress(sqlite3.Error, UnicodeDecodeError), closing(sqlite3.connect(path)) as db:
        db.text_factory = lambda stored: stored.decode(errors="replace")
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            with suppress(sqlite3.Error, UnicodeDecodeError):
                db.execute(f'SELECT * FROM "{name}"').fetchall()
    return time.process_time() - began


def _plain_folder_s(folder: Path) -> float:
    began = time.process_time()
    for path in folder.iterdir():
        with suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
            (pl.read_parquet if path.suffix == ".parquet" else pl.read_ipc_stream)(path)
    return time.process_time() - began


def _stored(path: Path) -> dict[str, int]:
    """How many rows the tables of operations and calls have, whatever number is in their name."""
    with closing(sqlite3.connect(path)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {
            plain: db.execute(f'SELECT count(*) FROM "{name}" NOT INDEXED').fetchone()[0]
            for name in names
            if (plain := re.sub(r"_V\d+$", "", str(name))) in {*KIND_TABLES, CALLS_TABLE}
        }


def _serve(pipe: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("error")
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(Path(folder))
        while job := pipe.recv():
            pipe.send(checker.run(job))


class Worker:
    """A process that checks files, so that one that hangs or crashes is found out."""

    def __init__(self) -> None:
        self.bases: list[Job] = []
        self.start()

    def start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def run(self, job: Job) -> Outcome:
        if not job.mutation:
            self.bases = [job]
        try:
            self.pipe.send(job)
            if self.pipe.poll(HANG_S):
                found: Outcome = self.pipe.recv()
                return found
            outcome = Outcome("hang", wrong=(f"no answer after {HANG_S} s",))
        except EOFError:
            outcome = Outcome("crash", wrong=("the process died",))
        self.process.kill()
        self.process.join()
        self.start()
        if job.mutation:
            for base in self.bases:
                self.run(base)
        return outcome

    def stop(self) -> None:
        self.pipe.send(None)
        self.process.join()


def jobs(sources: list[Path], each: int, only: str, seed: int) -> Iterator[Job]:
    files = [source for source in sources if source.is_file()]
    for number, source in enumerate(sources):
        known = {only: MUTATIONS[only]} if only else _fitting(source)
        other = files[(number + 1) % len(files)] if source.is_file() else source
        yield Job(source, "", 0, other)
        for turn in range(each):
            name = list(known)[turn % len(known)]
            yield Job(source, name, seed + 1000 * number + turn, other)


def _fitting(source: Path) -> dict[str, Mutation]:
    """The mutations that an input can have."""
    if source.is_dir():
        return FOLDERS
    with source.open("rb") as file:
        return DATABASES if file.read(len(MAGIC)) == MAGIC else BYTES


def unpacked(sources: list[Path], folder: Path) -> Iterator[Path]:
    """The exports themselves: packed samples are unpacked first, so that what is damaged is the export."""
    for source in sources:
        if source.is_dir() or source.suffix != ".xz":
            yield source
            continue
        (folder / source.stem).write_bytes(lzma.decompress(source.read_bytes()))
        yield folder / source.stem


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("exports", nargs="+", type=Path)
    options.add_argument("--each", type=int, default=40, help="mutated files an export")
    options.add_argument("--only", default="", choices=["", *MUTATIONS])
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("-o", "--output", type=Path, help="write the table of outcomes here, as TOML")
    asked = options.parse_args()
    worker = Worker()
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for job in jobs(list(unpacked(asked.exports, Path(folder))), asked.each, asked.only, asked.seed):
            outcome = worker.run(job)
            counts[job.mutation or "as it is", "wrong" if outcome.wrong else outcome.kind] += 1
            for wrong in outcome.wrong:
                print(f"WRONG {job}: {wrong}", flush=True)
    worker.stop()
    table = outcomes(counts)
    print(table)
    if asked.output:
        asked.output.write_text(table)
    failed = sum(count for (_, kind), count in counts.items() if kind == "wrong")
    print(f"# {counts.total()} files, {failed} with something wrong")
    return bool(failed)


def outcomes(counts: Counter[tuple[str, str]]) -> str:
    """How many files of each mutation were reported, refused or anything else, as TOML."""
    kinds = {name: {kind: n for (other, kind), n in sorted(counts.items()) if other == name} for name, _ in counts}
    lines = [
        f'"{name}" = {{ {", ".join(f"{kind} = {n}" for kind, n in found.items())} }}' for name, found in kinds.items()
    ]
    return "\n".join(["# Made by `python -m benchmarks.mutate --output`.", *sorted(lines)]) + "\n"


if __name__ == "__main__":
    sys.exit(main())
