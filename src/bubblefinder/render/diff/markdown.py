"""A comparison as a pull request comment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.compare.sentences import MARKS, capture_name, rests_on, title_and_rest
from bubblefinder.render.diff.tables import tables
from bubblefinder.render.report.markdown import COMMENT_LIMIT, escape, folded, table

if TYPE_CHECKING:
    from bubblefinder.compare.model import Diff
    from bubblefinder.render.diff.tables import Table

MARKER: Final = "<!-- bubblefinder:diff -->\n"
_SIGNS: Final = {
    "regression": f"{MARKS['worse']} ",
    "improvement": f"{MARKS['better']} ",
    "mixed": f"{MARKS['changed']} ",
}


def render(diff: Diff) -> str:
    """Return a comment within GitHub's limit that ends in the marker a sticky comment is found by."""
    shown = tables(diff)
    for left_out in range(len(shown)):
        text = _comment(diff, shown[: len(shown) - left_out], left_out)
        if len(text.encode()) <= COMMENT_LIMIT:
            return text
    return _comment(diff, [], len(shown))


def _comment(diff: Diff, shown: list[Table], left_out: int) -> str:
    verdict, rest = title_and_rest(diff)
    bold = f"**{escape(verdict)}**: {escape(rest, 1000)}"
    parts = [f"### bubblefinder diff\n\n{_SIGNS.get(diff.verdict, '')}{bold}", escape(rests_on(diff), 600)]
    parts += [f"> {escape(warning, 400)}" for warning in diff.warnings]
    for number, one in enumerate(shown):
        body = _table(one)
        parts.append(body if number == 0 else folded(escape(one.title), body))
    if left_out:
        parts.append(f"_{left_out} tables don't fit into a comment; the HTML and the JSON have them._")
    sides = [f"{side}: {capture_name(c)}" for side, cs in (("base", diff.base), ("head", diff.head)) for c in cs]
    parts.append(f"<sub>{' · '.join(escape(side, 300) for side in sides[:10])}</sub>")
    return "\n\n".join(parts) + "\n\n" + MARKER


def _table(one: Table) -> str:
    header = (one.title, *one.header[1:])
    rows = [[escape(cell, 300) for cell in row] for row in one.rows]
    note = f"\n\n_{escape(one.note)}_" if one.note else ""
    return table(map(escape, header), rows, one.words) + note
