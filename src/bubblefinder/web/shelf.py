"""The runs in memory, as lists and trends need them: a question costs what it shows, not what is stored."""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

State = Literal["queued", "running", "done", "failed", "cancelled"]
SEARCH_CHARACTERS: Final = 200
_SEARCH_WORDS: Final = 10
_SEARCHED: Final = ("name", "label", "commit", "note", "gpu", "nsys", "verdict", "state")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRun:
    """One upload and what became of it; unknown is null.

    `metrics` maps metric ids to values, for trends, and is empty in lists; `at_least` says that `bubble_share` is a
    lower bound; `attempts` counts the jobs begun for it; a run that is `kept` outlives its days.
    """

    id: str
    name: str
    label: str | None = None
    commit: str | None = None
    note: str | None = None
    kept: bool = False
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


def _text(name: str) -> Callable[[StoredRun], Any]:
    return lambda run: None if (value := getattr(run, name)) is None else value.casefold()


SORTS: Final[dict[str, Callable[[StoredRun], Any] | None]] = {
    "created": None,
    "label": _text("label"),
    "name": _text("name"),
    "commit": lambda run: run.commit,
    "gpu": _text("gpu"),
    "nsys": lambda run: run.nsys,
    "step": lambda run: run.step_p50_ns,
    "bubble": lambda run: run.bubble_share,
}
"""How a list can be sorted, by what of a run; null is the order of arrival: a clock may go backwards."""


class Shelf:
    """All runs without their metrics, given and kept in order of arrival, the finished ones by label too.

    Each takes about 1 KiB. Their reports take a thousand times as much of the disk, whose limit bounds them.
    """

    def __init__(self, runs: Iterable[StoredRun]) -> None:
        self._runs: dict[str, StoredRun] = {}
        self._texts: dict[str, str] = {}
        self._arrived: dict[str, int] = {}
        self._labelled: dict[str, list[tuple[int, str]]] = {}
        self._changed: dict[str, int] = {}
        self._changes = self._next = 0
        for run in runs:
            self.put(run)

    def put(self, run: StoredRun) -> None:
        """Hold a run, new or changed."""
        known = self._runs.get(run.id)
        if known is None:
            self._arrived[run.id] = self._next
            self._next += 1
        self._runs[run.id] = run
        self._texts[run.id] = " ".join(getattr(run, name) or "" for name in _SEARCHED).casefold()
        if known is not None and replace(known, note=run.note, kept=run.kept) == run:
            return
        if known is not None:
            self._take(known)
        if run.state == "done" and run.label is not None:
            insort(self._labelled.setdefault(run.label, []), (self._arrived[run.id], run.id))
            self._mark(run.label)

    def drop(self, run_id: str) -> None:
        """Forget a run."""
        run = self._runs.pop(run_id, None)
        if run is not None:
            self._take(run)
            del self._texts[run_id], self._arrived[run_id]

    def listed(
        self,
        *,
        search: str = "",
        label: str | None = None,
        states: Sequence[State] = (),
        sort: str = "created",
        descending: bool = True,
        limit: int = 200,
        offset: int = 0,
    ) -> tuple[list[StoredRun], int]:
        """Return the runs that hold every word of `search`, and how many there are; `sort` is a key of SORTS.

        Ascending is descending backwards, equals too, but that runs without a value come last either way, the newest
        first.
        """
        found, runs, texts = self._ids(sort, descending=descending), self._runs, self._texts
        for word in search[:SEARCH_CHARACTERS].casefold().split()[:_SEARCH_WORDS]:
            found = [run_id for run_id in found if word in texts[run_id]]
        if label is not None:
            found = [run_id for run_id in found if runs[run_id].label == label]
        if states:
            found = [run_id for run_id in found if runs[run_id].state in states]
        return [runs[run_id] for run_id in found[offset : offset + limit]], len(found)

    def labels(self) -> dict[str, int]:
        """Return the labels of finished runs, and how many each has."""
        return {label: len(runs) for label, runs in sorted(self._labelled.items())}

    def of_label(self, label: str, limit: int) -> list[StoredRun]:
        """Return the newest finished runs of a label, oldest first."""
        return [self._runs[run_id] for _, run_id in self._labelled.get(label, [])[-limit:]]

    def before(self, run: StoredRun) -> StoredRun | None:
        """Return the last finished run with the same label before this one."""
        runs = self._labelled.get(run.label, []) if run.label is not None and run.id in self._runs else []
        place = bisect_left(runs, (self._arrived[run.id], "")) if runs else 0
        return self._runs[runs[place - 1][1]] if place else None

    def version(self, label: str) -> int:
        """Return a number that is another one whenever the finished runs of a label have changed; 0 where none is.

        Notes, and whether a run is kept, don't count.
        """
        return self._changed.get(label, 0)

    def _ids(self, sort: str, *, descending: bool) -> list[str]:
        value = SORTS[sort]
        if value is None:
            return list(reversed(self._runs) if descending else self._runs)
        values = {run_id: value(run) for run_id, run in self._runs.items()}
        known = sorted((run_id for run_id in values if values[run_id] is not None), key=values.__getitem__)
        unknown = [run_id for run_id in values if values[run_id] is None]
        return (known[::-1] if descending else known) + unknown[::-1]

    def _take(self, run: StoredRun) -> None:
        """Take a run from those of its label."""
        if run.state != "done" or run.label is None:
            return
        runs = self._labelled[run.label]
        del runs[bisect_left(runs, (self._arrived[run.id], run.id))]
        self._mark(run.label)
        if not runs:
            del self._labelled[run.label], self._changed[run.label]

    def _mark(self, label: str) -> None:
        self._changes += 1
        self._changed[label] = self._changes
