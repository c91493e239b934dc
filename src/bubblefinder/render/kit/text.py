"""Sentences and tables for a terminal."""

from __future__ import annotations

import io
import os
import shutil
import sys
from dataclasses import replace
from textwrap import fill
from typing import TYPE_CHECKING, Final

from bubblefinder.report.sentences import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import RenderableType
    from rich.table import Table as RichTable

    from bubblefinder.render.kit.sheet import Sheet, Table

NAME_WIDTH: Final = 60
"""A longer name in the first column goes on in the next line."""
PLAIN_WIDTH: Final = 100
"""Columns of a page where no terminal says how many."""
_LEAST_WIDTH: Final = 20
"""Columns that a table can't do without."""
_UNLIMITED: Final = 100_000
_INDENT: Final = 2


def write(sheet: Sheet, width: int | None = None) -> str:
    """Return the verdict, what it rests on, then the tables, which are as wide as they like without a terminal."""
    lines = [
        sheet.headline,
        *(f"{name}: {text}" for name, text in sheet.points),
        sheet.basis,
        *(f"warning: {plain(warning, 400)}" for warning in sheet.warnings),
    ]
    lines = [line for line in lines if line]
    lines += ["", *sheet.sources] if sheet.sources else []
    parts = [
        "\n".join(prose(line, width or PLAIN_WIDTH) for line in lines),
        *(draw(table, width) for table in sheet.tables),
    ]
    return "\n\n".join(parts) + "\n"


def prose(line: str, width: int | None, indent: str = "") -> str:
    """Return a line in as many as a terminal `width` columns wide needs, all but the first indented."""
    if width is None or len(line) <= width:
        return line
    return fill(line, width, subsequent_indent=indent, break_on_hyphens=False)


def draw(table: Table, width: int | None = None) -> str:
    """Return a table with its columns lined up: numbers to the right, words to the left, long cells in lines."""
    shown = _fitting(table, width)
    lines = _lines(shown, (width or _UNLIMITED) - _INDENT)
    return "\n".join([shown.title, *lines, *([prose(shown.note, width or PLAIN_WIDTH)] if shown.note else [])])


def rich_table(table: Table) -> RichTable:
    """Return a table for rich to draw; nothing in its cells is taken for markup."""
    from rich.table import Table as RichTable
    from rich.text import Text

    drawn = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for number, (name, left) in enumerate(zip(table.header, table.words, strict=True)):
        drawn.add_column(
            Text(name),
            justify="left" if left else "right",
            overflow="fold",
            no_wrap=not left,
            max_width=NAME_WIDTH if number == 0 else None,
        )
    for row in table.rows:
        drawn.add_row(*map(Text, row))
    return drawn


def show(page: Callable[[int], RenderableType]) -> None:
    """Print what `page` makes of a width: the terminal's, or else what COLUMNS says, or the usual one."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        console.print(page(console.width), crop=False)
    else:
        width = page_width() or PLAIN_WIDTH
        sys.stdout.write(drawn(page(width), width))


def page_width() -> int | None:
    """Return how many columns the terminal has, or COLUMNS says; null where standard output is none and it is unset."""
    columns = os.environ.get("COLUMNS", "")
    asked = columns.isdecimal() and int(columns) > 0
    return max(shutil.get_terminal_size().columns, _LEAST_WIDTH) if asked or sys.stdout.isatty() else None


def drawn(page: RenderableType, width: int) -> str:
    """Return what rich makes of a page as plain text, `width` columns wide."""
    from rich.console import Console

    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False, legacy_windows=False)
    console.print(page, crop=False)
    text = console.file.getvalue()  # type: ignore[attr-defined] # it is the StringIO above
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def _lines(table: Table, width: int) -> list[str]:
    return [(" " * _INDENT + line).rstrip() for line in drawn(rich_table(table), width).splitlines()]


def _fitting(table: Table, width: int | None) -> Table:
    """Return the table, without the columns it can spare where there is no room for them."""
    if not table.spare or width is None or max(map(len, _lines(table, _UNLIMITED))) <= width:
        return table
    left_out = ", ".join(name for name in table.header[-table.spare :] if name)
    return replace(table.narrow(), note=f"{table.note} A wider terminal shows {left_out} as well.".strip())
