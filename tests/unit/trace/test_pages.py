"""Whatever is read from the pages themselves is what SQLite reads; all else is refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.trace import schema
from bubblefinder.trace.pages import PagesRefusedError, Place, read_pages
from bubblefinder.trace.schema import Column
from bubblefinder.trace.sqlite import open_sqlite
from tests.unit.trace.rows import KERNELS, kernel, save

if TYPE_CHECKING:
    from collections.abc import Sequence

PLENTY = 10**9
WANTED = [(0, Column("a", "a")), (2, Column("c", "narrow", pl.Int32)), (4, Column("e", "tiny", pl.Int8))]
EDGES = [edge + by for bits in (7, 8, 15, 16, 23, 24, 31, 32, 47, 48, 63) for edge in (1 << bits,) for by in (-1, 0)]
SIGNED = [0, 1, *EDGES[:-1], *(-edge for edge in EDGES)]
NUMBERS = st.none() | st.sampled_from(SIGNED) | st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(max_size=14) | st.text("aé", max_size=80) | st.binary(max_size=180)
OTHERS = st.none() | st.floats(allow_nan=False) | TEXTS | st.integers(0, 300)
ROWS = st.lists(st.tuples(NUMBERS, OTHERS, NUMBERS, OTHERS, NUMBERS), min_size=1, max_size=120)


def write(path: Path, rows: Sequence[tuple[object, ...]], page_size: int = 4096, first: int = 1) -> Place:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"PRAGMA page_size = {page_size}")
        db.execute("CREATE TABLE before(x)")
        db.execute("CREATE TABLE t(a INTEGER, b, c INTEGER, d, e INTEGER)")
        numbered = ((first + number, *row) for number, row in enumerate(rows))
        db.executemany("INSERT INTO t(rowid, a, b, c, d, e) VALUES (?, ?, ?, ?, ?, ?)", numbered)
    return place_of(path)


def place_of(path: Path) -> Place:
    with closing(sqlite3.connect(path)) as db:
        (root,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 't'").fetchone()
        first, last = db.execute("SELECT min(rowid), max(rowid) FROM t").fetchone()
    return Place(path, root, first or 0, last or 0)


def fitting(value: object, bits: int) -> object:
    return value if isinstance(value, int) and -(1 << bits - 1) <= value < 1 << bits - 1 else None


def same_rows(rows: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [(row[0], fitting(row[2], 32), fitting(row[4], 8)) for row in rows]


@given(ROWS, st.sampled_from([512, 1024, 4096, 65_536]), st.integers(1, 200_000), st.integers(1, 9))
def test_columns_of_any_integers_come_out_as_they_went_in(
    rows: list[tuple[object, ...]], page_size: int, first: int, times: int
) -> None:
    with TemporaryDirectory() as folder:
        place = write(Path(folder) / "x.sqlite", rows * times, page_size, first)
        assert read_pages(place, WANTED, PLENTY).rows() == same_rows(rows * times)


def test_thousands_of_leaves_are_read_in_order(tmp_path: Path) -> None:
    rows = [(number << 20, "x" * (number % 50), number, 1.5, None) for number in range(30_000)]
    assert read_pages(write(tmp_path / "x.sqlite", rows, 512), WANTED, PLENTY).rows() == same_rows(rows)


def test_pages_that_lie_scattered_are_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    write(path, [(0, None, 0, None, 0)])
    with closing(sqlite3.connect(path)) as db, db:
        for number in range(1, 3000):
            db.execute("INSERT INTO before VALUES (?)", ("y" * 300,))
            db.execute("INSERT INTO t VALUES (?, ?, ?, NULL, ?)", (number, "z" * 40, -number, number % 100))
    found = read_pages(place_of(path), WANTED, PLENTY).rows()
    assert found == [(number, -number, number % 100) for number in range(3000)]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE t SET a = 'text' WHERE rowid = 700",
        "UPDATE t SET c = 1.5 WHERE rowid = 700",
        "UPDATE t SET e = x'00' WHERE rowid = 700",
        "UPDATE t SET a = 12345678901234567890 WHERE rowid = 700",
        "UPDATE t SET b = printf('%5000d', 1) WHERE rowid = 700",
        "UPDATE t SET b = printf('%17000d', 1) WHERE rowid = 700",
        "DELETE FROM t WHERE rowid = 700",
        "UPDATE t SET rowid = -7 WHERE rowid = 1",
        "UPDATE t SET rowid = 1 << 40 WHERE rowid = 999",
    ],
)
def test_what_no_export_holds_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "x.sqlite"
    write(path, [(number, None, number, None, 1) for number in range(1000)])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(change)
    with pytest.raises(PagesRefusedError):
        read_pages(place_of(path), WANTED, PLENTY)


def test_rows_from_before_a_column_was_added_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.sqlite"
    write(path, [(1, 1, 1, 1, 1)])
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("ALTER TABLE t ADD COLUMN f INTEGER DEFAULT 5")
    with pytest.raises(PagesRefusedError):
        read_pages(place_of(path), [(5, Column("f", "f"))], PLENTY)


def test_more_rows_than_the_file_has_room_for_are_refused(tmp_path: Path) -> None:
    place = write(tmp_path / "x.sqlite", [(1, 1, 1, 1, 1)] * 9)
    with pytest.raises(PagesRefusedError):
        read_pages(place, WANTED, 8)


def test_an_empty_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PagesRefusedError):
        read_pages(write(tmp_path / "x.sqlite", []), WANTED, PLENTY)


@pytest.mark.parametrize(
    ("declared", "ends", "from_pages"),
    [
        ('start INTEGER, "end" BIGINT NOT NULL', [10, 20], True),
        ('start INTEGER PRIMARY KEY, "end" INTEGER', [10, 20], False),
        ('start REAL, "end" INTEGER', [], False),
        ('start INTEGER, twice INTEGER AS (start * 2) STORED, "end" INTEGER', [10, 20], False),
        ('start INTEGER, twice INTEGER AS (start * 2) VIRTUAL, "end" INTEGER', [10, 20], False),
    ],
)
def test_only_plainly_declared_columns_are_read_from_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: str, ends: list[int], from_pages: bool
) -> None:
    path = save(tmp_path / "x.sqlite", **{KERNELS: [kernel(1, 2)]})
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"DROP TABLE {KERNELS}")
        db.execute(f"CREATE TABLE {KERNELS}({declared})")
        db.executemany(f'INSERT INTO {KERNELS}(start, "end") VALUES (?, ?)', [(3, 10), (4, 20)])
    read = list[int]()

    def counted(place: Place, columns: Sequence[tuple[int, Column]], most_rows: int) -> pl.DataFrame:
        frame = read_pages(place, columns, most_rows)
        read.append(frame.height)
        return frame

    monkeypatch.setattr("bubblefinder.trace.sqlite.read_pages", counted)
    with open_sqlite(path) as source:
        rows = source.read(schema.KERNELS).frame
    assert rows["end_ns"].to_list() == ends
    assert bool(read) is from_pages


def test_a_leaf_that_lost_its_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bubblefinder.trace.pages._BATCH", 512)
    path = tmp_path / "x.sqlite"
    place = write(path, [(number, None, number, None, 1) for number in range(400)], 512)
    content = bytearray(path.read_bytes())
    last = max(at for at in range(512, len(content), 512) if content[at] == 0x0D)
    content[last + 3 : last + 5] = b"\0\0"
    path.write_bytes(content)
    with pytest.raises(PagesRefusedError):
        read_pages(place, WANTED, PLENTY)


@given(st.data())
def test_a_damaged_page_is_refused_or_read_as_sqlite_reads_it(data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "x.sqlite"
        place = write(
            path, [(number << 8, "text" * (number % 30), number, 2.5, number % 90) for number in range(400)], 512
        )
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(512, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content)
        try:
            found = read_pages(place, WANTED, PLENTY).rows()
        except PagesRefusedError:
            return
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA cell_size_check = ON")
            stored = db.execute("SELECT a, NULL, c, NULL, e FROM t NOT INDEXED").fetchall()
        assert found == same_rows(stored)
