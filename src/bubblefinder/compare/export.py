"""A history as plain rows for other tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bubblefinder.compare.history import runs, values
from bubblefinder.compare.metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlite_utils import Database

COLUMNS = ("run", "added_at", "label", "commit", "name", "state", "metric", "where", "unit", "value")


def records(database: Database, label: str | None) -> Iterator[dict[str, Any]]:
    """Yield a record a value of every run."""
    for run in runs(database, label):
        facts = {name: getattr(run, name) for name in ("added_at", "label", "commit", "name", "state")}
        for (metric, where), value in values(database, run.id).items():
            unit = METRICS[metric].unit if metric in METRICS else None
            of = ";".join(f"{key}={one}" for key, one in where)
            yield {"run": run.id, **facts, "metric": metric, "where": of, "unit": unit, "value": value}
