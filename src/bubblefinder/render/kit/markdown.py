"""Markdown that GitHub shows, with everything from a capture shown as text."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bubblefinder.report.sentences import plain
from bubblefinder.units import plural

if TYPE_CHECKING:
    from bubblefinder.render.kit.sheet import Level, Sheet, Table

COMMENT_LIMIT: Final = 60_000
"""Bytes; GitHub refuses comments above 65,536 characters."""
SUMMARY_LIMIT: Final = 1_000_000
"""Bytes; GitHub drops a step's job summary above 1,024 KiB."""
_FEWER_ROWS: Final = (100, 20)
_SIGNS: Final[dict[Level | None, str]] = {"ok": "✓ ", "fail": "✗ ", "unknown": "? ", None: ""}
_SPECIAL: Final = re.compile(r"[^\w .,;:/=+()%'-]|(?<!\w)_|_(?!\w)", re.ASCII)
_NO_ADDRESS: Final = re.compile(r"[^\w:/?&=%.,~#+@-]", re.ASCII)
_REFERENCES: Final = {"@": "&#64;&#8203;", "#": "&#35;&#8203;"}


def write(sheet: Sheet, report_url: str = "") -> str:
    """Return a comment within GitHub's limit that ends in the marker a sticky comment is found by.

    It shows the verdict, its points and a link to `report_url`; the rest opens on a click.
    """
    marker = f"<!-- bubblefinder:{sheet.document} -->\n"
    return _within(sheet, report_url, COMMENT_LIMIT - len(marker)) + marker


def summary(sheet: Sheet, report_url: str = "") -> str:
    """Return the same without the marker, with room for everything, to append to $GITHUB_STEP_SUMMARY."""
    return _within(sheet, report_url, SUMMARY_LIMIT)


def link(text: str, url: str) -> str:
    """Return a link whose address can't end it early; nothing without an address."""
    safe = _NO_ADDRESS.sub(lambda found: "".join(f"%{byte:02X}" for byte in found.group().encode()), url)
    return f"[{escape(text, 200)}]({safe})" if url else ""


def escape(text: str | None, limit: int = 160) -> str:
    """Return text from a capture as Markdown that shows it and does nothing: no markup, mention or table cell."""
    return _SPECIAL.sub(_entity, plain(text, limit))


def code(text: str | None) -> str:
    """Return a name as code; empty for an unknown one."""
    return f"<code>{escape(text)}</code>" if text else ""


def table(one: Table) -> str:
    """Return a table and its note: words begin at the left, numbers end at the right, the longest cells are cut."""
    sides = [":--" if left else "--:" for left in one.words]
    rows = [[escape(cell, 400) for cell in row] for row in one.rows]
    lines = [[escape(name) for name in one.header], sides, *rows]
    note = f"\n\n_{escape(one.note, 400)}_" if one.note else ""
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + note


def folded(summary: str, body: str) -> str:
    """Return a section that opens on a click."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def _entity(found: re.Match[str]) -> str:
    character = found.group()
    return _REFERENCES.get(character, character if ord(character) > 127 else f"&#{ord(character)};")  # noqa: PLR2004 - ASCII


def _within(sheet: Sheet, report_url: str, limit: int) -> str:
    """Return the fullest text within so many bytes: all tables, fewer of them, or the first cut."""
    whole = len(sheet.tables)
    tries = [(shown, None) for shown in range(whole, 0, -1)] + [(1, rows) for rows in _FEWER_ROWS if whole]
    for shown, rows in tries:
        text = _comment(sheet, report_url, shown, rows)
        if len(text.encode()) <= limit:
            return text
    return _comment(sheet, report_url, 0, None)


def _comment(sheet: Sheet, report_url: str, shown: int, rows: int | None) -> str:
    bold = f"**{escape(sheet.verdict, 400)}**" + (f": {escape(sheet.rest, 1000)}" if sheet.rest else "")
    points = [f"* **{escape(name)}**: {escape(text, 600)}" for name, text in sheet.points]
    parts = [f"### bubblefinder {sheet.document}\n\n{_SIGNS[sheet.level]}{bold}", "\n".join(points)]
    if sheet.sources:
        parts.append(f"<sub>{' · '.join(escape(source, 300) for source in sheet.sources[:10])}</sub>")
    parts += [link("full report", report_url), *(f"> {escape(warning, 400)}" for warning in sheet.warnings)]
    parts += [folded(escape(one.title), _table(one, rows)) for one in sheet.tables[:shown]]
    if left_out := len(sheet.tables) - shown:
        parts.append(f"_{plural(left_out, 'table')} left out: a comment has no room for more. The HTML has all._")
    parts.append(f"<sub>{escape(sheet.basis, 600)}</sub>" if sheet.basis else "")
    return "\n\n".join(part for part in parts if part) + "\n\n"


def _table(one: Table, rows: int | None) -> str:
    left = 0 if rows is None else max(len(one.rows) - rows, 0)
    cut = f"{plural(left, 'row')} left out to stay within GitHub's limit." if left else ""
    shown, note = one.rows[: len(one.rows) - left], f"{cut} {one.note}".strip()
    return table(replace(one, header=(one.header[0] or one.title, *one.header[1:]), rows=shown, note=note))
