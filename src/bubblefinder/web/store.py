"""The runs the server knows, in one SQLite table."""

from __future__ import annotations

import json
import secrets
import sqlite3
import sys
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bubblefinder.errors import UsageError
from bubblefinder.web.shelf import Shelf, State, StoredRun

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    from sqlite_utils import Database


T = TypeVar("T")
STATES: Final = ("queued", "running", "done", "failed", "cancelled")
OPEN_STATES: Final = ("queued", "running")
ATTEMPTS: Final = 2
"""Jobs begun for a run before it is given up: the first may have met a kill or a full disk that it didn't cause."""
_COLUMNS: Final[dict[str, type]] = {
    "id": str, "name": str, "label": str, "commit": str, "note": str, "kept": int, "baseline": str, "size_bytes": int,
    "state": str, "attempts": int, "created_s": float, "finished_s": float, "error": str, "hint": str, "gpu": str,
    "nsys": str, "step_p50_ns": float, "bubble_share": float, "at_least": int, "verdict": str, "metrics": str,
}  # fmt: skip
_SHOWN: Final = ", ".join(f'"{name}"' for name in _COLUMNS if name != "metrics")
_MOST_METRICS: Final = 32
"""Metrics whose values stay in memory; a page asks for one of eight, a program for any."""
_OUT_OF_ROOM: Final = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
_PASSING: Final = {*_OUT_OF_ROOM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY}


def new_id() -> str:
    """Return an id of 128 random bits that is also fit for a path."""
    return secrets.token_hex(16)


class Store:
    """Reads and writes runs from one thread; a write is in the file before the call returns.

    `version` grows with every write, so that what was made from the runs can be kept until they change; `shelf` holds
    them for lists.
    """

    def __init__(self, path: Path, relief: Callable[[], bool] = lambda: False) -> None:
        """Open the database, and create it where it is missing.

        Args:
            path: the file.
            relief: makes room on a full disk and says whether it could; the write is then tried once more.

        Raises:
            UsageError: the database is damaged, or its disk is full.
        """
        self.version = 0
        self._relief = relief
        self._database = _opened(path)
        self._values: dict[str, dict[str, float | None]] = {}
        try:
            self._runs = self._database.table("runs")
            self._database.execute("PRAGMA secure_delete = ON")
            self._write(self._create)
            self.shelf = Shelf(_stored(row) for row in self._runs.rows_where(select=_SHOWN, order_by="rowid"))
        except sqlite3.Error as error:
            self.close()
            raise _unusable(path, error) from error

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def add(self, run: StoredRun) -> None:
        """Add a run whose file has arrived whole."""
        self._write(lambda: self._runs.insert(asdict(run)))
        self._reshelve(run.id)

    def get(self, run_id: str) -> StoredRun | None:
        """Return a run, or null if there is none of this id."""
        return self._first("id = ?", [run_id])

    def ids(self, *states: State) -> set[str]:
        """Return the ids of the runs in these states, or of all."""
        where = f"state IN ({','.join('?' * len(states))})" if states else None
        return {row["id"] for row in self._runs.rows_where(where, states, select="id")}

    def claim(self) -> StoredRun | None:
        """Mark the run that has waited longest as running and return it; null if none waits."""
        run = self._first("state = 'queued'", [])
        if run is None:
            return None
        self._update(run.id, state="running", attempts=run.attempts + 1)
        return self.get(run.id)

    def finish(self, run_id: str, state: State, **found: Any) -> bool:  # noqa: ANN401 - the columns' own types
        """Settle a run that is queued or running; return whether it still was."""
        run = self.get(run_id)
        if run is None or run.state not in OPEN_STATES:
            return False
        self._update(run_id, state=state, finished_s=time.time(), **found)
        return True

    def requeue(self, run_id: str, *, counted: bool) -> None:
        """Put a running job back in the queue, as if it had not been begun unless it is `counted`."""
        run = self.get(run_id)
        if run is not None and run.state == "running":
            self._update(run_id, state="queued", attempts=run.attempts - (not counted))

    def recover(self, working: Collection[str] = ()) -> None:
        """Requeue the running jobs that nobody works on; one that was begun twice is failed."""
        for row in list(self._runs.rows_where("state = 'running'", select="id, attempts")):
            if row["id"] in working:
                continue
            if row["attempts"] < ATTEMPTS:
                self._update(row["id"], state="queued")
            else:
                self.finish(
                    row["id"],
                    "failed",
                    error="The server was stopped twice while it worked on this trace.",
                    hint="Try the command line: bubblefinder analyze FILE",
                )

    def edit(self, run_id: str, **changed: Any) -> None:  # noqa: ANN401 - the columns' own types
        """Change what people say of a run: label, commit, note, kept."""
        self._update(run_id, **changed)

    def delete(self, run_id: str) -> None:
        """Forget a run; SQLite overwrites what it held."""
        self._write(lambda: self._runs.delete_where("id = ?", [run_id]))
        self.shelf.drop(run_id)
        for values in self._values.values():
            values.pop(run_id, None)

    def older_than(self, moment_s: float) -> list[str]:
        """Return the ids of settled runs made before a moment that nobody wants kept."""
        where = "created_s < ? AND NOT coalesce(kept, 0) AND state NOT IN ('queued', 'running')"
        return [row["id"] for row in self._runs.rows_where(where, [moment_s], select="id")]

    def waiting(self) -> int:
        """Return how many runs are queued."""
        return int(self._runs.count_where("state = 'queued'"))

    def counts(self) -> dict[str, int]:
        """Return how many runs are in each state."""
        found = self._database.query("SELECT state, count(*) AS runs FROM runs GROUP BY state")
        return dict.fromkeys(STATES, 0) | {row["state"]: row["runs"] for row in found}

    def ahead_of(self, run: StoredRun) -> int:
        """Return how many runs are queued before this one."""
        where = "state = 'queued' AND rowid < (SELECT rowid FROM runs WHERE id = ?)"
        return int(self._runs.count_where(where, [run.id]))

    def of_label(self, label: str, *metrics: str, limit: int = 500) -> list[tuple[StoredRun, tuple[float | None, ...]]]:
        """Return the newest finished runs of a label with their values of some metrics, oldest first."""
        runs = self.shelf.of_label(label, limit)
        columns = [self._values_of(metric, runs) for metric in metrics]
        return [(run, tuple(values[run.id] for values in columns)) for run in runs]

    def _values_of(self, metric: str, runs: Sequence[StoredRun]) -> dict[str, float | None]:
        """Return a metric's values by run; what was read once is kept, since a finished run's never change."""
        values = self._values.setdefault(metric, {})
        missing = [run.id for run in runs if run.id not in values]
        if missing:
            found = self._database.query(
                "SELECT id, json_extract(metrics, ?) AS value FROM runs WHERE id IN (SELECT value FROM json_each(?))",
                ['$."' + metric.replace('"', "") + '"', json.dumps(missing)],
            )
            values |= {row["id"]: row["value"] for row in found}
        while len(self._values) > _MOST_METRICS:
            del self._values[next(name for name in self._values if name != metric)]
        return values

    def _create(self) -> None:
        self._runs.create(_COLUMNS, pk="id", if_not_exists=True)
        for name in _COLUMNS.keys() - self._runs.columns_dict.keys():
            self._runs.add_column(name, _COLUMNS[name])
        self._runs.create_index(["label", "created_s"], if_not_exists=True)
        self._runs.create_index(["state"], if_not_exists=True)
        self._runs.create_index(["label", "state"], if_not_exists=True)

    def _update(self, run_id: str, **changed: Any) -> None:  # noqa: ANN401 - the columns' own types
        self._write(lambda: self._runs.update(run_id, changed))
        self._reshelve(run_id)

    def _reshelve(self, run_id: str) -> None:
        """Hold a run in memory as the file has it."""
        for row in self._runs.rows_where("id = ?", [run_id], select=_SHOWN):
            self.shelf.put(_stored(row))

    def _write(self, act: Callable[[], T]) -> T:
        """Do a write, once more if the disk was full and room could be made."""
        self.version += 1
        try:
            return act()
        except sqlite3.Error as error:
            if not is_out_of_room(error) or not self._relief():
                raise
        return act()

    def _first(self, where: str, values: list[Any]) -> StoredRun | None:
        row = next(self._runs.rows_where(where, values, order_by="rowid", limit=1), None)
        return _stored(row) if row else None


