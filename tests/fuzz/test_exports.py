"""Exports that hypothesis makes up over the tables that are read: whole ones, and ones with something wrong.

In every run the same ones, for about a minute. By hand new ones, for as long as you like, and what goes wrong made as
small as possible: ``BUBBLEFINDER_FUZZ=20000 pytest tests/fuzz``.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bubblefinder.errors import EXIT_INPUT, BubblefinderError
from bubblefinder.report.build import analyze_trace
from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.ledger import cover_of, window_ledger
from bubblefinder.trace import schema
from bubblefinder.trace.drawn import draw as drawing
from bubblefinder.trace.open import open_trace
from bubblefinder.trace.schema import CALLS_TABLE, KIND_TABLES
from tests.captures import captures
from tests.exports import GENERATIONS, export
from tests.laws import broken, lost_rows
from tests.reference import ledger

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace

BY_HAND = os.environ.get("BUBBLEFINDER_FUZZ")
PHASES = tuple(Phase) if BY_HAND else (Phase.explicit, Phase.generate)
READ = {table.name: table for table in vars(schema).values() if isinstance(table, schema.Table)}
ODD = st.one_of(
    st.none(),
    st.sampled_from([0, -1, 2**31 - 1, 2**31, 2**32 - 1, 2**61, 2**62, 2**63 - 1, -(2**63), -(2**62), 1.5, "", "text"]),
    st.integers(-(2**63), 2**63 - 1),
    st.binary(max_size=3),
    st.floats(allow_nan=False),
    st.text(max_size=4),
)
fuzzed = settings(
    max_examples=int(BY_HAND or 4 * settings().max_examples),
    deadline=None,
    derandomize=not BY_HAND,
    phases=PHASES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: what, in which table and column, for how many rows."""

    what: str
    table: str
    column: str
    value: object
    each: int


@st.composite
def faults(draw: st.DrawFn) -> Fault:
    table = draw(st.sampled_from([*KIND_TABLES, CALLS_TABLE, *sorted(READ)]))
    column = draw(st.sampled_from([column.source for column in READ[table].columns]))
    what = draw(st.sampled_from(["plant"] * 6 + ["drop column", "drop table", "empty", "delete", "repeat", "number"]))
    return Fault(what, table, column, draw(ODD), draw(st.integers(1, 4)))


def inflict(path: Path, fault: Fault) -> None:
    """Do what a fault says to the tables that are there."""
    table, column = f'"{fault.table}"', f'"{fault.column}"'
    some = f"WHERE rowid % {fault.each} = 0"
    statement = {
        "plant": f"UPDATE {table} SET {column} = ? {some}",
        "drop column": f"ALTER TABLE {table} DROP COLUMN {column}",
        "drop table": f"DROP TABLE {table}",
        "empty": f"DELETE FROM {table}",
        "delete": f"DELETE FROM {table} {some}",
        "repeat": f"INSERT INTO {table} SELECT * FROM {table} {some}",
        "number": f"ALTER TABLE {table} RENAME TO {fault.table}_V2",
    }[fault.what]
    with closing(sqlite3.connect(path)) as db, db:
        present = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        if fault.column in present:
            _free(db, fault.table, present)
            db.execute(statement, (fault.value,) if "?" in statement else ())


def _free(db: sqlite3.Connection, table: str, columns: list[str]) -> None:
    """Make a table anew without constraints."""
    listed = ", ".join(f'"{name}"' for name in columns)
    db.execute(f'ALTER TABLE "{table}" RENAME TO old')
    db.execute(f'CREATE TABLE "{table}" ({listed})')
    db.execute(f'INSERT INTO "{table}" SELECT {listed} FROM old')
    db.execute("DROP TABLE old")


def stored(path: Path) -> dict[str, int]:
    """How many rows of operations and calls there are, whatever the tables are called; a call told twice is one."""
    with closing(sqlite3.connect(path)) as db:
        db.text_factory = lambda text: text.decode(errors="replace")
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        counts = {
            name.removesuffix("_V2"): db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
            for name in names
            if name.removesuffix("_V2") in {*KIND_TABLES, CALLS_TABLE}
        }
        if CALLS_TABLE in counts:
            counts[CALLS_TABLE] -= told_again(db, CALLS_TABLE if CALLS_TABLE in names else f"{CALLS_TABLE}_V2")
        return counts


