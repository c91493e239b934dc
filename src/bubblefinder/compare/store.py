"""The history file: one SQLite database, migrated by version, safe with several writers at once."""

from __future__ import annotations

import json
import sqlite3
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import InputError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlite_utils import Database

APPLICATION_ID: Final = 0x62_75_62_66
BUSY_SECONDS: Final = 60.0


def _create(database: Database) -> None:
    runs = {
        "id": int, "digest": str, "added_at": str, "label": str, "commit_id": str, "name": str, "state": str,
        "reason": str, "capture_mode": str, "gpus": str, "ranks": int, "steps": int, "waiting": float,
        "nsys_version": str, "cupti_version": str, "driver_version": str, "cuda_version": str, "nodes": str,
        "meta": str,
    }  # fmt: skip
    database.table("runs").create(runs, pk="id", not_null={"digest", "added_at", "label", "state", "capture_mode"})
    database.table("runs").create_index(["digest"], unique=True)
    measures = {"run": int, "metric": str, "dimensions": str, "value": float}
    key = ("run", "metric", "dimensions")
    database.table("measures").create(measures, pk=key, foreign_keys=[("run", "runs", "id")])


def _remember_reports(database: Database) -> None:
    """Keep each run's report, so that a later night can be compared with it, and the definitions it follows."""
    database.table("runs").add_column("definitions", int, not_null_default=1)
    database.table("runs").add_column("report", bytes)


def _remember_reach(database: Database) -> None:
    """Keep by how much the noise of each run's host may lengthen its steps; of older runs nobody knows."""
    database.table("runs").add_column("reach", float, not_null_default=0.0)


MIGRATIONS: Final[tuple[Callable[[Database], None], ...]] = (_create, _remember_reports, _remember_reach)
"""The k-th takes a file of version k to version k + 1; never change one that was released."""


@contextmanager
def open_store(path: Path, *, write: bool = False, create: bool = False) -> Iterator[Database]:
    """Open the history at `path` in one transaction that is committed on leaving, or undone on an error.

    Writers wait for each other for up to a minute; reading needs no right to write, whatever version the file is of.
    `create` starts one that isn't there, and implies `write`.

    Raises:
        InputError: there is no such file, it is no history, or it can't be read.
        UsageError: it was written by a newer bubblefinder.
    """
    _check(path, create=create)
    try:
        connection = _connection(path, write=write or create)
        try:
            yield from _transaction(connection, path, "BEGIN IMMEDIATE" if write or create else "BEGIN")
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise InputError(
            f"{path} can't be used as a history: {error}", hint="is it a file of `history add`?"
        ) from error


def _connection(path: Path, *, write: bool) -> sqlite3.Connection:
    """Return a connection to a history; where that is of an older version and only to be read, to a copy in memory."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS)
    if write or connection.execute("PRAGMA user_version").fetchone()[0] >= len(MIGRATIONS):
        return connection
    copy = sqlite3.connect(":memory:")
    connection.backup(copy)
    connection.close()
    return copy


def _check(path: Path, *, create: bool) -> None:
    """Refuse a path that holds no history, and one at which none can be started."""
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a history file", hint="give the name of a file in it")
    if create and not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent} to keep {path.name} in", hint="make it, or check the path")
    if not create and not path.is_file():
        raise InputError(f"there is no history file {path}", hint="`bubblefinder history add` starts one")
    if not create and not path.stat().st_size:
        raise InputError(f"the history file {path} is empty", hint="`bubblefinder history add` stores a run")


def _transaction(connection: sqlite3.Connection, path: Path, begin: str) -> Iterator[Database]:
    from sqlite_utils import Database

    database = Database(connection, execute_plugins=False)
    database.execute("PRAGMA foreign_keys = ON")
    database.execute(begin)
    try:
        _migrate(database, path)
        yield database
    except BaseException:
        database.rollback()
        raise
    database.commit()


def _migrate(database: Database, path: Path) -> None:
    version = _pragma(database, "user_version")
    if version > len(MIGRATIONS):
        raise UsageError(
            f"{path} is a history of version {version}, this bubblefinder knows up to {len(MIGRATIONS)}",
            hint="use the bubblefinder that wrote it, or a newer one",
        )
    if _pragma(database, "application_id") != APPLICATION_ID and database.table_names():
        raise InputError(f"{path} is a database, but no history", hint="give another file name")
    for migration in MIGRATIONS[version:]:
        migration(database)
    if version < len(MIGRATIONS):
        database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _pragma(database: Database, name: str) -> int:
    return int(database.execute(f"PRAGMA {name}").fetchone()[0])


def compressed(content: bytes) -> bytes:
    """Return bytes as a column holds them."""
    return zlib.compress(content, 9)


def expanded(content: bytes) -> bytes:
    """Return what a column holds as it was.

    Raises:
        InputError: the column is damaged.
    """
    try:
        return zlib.decompress(content)
    except zlib.error as error:
        raise InputError(f"a stored report is damaged: {error}", hint="delete its run with `history prune`") from error


def packed(value: object) -> str:
    """Return a value as the compact JSON text that columns hold."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
