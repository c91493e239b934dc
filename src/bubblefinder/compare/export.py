"""A history as plain rows for other tools."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from bubblefinder.compare.history import runs, values
from bubblefinder.compare.metrics import METRICS
from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlite_utils import Database

COLUMNS = ("run", "added_at", "label", "commit", "name", "state", "metric", "where", "unit", "value")


def render(database: Database, label: str | None, form: str) -> str:
    """Return a row a value, as CSV or JSON.

    Raises:
        UsageError: the format is neither.
    """
    if form == "json":
        return json.dumps(list(_rows(database, label)), indent=1) + "\n"
    if form != "csv":
        raise UsageError(f"there is no format {form!r} for a history", hint="use csv or json")
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: _inert(value) for key, value in row.items()} for row in _rows(database, label))
    return text.getvalue()


def _rows(database: Database, label: str | None) -> Iterator[dict[str, Any]]:
    for run in runs(database, label):
        facts = {name: getattr(run, name) for name in ("added_at", "label", "commit", "name", "state")}
        for (metric, where), value in values(database, run.id).items():
            unit = METRICS[metric].unit if metric in METRICS else None
            of = ";".join(f"{key}={one}" for key, one in where)
            yield {"run": run.id, **facts, "metric": metric, "where": of, "unit": unit, "value": value}


def _inert(value: object) -> object:
    """Keep a spreadsheet from taking a name for a formula."""
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"} else value