def told_again(db: sqlite3.Connection, table: str) -> int:
    """How many rows lie inside another of their thread with the same correlation id: what tells of a call again."""
    present = {row[1] for row in db.execute(f'PRAGMA table_info("{table}")')}
    wanted = [f'"{name}"' if name in present else "NULL" for name in ("start", "end", "globalTid", "correlationId")]
    rows = db.execute(f'SELECT {", ".join(wanted)} FROM "{table}"').fetchall()
    numbers = [[value if isinstance(value, int) else None for value in row] for row in rows]
    usable = [row for row in numbers if row[0] is not None and row[1] is not None and row[3] and any(row[:2])]
    reach: dict[tuple[int | None, int | None], int] = {}
    again = 0
    for start, end, *key in sorted(usable, key=lambda row: (row[0] or 0, -(row[1] or 0))):
        if start is None or end is None or end < start:
            continue
        known = reach.get((key[0], key[1]))
        again += known is not None and end <= known
        reach[key[0], key[1]] = max(end, known or end)
    return again


def classes(trace: Trace, gpu: int) -> dict[str, int]:
    """The product's ledger of one GPU, classes without time left out."""
    timeline = build_timeline(trace)
    busy = cover_of(timeline.busy.filter(timeline.busy["gpu"] == gpu))
    row = window_ledger(timeline, gpu, busy.starts[:1], busy.ends[-1:]).row(0, named=True)
    return {name.removesuffix("_ns"): time for name, time in row.items() if time}


@fuzzed
@given(captures(), st.sampled_from(GENERATIONS), st.booleans())
def test_a_whole_export_gives_the_ledger_of_its_definition(trace: Trace, generation: str, lazy: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = export(trace, Path(folder) / "x.sqlite", schema=generation, lazy=lazy)
        try:
            loaded = open_trace(path)
            report = analyze_trace(loaded)
        except BubblefinderError as error:
            assert error.exit_code == EXIT_INPUT  # noqa: PT017 - a capture of graphs alone is empty in old exports
            return
        assert [*broken(report, loaded), *lost_rows(loaded, stored(path))] == []
        for device in report.devices:
            assert classes(loaded, device.gpu) == ledger(loaded, device.gpu)


def test_a_call_that_is_told_again_is_read_once_and_not_lost(tmp_path: Path) -> None:
    trace = drawing("api | A.B.C.D.\ngpu0 s7 | .A.B.C.D\n")
    path = export(trace, tmp_path / "x.sqlite")
    inflict(path, Fault("repeat", CALLS_TABLE, "globalTid", 0, 2))
    loaded = open_trace(path)
    assert loaded.calls.height == stored(path)[CALLS_TABLE] == 4
    assert [*lost_rows(loaded, stored(path))] == []


@fuzzed
@given(captures(), st.sampled_from(GENERATIONS), st.lists(faults(), min_size=1, max_size=4))
def test_a_faulty_export_is_reported_by_the_laws_or_refused(trace: Trace, generation: str, wrong: list[Fault]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = export(trace, Path(folder) / "x.sqlite", schema=generation)
        for fault in wrong:
            inflict(path, fault)
        check(path)


@fuzzed
@given(captures(), st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 255)), min_size=1, max_size=8))
def test_a_damaged_file_is_reported_by_the_laws_or_refused(trace: Trace, flips: list[tuple[int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = export(trace, Path(folder) / "x.sqlite")
        content = bytearray(path.read_bytes())
        for position, value in flips:
            content[position % len(content)] = value
        path.write_bytes(content)
        check(path)


def check(path: Path) -> None:
    """A report that keeps the laws, or one line and exit 3."""
    try:
        loaded = open_trace(path)
        report = analyze_trace(loaded)
    except BubblefinderError as error:
        assert (error.exit_code, str(error).count("\n")) == (EXIT_INPUT, 0)  # noqa: PT017 - refusing is right as well
        return
    assert [*broken(report, loaded), *lost_rows(loaded, stored(path))] == []
