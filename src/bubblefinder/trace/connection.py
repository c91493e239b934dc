"""Opens a SQLite file for reading alone, and says in plain words why one can't be read."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import quote

from bubblefinder.errors import InputError, NotATraceError
from bubblefinder.trace.quality import scrubbed

_HEADER: Final = 100
_LONGEST_VALUE: Final = 64 << 20
_LOCK_WAIT_S: Final = 1.0
_ALLOWED: Final = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}


def read_only_uri(path: Path) -> str:
    """Return a read-only URI, immutable where a plain one would have to create files beside `path`."""
    base = f"file:{quote(os.fsencode(path.resolve()))}?mode=ro"
    for beside in (Path(f"{path}-wal"), Path(f"{path}-journal")):
        if _is_pending(beside):
            raise InputError(
                f"{path.name} is being written, or its writer was stopped: {beside.name} beside it holds changes",
                hint="let the writing program finish, or export the report again",
            )
    with path.open("rb") as file:
        write_ahead = file.read(20)[18:20] == b"\2\2"
    if write_ahead or not _opens(base):
        return f"{base}&immutable=1"
    return base


def _is_pending(beside: Path) -> bool:
    """Say whether a journal or write-ahead log holds changes; one that was finished begins with zeros."""
    if not beside.is_file():
        return False
    with beside.open("rb") as file:
        return any(file.read(8))


def _opens(uri: str) -> bool:
    """Say whether a plain read-only connection can read at all; a busy file counts as one that can."""
    try:
        with closing(connect(uri)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF not in {
            sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PROTOCOL,
        }  # fmt: skip
    return True


def connect(uri: str) -> sqlite3.Connection:
    """Open a connection that can only read, and can run no code that the file brings along."""
    connection = sqlite3.connect(uri, uri=True, timeout=_LOCK_WAIT_S, isolation_level=None)
    connection.text_factory = lambda stored: stored.decode(errors="replace")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_authorizer(_authorize)
    return connection


def _authorize(action: int, subject: str | None, *_: str | None) -> int:
    """Let SQLite read tables and say what columns they have, and nothing else."""
    allowed = action in _ALLOWED or (action == sqlite3.SQLITE_PRAGMA and subject in {"table_info", "table_xinfo"})
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def check_length(path: Path) -> None:
    """Compare the file's length with what its header says.

    Raises:
        NotATraceError: pages are missing at the end.
    """
    with path.open("rb") as file:
        header = file.read(_HEADER)
    page = int.from_bytes(header[16:18]) or 1
    expected = int.from_bytes(header[28:32]) * (65_536 if page == 1 else page)
    actual = path.stat().st_size
    if len(header) < _HEADER or (header[24:28] == header[92:96] and actual < expected):
        raise NotATraceError(
            f"{path.name} is cut short: its header promises {expected:,} bytes, it has {actual:,}",
            hint="copy or export it again",
        )


def explained(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> InputError:
    """Say in plain words what SQLite ran into."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return InputError(
            f"{path.name} is locked: another program is writing it",
            hint="wait for that program to finish, or copy the file to a local disk and try again",
        )
    if code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY}:
        return InputError(
            f"{path.name} can't be read: {scrubbed(str(error))}", hint="check its permissions and the disk it lies on"
        )
    return NotATraceError(
        f"{path.name} is a damaged SQLite file: {scrubbed(str(error))}", hint="copy or export it again"
    )
