"""The runs the server knows, in one SQLite table."""

from __future__ import annotations

import json
import secrets
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from sqlite_utils import Database

State = Literal["queued", "running", "done", "failed", "cancelled"]
OPEN_STATES: Final = ("queued", "running")
SORTS: Final = {
    "created": "created_s",
    "label": "label COLLATE NOCASE",
    "name": "name COLLATE NOCASE",
    "commit": '"commit"',
    "gpu": "gpu COLLATE NOCASE",
    "nsys": "nsys",
    "step": "step_p50_ns",
    "bubble": "bubble_share",
}
_ATTEMPTS: Final = 2
_SEARCHED: Final = ("name", "label", "commit", "gpu", "nsys", "verdict", "state")
_COLUMNS: Final[dict[str, type]] = {
    "id": str, "name": str, "label": str, "commit": str, "baseline": str, "size_bytes": int, "state": str,
    "attempts": int, "created_s": float, "finished_s": float, "error": str, "hint": str, "gpu": str, "nsys": str,
    "step_p50_ns": float, "bubble_share": float, "at_least": int, "verdict": str, "metrics": str,
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """One upload and what became of it; unknown is null.

    `metrics` maps metric ids to values, for trends; `at_least` says that `bubble_share` is a lower
    bound; `attempts` counts the jobs begun for it.
    """

    id: str
    name: str
    label: str | None = None
    commit: str | None = None
    baseline: str | None = None
    size_bytes: int = 0
    state: State = "queued"
    attempts: int = 0
    created_s: float = field(default_factory=time.time)
    finished_s: float | None = None
    error: str | None = None
    hint: str | None = None
    gpu: str | None = None
    nsys: str | None = None
    step_p50_ns: float | None = None
    bubble_share: float | None = None
    at_least: bool = False
    verdict: str | None = None
    metrics: dict[str, float | None] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """What to call the run on a page."""
        return f"{self.label} ({self.name})" if self.label else self.name


def new_id() -> str:
    """Return an id of 128 random bits that is also fit for a path."""
    return secrets.token_hex(16)


class Store:
    """Reads and writes runs from one thread; a write is in the file before the call returns."""

    def __init__(self, path: Path) -> None:
        """Open the database, and create it where it is missing."""
        self._database = _open_database(path)
        self._runs = self._database.table("runs")
        self._runs.create(_COLUMNS, pk="id", if_not_exists=True)
        self._runs.create_index(["label", "created_s"], if_not_exists=True)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def add(self, run: StoredRun) -> None:
        """Add a run whose file has arrived whole."""
        self._runs.insert(asdict(run))

    def get(self, run_id: str) -> StoredRun | None:
        """Return a run, or null if there is none of this id."""
        return self._first("id = ?", [run_id])

    def ids(self, *states: State) -> set[str]:
        """Return the ids of the runs in these states, or of all."""
        where = f"state IN ({','.join('?' * len(states))})" if states else None
        return {row["id"] for row in self._runs.rows_where(where, states, select="id")}

    def claim(self) -> StoredRun | None:
        """Mark the run that has waited longest as running and return it; null if none waits."""
        run = self._first("state = 'queued'", [], order_by="created_s, rowid")
        if run is None:
            return None
        self._runs.update(run.id, {"state": "running", "attempts": run.attempts + 1})
        return self.get(run.id)

    def finish(self, run_id: str, state: State, **found: Any) -> bool:  # noqa: ANN401 - the columns' own types
        """Settle a run that is queued or running; return whether it still was."""
        run = self.get(run_id)
        if run is None or run.state not in OPEN_STATES:
            return False
        self._runs.update(run_id, {"state": state, "finished_s": time.time(), **found})
        return True

    def requeue(self, run_id: str) -> None:
        """Put a running job back in the queue, as if it had not been begun."""
        run = self.get(run_id)
        if run is not None and run.state == "running":
            self._runs.update(run_id, {"state": "queued", "attempts": run.attempts - 1})

    def recover(self) -> None:
        """Requeue the jobs of a server that was killed; one that was begun twice is failed."""
        for row in list(self._runs.rows_where("state = 'running'")):
            if row["attempts"] < _ATTEMPTS:
                self._runs.update(row["id"], {"state": "queued"})
            else:
                self.finish(
                    row["id"],
                    "failed",
                    error="The server was stopped twice while it worked on this trace.",
                    hint="Try the command line: bubblefinder analyze FILE",
                )

    def delete(self, run_id: str) -> None:
        """Forget a run; SQLite overwrites what it held."""
        self._runs.delete_where("id = ?", [run_id])
        self._runs.db.vacuum()

    def older_than(self, moment_s: float) -> list[str]:
        """Return the ids of settled runs made before a moment."""
        where = "created_s < ? AND state NOT IN ('queued', 'running')"
        return [row["id"] for row in self._runs.rows_where(where, [moment_s], select="id")]

    def waiting(self) -> int:
        """Return how many runs are queued."""
        return int(self._runs.count_where("state = 'queued'"))

    def ahead_of(self, run: StoredRun) -> int:
        """Return how many runs are queued before this one."""
        return int(self._runs.count_where("state = 'queued' AND created_s < ?", [run.created_s]))

    def listed(
        self, *, search: str = "", sort: str = "created", descending: bool = True, limit: int = 200, offset: int = 0
    ) -> tuple[list[StoredRun], int]:
        """Return the runs that hold every word of `search`, and how many there are; `sort` is a key of SORTS."""
        where, words = _matching(search)
        column = SORTS[sort]
        order = f"{column} IS NULL, {column} {'DESC' if descending else 'ASC'}, created_s DESC"
        found = self._runs.rows_where(where, words, order_by=order, limit=limit, offset=offset)
        return [_stored(row) for row in found], int(self._runs.count_where(where, words))

    def labels(self) -> list[str]:
        """Return the labels of finished runs."""
        where = "state = 'done' AND label IS NOT NULL"
        return [row["label"] for row in self._runs.rows_where(where, select="DISTINCT label", order_by="label")]

    def of_label(self, label: str, limit: int = 500) -> list[StoredRun]:
        """Return the newest finished runs of a label, oldest first."""
        found = self._runs.rows_where("label = ? AND state = 'done'", [label], order_by="created_s DESC", limit=limit)
        return [_stored(row) for row in found][::-1]

    def before(self, run: StoredRun) -> StoredRun | None:
        """Return the last finished run with the same label before this one."""
        where = "label = ? AND state = 'done' AND created_s < ?"
        return self._first(where, [run.label, run.created_s], order_by="created_s DESC")

    def _first(self, where: str, values: list[Any], order_by: str = "rowid") -> StoredRun | None:
        row = next(self._runs.rows_where(where, values, order_by=order_by, limit=1), None)
        return _stored(row) if row else None


def _matching(search: str) -> tuple[str, list[str]]:
    columns = " || ' ' || ".join(f"""coalesce("{name}", '')""" for name in _SEARCHED)
    words = search.split()[:10]
    where = " AND ".join(["1", *[rf"({columns}) LIKE ? ESCAPE '\'" for _ in words]])
    return where, [f"%{_literal(word)}%" for word in words]


def _literal(word: str) -> str:
    return word.replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")


def _stored(row: dict[str, Any]) -> StoredRun:
    values = row | {"at_least": bool(row["at_least"]), "metrics": json.loads(row["metrics"] or "{}")}
    return StoredRun(**values)


def _open_database(path: Path) -> Database:
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
    database = Database(path)
    database.execute("PRAGMA secure_delete = ON")
    database.execute("PRAGMA foreign_keys = ON")
    return database
