"""A comparison for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubblefinder.compare.render.tables import tables
from bubblefinder.compare.words import capture_name, rests_on
from bubblefinder.report.words import plain
from bubblefinder.units import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.compare.model import Diff
    from bubblefinder.compare.render.tables import Table


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
    """Return a table with its columns lined up: the first to the left, the others to the right."""
    rows = [table.header, *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.header))]
    lines = [_line(row, widths) for row in rows]
    return "\n".join([table.title, *lines, *([table.note] if table.note else [])])


def _line(row: Sequence[str], widths: list[int]) -> str:
    first, *others = zip(row, widths, strict=True)
    cells = [f"  {first[0]:<{first[1]}}", *(_cell(text, width) for text, width in others)]
    return "  ".join(cells).rstrip()


def _cell(text: str, width: int) -> str:
    return f"{text:>{width}}" if text[:1].isdigit() or text[:1] in f"+-±{UNKNOWN}" else f"{text:<{width}}"
