from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import polars as pl
import pytest

from bubblefinder.trace import adbc
from bubblefinder.trace.adbc import AdbcRefusedError, Key, read_integers
from bubblefinder.trace.schema import Column

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = [Column("a", "a"), Column("b", "narrow", pl.Int32)]
PLENTY = 10**9


@pytest.fixture
def uri(tmp_path: Path) -> str:
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection, connection:
        connection.execute("CREATE TABLE t(a INTEGER, b INTEGER)")
        rows = ((None if number < 700 else 2**62 + number, number) for number in range(1000))
        connection.executemany("INSERT INTO t VALUES (?, ?)", rows)
        connection.execute("CREATE TABLE mixed AS SELECT CASE WHEN b = 900 THEN 'text' ELSE b END AS a, b FROM t")
    return f"file:{tmp_path}/x.sqlite?mode=ro"


@pytest.mark.parametrize("page", [1, 64, 1000, 5000])
def test_the_size_of_a_page_changes_nothing(uri: str, monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr(adbc, "_PAGE", page)
    last = 1000 if page > 1 else 40
    frame = read_integers(uri, "t", Key("rowid", 1, last), COLUMNS, PLENTY)
    assert frame["narrow"].to_list() == list(range(last))
    assert frame.schema == {"a": pl.Int64, "narrow": pl.Int32}
    assert frame["a"].to_list() == [None if number < 700 else 2**62 + number for number in range(last)]


def test_text_among_the_numbers_is_refused(uri: str) -> None:
    with pytest.raises(AdbcRefusedError):
        read_integers(uri, "mixed", Key("rowid", 1, 1000), COLUMNS, PLENTY)


def test_more_rows_than_the_file_has_room_for_are_refused(uri: str) -> None:
    with pytest.raises(AdbcRefusedError):
        read_integers(uri, "t", Key("rowid", 1, 1000), COLUMNS, 999)


def test_a_missing_table_is_refused(uri: str) -> None:
    with pytest.raises(AdbcRefusedError):
        read_integers(uri, "nothing", Key("rowid", 1, 1000), COLUMNS, PLENTY)
