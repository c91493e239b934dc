"""Rows for spreadsheets and frames."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def write(records: Iterable[Mapping[str, object]], columns: Sequence[str] = ()) -> str:
    """Return records of the same keys as CSV: one row each under one header; what is unknown is empty.

    Without records only those `columns` have a header that are said to be there.

    A text that a spreadsheet would take for a formula is led by an apostrophe.
    """
    rows = list(records)
    buffer = io.StringIO()
    if rows or columns:
        writer = csv.DictWriter(buffer, columns or list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _harmless(value) for name, value in row.items()} for row in rows)
    return buffer.getvalue()


def _harmless(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"} else value
