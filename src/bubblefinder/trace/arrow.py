"""Reads folders of Parquet or Arrow files, one a table, as `nsys export --type parquetdir|arrowdir` writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl
import polars.selectors as cs

from bubblefinder.errors import NotATraceError
from bubblefinder.trace.quality import scrubbed
from bubblefinder.trace.schema import STRING_IDS, STRINGS, Rows, StoredColumn, Strings, candidates, normalise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from bubblefinder.trace.schema import Table

SUFFIXES: Final = {".parquet": "parquetdir", ".arrow": "arrowdir", ".arrows": "arrowdir"}


class FolderSource:
    """An opened folder of tables."""

    def __init__(self, folder: Path) -> None:
        """List the tables; where both formats lie in one folder Parquet is read."""
        files = [path for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES and path.is_file()]
        self.format = max((SUFFIXES[path.suffix] for path in files), default="")
        self._files = {path.stem: path for path in files if SUFFIXES[path.suffix] == self.format}

    @property
    def tables(self) -> frozenset[str]:
        """Return the names of the tables that the export has."""
        return frozenset(self._files)

    def columns(self, table: Table) -> frozenset[str]:
        """Return the columns that this export's version of a table has."""
        stored = self.stored_name(table)
        return frozenset(self._load(stored, rows=0).columns) if stored else frozenset()

    def read(self, table: Table) -> Rows:
        """Read a table; an absent one is empty, an absent column null."""
        stored = self.stored_name(table)
        present = self.columns(table)
        wanted = {column.source: column.name for column in table.columns if column.source in present}
        if not stored or not wanted:
            return Rows(table.empty())
        return normalise(self._load(stored, list(wanted)).rename(wanted), table)

    def strings(self, ids: Iterable[int]) -> Strings:
        """Read the texts of these string ids and of no others."""
        stored = normalise(self._load(STRING_IDS, ["id", "value"]), STRINGS).frame
        wanted = pl.Series(sorted(set(ids)), dtype=pl.Int64)
        found = stored.filter(pl.col("id").is_in(wanted.implode()))
        named = found.drop_nulls("value")
        return Strings(dict(zip(named["id"], named["value"], strict=True)))

    def layout(self, stored: str) -> list[StoredColumn]:
        """Return the columns of a stored table in their order."""
        return [StoredColumn(name, _sql_type(dtype)) for name, dtype in self._load(stored, rows=0).schema.items()]

    def records(
        self, stored: str, columns: Sequence[str], places: Sequence[int] | None = None
    ) -> Iterator[tuple[object, ...]]:
        """Return the values of some columns as SQLite keeps them, of the rows at these positions or of all."""
        frame = self._load(stored, list(columns)).select(columns)
        chosen = frame if places is None else frame[list(places)]
        return chosen.with_columns(
            cs.unsigned_integer().reinterpret(signed=True), cs.boolean().cast(pl.Int8)
        ).iter_rows()

    def stored_name(self, table: Table) -> str | None:
        """Return the stored table to read: the best candidate with rows, else the best one."""
        found = candidates(table, self._files)
        filled = (name for name in found if len(found) == 1 or self._load(name, rows=1).height)
        return next(filled, found[0] if found else None)

    def _load(self, name: str, columns: list[str] | None = None, rows: int | None = None) -> pl.DataFrame:
        """Read a file, or some columns or rows of it.

        Raises:
            NotATraceError: the file is damaged.
        """
        path = self._files[name]
        reader = pl.read_ipc_stream if self.format == "arrowdir" else pl.read_parquet
        try:
            return reader(path, columns=columns, n_rows=rows)
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = scrubbed(str(error))
            raise NotATraceError(f"{path.name} is a damaged table: {reason}", hint="export the folder again") from error


def _sql_type(dtype: pl.DataType) -> str:
    """Return the type that the SQLite export of a column has."""
    if dtype.is_integer() or dtype == pl.Boolean:
        return "INTEGER"
    return "REAL" if dtype.is_float() else "TEXT"
