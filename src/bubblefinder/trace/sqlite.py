"""Reads a SQLite export: integers in bulk from its pages, text and odd tables through sqlite3.

The file is only ever read. Only real tables are used, never views, virtual tables or generated
columns, so that nothing stored in an untrusted file is run.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from itertools import compress, islice, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

from bubblefinder.lookup import NOWHERE, nullable
from bubblefinder.trace.connection import check_length, connect, explained, read_only_uri
from bubblefinder.trace.pages import PagesRefusedError, Place, read_pages
from bubblefinder.trace.schema import LONGEST_TEXT, STRING_IDS, Rows, StoredColumn, Strings, candidates, normalise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from bubblefinder.trace.schema import Column, Table

MAGIC: Final = b"SQLite format 3\0"
_OUT_OF_ORDER: Final = "the rows of a table are out of order"
_FETCH: Final = 50_000
_IDS: Final = 5_000
_SMALLEST_ROW: Final = 6


class _Key(NamedTuple):
    """How a table names the position of a row, and the first and last position in use."""

    name: str
    first: int
    last: int


@contextmanager
def open_sqlite(path: Path) -> Iterator[SqliteSource]:
    """Open a SQLite export for reading.

    Raises:
        NotATraceError: the file is damaged or cut short.
        InputError: the file is locked or still being written.
    """
    check_length(path)
    try:
        with closing(connect(read_only_uri(path))) as connection:
            yield SqliteSource(connection, path)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise explained(error, path) from error


class SqliteSource:
    """An opened SQLite export; another thread than that which opened it is refused.

    It would wait for ever now and then: SQLite holds a connection's lock while it asks our authorizer, which waits for
    the interpreter, and another thread that reads a row has the interpreter and waits for the lock.
    """

    format = "sqlite"

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        """List the real tables of the file."""
        self._connection = connection
        self._path = path
        self._most_rows = path.stat().st_size // _SMALLEST_ROW
        tables = "SELECT name, rootpage FROM sqlite_master WHERE type = 'table' AND rootpage > 0"
        self._roots = {name: root for name, root in connection.execute(tables) if isinstance(name, str)}

    @property
    def tables(self) -> frozenset[str]:
        """Return the names of the tables that the export has."""
        return frozenset(self._roots)

    def columns(self, table: Table) -> frozenset[str]:
        """Return the columns that this export's version of a table has."""
        stored = self.stored_name(table)
        return self._stored_columns(stored) if stored else frozenset()

    def read(self, table: Table) -> Rows:
        """Read a table; an absent one is empty, an absent column null."""
        stored = self.stored_name(table)
        if not stored:
            return Rows(table.empty())
        present = self._stored_columns(stored)
        wanted = [column for column in table.columns if column.source in present]
        if not wanted:
            return Rows(table.empty())
        numbers = [column for column in wanted if not column.is_text]
        texts = [column for column in wanted if column.is_text]
        if not table.bulk or not numbers:
            return self._read_slowly(stored, table, wanted, present)
        try:
            key = self._key(stored, present)
            place = Place(self._path, self._roots[stored], key.first, key.last)
            raw = read_pages(place, self._positions(stored, numbers), self._most_rows)
        except PagesRefusedError:
            return self._read_slowly(stored, table, wanted, present)
        sparse = [self._sparse(stored, key, column, raw.height) for column in texts]
        return normalise(raw.with_columns(sparse) if sparse else raw, table)

    def _sparse(self, stored: str, key: _Key, column: Column, height: int) -> pl.Series:
        """Read a column of texts from a table whose rows are numbered without a hole."""
        name = _quoted(column.source)
        query = f"SELECT {key.name}, {_bounded(name)} FROM {_quoted(stored)} NOT INDEXED WHERE typeof({name}) = 'text'"
        found = self._connection.execute(query).fetchmany(height + 1)
        places = pl.Series([row - key.first for row, _ in found], dtype=pl.Int64)
        if len(found) == height:
            return pl.Series(column.name, [text for _, text in found], pl.String)
        if len(found) > height or not places.is_between(0, height - 1).all():
            raise sqlite3.DatabaseError(_OUT_OF_ORDER)
        texts = pl.Series(column.name, [text for _, text in found], pl.String)
        at = np.full(height, NOWHERE, np.int64)
        at[places.to_numpy()] = np.arange(len(found))
        return texts[nullable(at)]

    def _positions(self, stored: str, columns: Sequence[Column]) -> list[tuple[int, Column]]:
        """Return where in a stored row each column is.

        Raises:
            PagesRefusedError: a row doesn't hold just what the table declares, or the rowid stands for a column.
        """
        declared = self._connection.execute(f"PRAGMA table_xinfo({_quoted(stored)})").fetchall()
        known = {name: (position, kind, key) for position, name, kind, _, _, key, _ in declared}
        found = [(*known[column.source], column) for column in columns]
        if any(hidden for *_, hidden in declared) or any(key or "INT" not in kind.upper() for _, kind, key, _ in found):
            raise PagesRefusedError
        return [(position, column) for position, _, _, column in found]

    def _read_slowly(self, stored: str, table: Table, wanted: Sequence[Column], present: frozenset[str]) -> Rows:
        """Read a table through sqlite3 alone, and count the positions without a row.

        Raises:
            sqlite3.DatabaseError: its rows are out of order, so pages lie in the wrong place.
        """
        missing = 0
        with suppress(PagesRefusedError):
            key = self._key(stored, present).name
            positions = self._connection.execute(f"SELECT {key} FROM {_quoted(stored)} NOT INDEXED")
            for (one,), (other,) in pairwise(islice(positions, self._most_rows)):
                if one >= other:
                    raise sqlite3.DatabaseError(_OUT_OF_ORDER)
                missing += other - one - 1
        return replace(normalise(self._rows(stored, wanted), table), missing=missing if table.bulk else 0)

    def strings(self, ids: Iterable[int]) -> Strings:
        """Read the texts of these string ids and of no others."""
        wanted = sorted(set(ids))
        texts: dict[int, str] = {}
        other = 0
        for first in range(0, len(wanted), _IDS):
            listed = ",".join(map(str, wanted[first : first + _IDS]))
            query = f"SELECT id, {_bounded('value')}, typeof(value) FROM {STRING_IDS} WHERE id IN ({listed})"
            for number, value, stored in self._connection.execute(query):
                if stored == "text":
                    texts[number] = (value or "")[: LONGEST_TEXT + 1]  # an empty text, cut as bytes, is null
                else:
                    other += stored != "null"
        return Strings(texts, other)

    def layout(self, stored: str) -> list[StoredColumn]:
        """Return the columns of a stored table in their order."""
        found = self._connection.execute(f"PRAGMA table_info({_quoted(stored)})")
        return [StoredColumn(row[1], row[2]) for row in found]

    def records(
        self, stored: str, columns: Sequence[str], places: Sequence[int] | None = None
    ) -> Iterator[tuple[object, ...]]:
        """Return the values of some columns as stored, of the rows at these positions (ascending) or of all."""
        kept = ", ".join(map(_quoted, columns))
        query = f"SELECT {kept} FROM {_quoted(stored)} NOT INDEXED"
        if places is None:
            return self._connection.execute(query)
        if not places:
            return iter(())
        wanted = bytearray(places[-1] - places[0] + 1)
        for place in places:
            wanted[place - places[0]] = 1
        return compress(self._connection.execute(f"{query} LIMIT {len(wanted)} OFFSET {places[0]}"), wanted)

    def stored_name(self, table: Table) -> str | None:
        """Return the stored table to read: the best candidate with rows, else the best one."""
        found = candidates(table, self._roots)
        asked = ((name, self._connection.execute(f"SELECT 1 FROM {_quoted(name)} LIMIT 1")) for name in found)
        return next((name for name, rows in asked if rows.fetchone()), found[0] if found else None)

    def _stored_columns(self, stored: str) -> frozenset[str]:
        """Return the ordinary columns of a stored table."""
        return frozenset(row[1] for row in self._connection.execute(f"PRAGMA table_info({_quoted(stored)})"))

    def _rows(self, stored: str, columns: Sequence[Column]) -> pl.DataFrame:
        """Read columns through sqlite3, each value as text or integer as declared.

        A value of another type comes out as null in a text column, and as text in an integer column
        that holds any, for `normalise` to count.
        """
        kept = ", ".join(_as_declared(column) for column in columns)
        cursor = self._connection.execute(f"SELECT {kept} FROM {_quoted(stored)} NOT INDEXED")
        schema = {column.name: pl.String if column.is_text else pl.Int64 for column in columns}
        parts = [pl.DataFrame(schema=schema)]
        while rows := cursor.fetchmany(_FETCH):
            if len(parts) * _FETCH > self._most_rows + _FETCH:
                raise sqlite3.DatabaseError("a table has more rows than the file has room for")
            parts.append(pl.DataFrame(rows, schema=schema, orient="row"))
        frame, foreign = pl.concat(parts, rechunk=True), self._foreign(stored, columns)
        return frame.with_columns(foreign) if foreign else frame

    def _foreign(self, stored: str, columns: Sequence[Column]) -> list[pl.Series]:
        """Return as text the integer columns that hold anything but integers and nulls."""
        found = []
        for column in columns:
            name = _quoted(column.source)
            odd = f"SELECT 1 FROM {_quoted(stored)} NOT INDEXED WHERE typeof({name}) NOT IN ('integer', 'null') LIMIT 1"
            if column.is_text or not self._connection.execute(odd).fetchone():
                continue
            values = (
                f"SELECT CASE typeof({name}) WHEN 'null' THEN NULL WHEN 'integer' THEN CAST({name} AS TEXT) ELSE '' END"
            )
            rows = self._connection.execute(f"{values} FROM {_quoted(stored)} NOT INDEXED")
            found.append(pl.Series(column.name, [value for (value,) in rows], dtype=pl.String))
        return found

    def _key(self, stored: str, present: frozenset[str]) -> _Key:
        """Return how to name a row's position in its table, and the first and last position.

        Raises:
            PagesRefusedError: the table has no such positions.
        """
        taken = {name.lower() for name in present}
        table = _quoted(stored)
        name = next((name for name in ("rowid", "_rowid_", "oid") if name not in taken), None)
        if name is None:
            raise PagesRefusedError
        try:
            ends = f"SELECT (SELECT min({name}) FROM {table}), (SELECT max({name}) FROM {table})"
            first, last = self._connection.execute(ends).fetchone()
        except sqlite3.OperationalError as error:
            raise PagesRefusedError from error
        return _Key(name, first or 0, last or 0)


def _quoted(name: str) -> str:
    """Return a name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _as_declared(column: Column) -> str:
    """Return the SQL for a value of the column's own type, null for any other; of a text no more than is kept."""
    name = _quoted(column.source)
    if column.is_text:
        return f"CASE typeof({name}) WHEN 'text' THEN {_bounded(name)} END"
    return f"CASE typeof({name}) WHEN 'integer' THEN {name} END"


def _bounded(name: str) -> str:
    """Return the SQL for the begin of a text, long enough to see that it is too long; in bytes: it may hold NUL."""
    return f"CAST(substr(CAST({name} AS BLOB), 1, {4 * (LONGEST_TEXT + 1)}) AS TEXT)"
