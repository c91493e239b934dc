"""A comparison for the terminal."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from textwrap import fill, wrap
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.sentences import capture_name, rests_on
from bubblefinder.render.diff.tables import tables
from bubblefinder.report.sentences import plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.compare.model import Diff
    from bubblefinder.render.diff.tables import Table

NAME_WIDTH: Final = 60
_LEAST: Final = 12
_GAP: Final = 2


def render(diff: Diff, width: int | None = None) -> str:
    """Return the comparison as plain text: the verdict, what it rests on, then the tables.

    It fits a terminal `width` columns wide; without a width every sentence is one line.
    """
    lines = [diff.headline, rests_on(diff)]
    lines += [f"warning: {plain(w, 400)}" for w in diff.warnings]
    lines += [""]
    for side, captures in (("base", diff.base), ("head", diff.head)):
        lines += [f"{side}: {capture_name(c)}, {c.capture_mode} mode, {c.steps} steps" for c in captures]
    parts = ["\n".join(prose(line, width) for line in lines), *(draw(table, width) for table in tables(diff))]
    return "\n\n".join(parts) + "\n"


def prose(line: str, width: int | None, indent: str = "") -> str:
    """Return a line in as many as a terminal `width` columns wide needs, all but the first indented."""
    if width is None or len(line) <= width:
        return line
    return fill(line, width, subsequent_indent=indent, break_on_hyphens=False)


def draw(table: Table, width: int | None = None) -> str:
    """Return a table with its columns lined up: numbers to the right, words to the left, long cells in lines."""
    shown = _fitting(table, width)
    widths = _widths(shown, width)
    lines = [line for row in (shown.header, *shown.rows) for line in _lines(row, widths, shown.words)]
    return "\n".join([table.title, *lines, *([prose(shown.note, width)] if shown.note else [])])


def _fitting(table: Table, width: int | None) -> Table:
    """Return the table, without the columns it can spare where there is no room for them."""
    if not table.spare or width is None or _total(_natural(table)) <= width:
        return table
    kept = len(table.header) - table.spare
    left_out = ", ".join(name for name in table.header[kept:] if name)
    return replace(
        table,
        header=table.header[:kept],
        rows=[row[:kept] for row in table.rows],
        note=f"{table.note} A wider terminal shows {left_out} as well.".strip(),
    )


def _widths(table: Table, width: int | None) -> list[int]:
    """Return how wide each column is, the widest ones cut down until all fit; words break last."""
    widths = _natural(table)
    for least in (_longest_words(table), [_LEAST] * len(widths)):
        while width is not None and _total(widths) > width:
            wide = [number for number, cut in enumerate(least) if widths[number] > cut]
            if not wide:
                break
            widths[max(wide, key=widths.__getitem__)] -= 1
    return widths


def _longest_words(table: Table) -> list[int]:
    columns = zip(table.header, *table.rows, strict=True)
    return [max([_LEAST, *(len(word) + _GAP for cell in cells for word in cell.split())]) for cells in columns]


def _natural(table: Table) -> list[int]:
    names, *others = zip(table.header, *table.rows, strict=True)
    first = max(len(line) for name in names for line in _wrapped(name, NAME_WIDTH, "  "))
    return [first, *(max(len(cell) for cell in cells) for cells in others)]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * len(widths)


def _lines(row: Sequence[str], widths: Sequence[int], words: Sequence[bool]) -> Iterator[str]:
    cells = [_wrapped(cell, width, "" if n else "  ") for n, (cell, width) in enumerate(zip(row, widths, strict=True))]
    for parts in zip_longest(*cells, fillvalue=""):
        placed = (
            f"{part:<{width}}" if left else f"{part:>{width}}"
            for part, width, left in zip(parts, widths, words, strict=True)
        )
        yield ("  " + "  ".join(placed)).rstrip()


def _wrapped(cell: str, width: int, indent: str) -> list[str]:
    return wrap(cell, max(width, 1), subsequent_indent=indent, break_on_hyphens=False) or [""]
