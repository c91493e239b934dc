"""Reads integer columns of a SQLite table through ADBC, page by page."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bubblefinder.trace.schema import Column

OUT_OF_ORDER: Final = "the rows of a table are out of order"
_PAGE: Final = 1 << 18


class AdbcRefusedError(Exception):
    """ADBC is not installed, or the table holds something that it can't read as integers."""


class Key(NamedTuple):
    """How a table names the position of a row, and the first and last position in use."""

    name: str
    first: int
    last: int


def read_integers(uri: str, table: str, key: Key, columns: Sequence[Column], most_rows: int) -> pl.DataFrame:
    """Read integer columns in stored order.

    A page is read as one batch, and a batch without a value counts as integers, so nulls may come
    first without misleading the reader. Each page is made as narrow as it will be before the next
    one is read.

    Args:
        uri: of the file, read-only.
        table: its name, quoted.
        key: of the table's rows.
        columns: what to read.
        most_rows: more than these can't be in the file.

    Raises:
        AdbcRefusedError: read the table some other way.
        sqlite3.DatabaseError: the file is damaged.
    """
    position = key.first
    kept = ", ".join(f'"{column.source}" AS "{column.name}"' for column in columns)
    narrow = [pl.col(column.name).cast(column.dtype, strict=False) for column in columns]
    pages = []
    with _connected(uri) as fetch:
        while True:
            within = f"{key.name} BETWEEN {position} AND {key.last}"
            rows = f'SELECT {key.name} AS "key", {kept} FROM {table} WHERE {within} ORDER BY {key.name} LIMIT {_PAGE}'
            page = fetch(rows)
            most_rows -= page.height
            if most_rows < 0 or any(dtype != pl.Int64 for dtype in page.dtypes):
                raise AdbcRefusedError
            if (page["key"].diff() <= 0).any():
                raise sqlite3.DatabaseError(OUT_OF_ORDER)
            pages.append(page.select(narrow))
            if page.height < _PAGE:
                return pl.concat(pages)
            position = page["key"][-1] + 1


@contextmanager
def _connected(uri: str) -> Iterator[Callable[[str], pl.DataFrame]]:
    """Open the file and give a function from a query to a frame.

    Raises:
        AdbcRefusedError: for whatever goes wrong, inside the block as well.
    """
    try:
        import adbc_driver_manager as adbc
        import adbc_driver_sqlite as driver
    except ImportError as error:
        raise AdbcRefusedError from error
    try:
        with (
            driver.connect(uri) as database,
            adbc.AdbcConnection(database) as connection,
            adbc.AdbcStatement(connection) as statement,
        ):
            statement.set_options(**{"adbc.sqlite.query.batch_rows": str(_PAGE)})

            def fetch(query: str) -> pl.DataFrame:
                statement.set_sql_query(query)
                return pl.DataFrame(statement.execute_query()[0])

            fetch("PRAGMA trusted_schema = OFF")
            fetch("PRAGMA cell_size_check = ON")
            yield fetch
    except (adbc.Error, pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
        raise AdbcRefusedError from error