def is_out_of_room(error: sqlite3.Error) -> bool:
    """Say whether a write failed for want of room."""
    return _code(error) in _OUT_OF_ROOM


def is_passing(error: sqlite3.Error) -> bool:
    """Say whether the same call may succeed later: the disk is full or fails, or another program holds the file."""
    return _code(error) in _PASSING


def _code(error: sqlite3.Error) -> int:
    """Return the primary result code of SQLite."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def _unusable(path: Path, error: sqlite3.Error) -> UsageError:
    if is_out_of_room(error):
        return UsageError(f"the database {path} can't be written: {error}", hint="make room on its disk")
    return UsageError(
        f"the database {path} is damaged: {error}",
        hint="put a copy of it back, or start with an empty folder (--data DIR); the reports are still in this one",
    )


def _stored(row: dict[str, Any]) -> StoredRun:
    metrics = json.loads(row.get("metrics") or "{}")
    flags = {name: bool(row[name]) for name in ("at_least", "kept")}
    return StoredRun(**row | flags | {"metrics": metrics})


def _opened(path: Path) -> Database:
    """Open the database with sqlite-utils, whose import drags in pandas wherever it is installed.

    That costs 65 MiB and half a second, and nothing here uses it: mark it as absent during the import.
    """
    hidden = "pandas" not in sys.modules
    if hidden:
        sys.modules["pandas"] = None  # type: ignore[assignment]
    try:
        from sqlite_utils import Database
    finally:
        if hidden:
            del sys.modules["pandas"]
    try:
        return Database(path)
    except sqlite3.Error as error:
        raise _unusable(path, error) from error
