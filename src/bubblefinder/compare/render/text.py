"""A comparison for the terminal."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.render.tables import tables
from bubblefinder.compare.words import capture_name, rests_on
from bubblefinder.report.words import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.compare.model import Diff
    from bubblefinder.compare.render.tables import Table


NAME_WIDTH: Final = 60


def render(diff: Diff) -> str:
    """Return the comparison as plain text: the verdict, what it rests on, then the tables."""
    lines = [diff.headline, rests_on(diff)]
    lines += [f"warning: {plain(w, 400)}" for w in diff.warnings]
    lines += [""]
    for side, captures in (("base", diff.base), ("head", diff.head)):
        lines += [f"{side}: {capture_name(c)}, {c.capture_mode} mode, {c.steps} steps" for c in captures]
    parts = ["\n".join(lines), *(draw(table) for table in tables(diff))]
    return "\n\n".join(parts) + "\n"


def draw(table: Table) -> str:
    """Return a table with its columns lined up: numbers to the right, words to the left, long names in lines."""
    rows = [line for row in table.rows for line in _wrapped(row)]
    columns = list(zip(table.header, *rows, strict=True))
    lined = [_column(cells, words=words) for cells, words in zip(columns, table.words, strict=True)]
    lines = ["  " + "  ".join(row).rstrip() for row in zip(*lined, strict=True)]
    return "\n".join([table.title, *lines, *([table.note] if table.note else [])])


def _wrapped(row: Sequence[str]) -> list[tuple[str, ...]]:
    first, *more = wrap(row[0], NAME_WIDTH, subsequent_indent="  ") or [""]
    return [(first, *row[1:]), *((line, *[""] * (len(row) - 1)) for line in more)]


def _column(cells: Sequence[str], *, words: bool) -> list[str]:
    width = max(len(text) for text in cells)
    return [f"{text:<{width}}" if words else f"{text:>{width}}" for text in cells]
