"""Reads folders of Parquet or Arrow files, one a table, as `nsys export --type parquetdir|arrowdir` writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.errors import NotATraceError
from bubblefinder.trace.schema import STRING_IDS, Rows, Strings, candidates, normalise

if TYPE_CHECKING:
    from collections.abc import Iterable
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
        stored = self._stored(table)
        return frozenset() if stored is None else frozenset(stored.columns)

    def read(self, table: Table) -> Rows:
        """Read a table; an absent one is empty, an absent column null."""
        stored = self._stored(table)
        if stored is None:
            return Rows(table.empty())
        wanted = {column.source: column.name for column in table.columns if column.source in stored.columns}
        if not wanted:
            return Rows(table.empty())
        return normalise(stored.select(*wanted).rename(wanted), table)

    def strings(self, ids: Iterable[int]) -> Strings:
        """Read the texts of these string ids and of no others."""
        stored = self._frame(STRING_IDS) if STRING_IDS in self._files else pl.DataFrame()
        if not {"id", "value"} <= set(stored.columns):
            return Strings({})
        wanted = pl.Series(sorted(set(ids)), dtype=pl.Int64)
        found = stored.select(pl.col("id").cast(pl.Int64, strict=False), "value").filter(pl.col("id").is_in(wanted.implode()))
        if found.schema["value"] != pl.String:
            return Strings({}, found["value"].count())
        named = found.drop_nulls()
        return Strings(dict(zip(named["id"], named["value"], strict=True)))

    def _stored(self, table: Table) -> pl.DataFrame | None:
        """Return the stored table to read: the best candidate with rows, else the best one."""
        frames = [self._frame(name, table) for name in candidates(table, self._files)]
        return next((frame for frame in frames if frame.height), frames[0] if frames else None)

    def _frame(self, name: str, table: Table | None = None) -> pl.DataFrame:
        """Read a file whole, or the columns of `table`.

        Raises:
            NotATraceError: the file is damaged.
        """
        path = self._files[name]
        try:
            if self.format == "arrowdir":
                return pl.read_ipc_stream(path)
            lazy = pl.scan_parquet(path, glob=False)
            present = lazy.collect_schema().names()
            kept = [column.source for column in table.columns if column.source in present] if table else present
            return lazy.select(kept).collect()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
            reason = " ".join(str(error).split())[:120]
            raise NotATraceError(f"{path.name} is a damaged table: {reason}.", hint="Export the folder again.") from error
