"""A judged budget in every format that people and CI read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from bubblefinder.compare.quantity import format_limit
from bubblefinder.compare.sentences import place
from bubblefinder.render.diff.tables import Table
from bubblefinder.render.diff.text import draw, prose
from bubblefinder.render.report.markdown import COMMENT_LIMIT, escape, table
from bubblefinder.report.sentences import plain
from bubblefinder.units import UNKNOWN, count, plural

if TYPE_CHECKING:
    from bubblefinder.compare.judge import Judged, Judgement

MARKER: Final = "<!-- bubblefinder:budget -->\n"
SIGNS: Final = {
    "ok": "✓", "improved": "✓", "within-noise": "✓", "warn": "!", "fail": "✗", "missing": "?", "incomparable": "?",
}  # fmt: skip
_UNANSWERED: Final = frozenset({"missing", "incomparable"})
_ORDER: Final = ("fail", "missing", "incomparable", "warn", "within-noise", "improved", "ok")


def text(judged: Judged, width: int | None = None) -> str:
    """Return the verdict, what it rests on, and the limits, broken ones first; `width` is that of a terminal."""
    opening = "\n".join(prose(line, width) for line in (judged.headline, rests_on(judged)))
    return f"{opening}\n\n{draw(limits(judged), width)}\n"


def json(judged: Judged) -> str:
    """Return bubblefinder.judgement/1 with sorted keys."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(judged, order="sorted"), indent=1).decode() + "\n"


def markdown(judged: Judged) -> str:
    """Return a pull request comment that ends in the marker a sticky comment is found by."""
    shown = limits(judged)
    for rows in (len(shown.rows), 100, 20):
        comment = _comment(judged, shown, rows)
        if len(comment.encode()) <= COMMENT_LIMIT:
            return comment
    return _comment(judged, shown, 0)


def _comment(judged: Judged, shown: Table, rows: int) -> str:
    left = len(shown.rows) - rows
    note = f"\n\n_{plural(left, 'limit')} left out to stay within GitHub's limit._" if left > 0 else ""
    cells = [[escape(cell, 400) for cell in row] for row in shown.rows[:rows]]
    body = table(shown.header, cells, shown.words) + note
    headline, rests = escape(judged.headline, 1000), escape(rests_on(judged), 400)
    return f"### bubblefinder budget\n\n**{headline}**\n\n{body}\n\n<sub>{rests}</sub>\n\n{MARKER}"


def junit(judged: Judged) -> str:
    """Return a test suite with a case a limit: broken is a failure, what couldn't be judged an error."""
    cases = judged.judgements
    numbers = {
        "tests": len(cases),
        "failures": sum(one.outcome == "fail" for one in cases),
        "errors": sum(one.outcome in _UNANSWERED and one.gates for one in cases),
    }
    suites = ET.Element("testsuites", {key: str(number) for key, number in numbers.items()})
    attributes = {"name": f"bubblefinder budget {plain(judged.name)}"} | {k: str(n) for k, n in numbers.items()}
    suite = ET.SubElement(suites, "testsuite", attributes)
    for one in cases:
        _case(suite, one)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def html(judged: Judged) -> str:
    """Return a page with the verdict and every limit."""
    from bubblefinder.render.diff.html import environment, page

    verdict, _, rest = judged.headline.partition(": ")
    kind = {0: "ok", 1: "fail"}.get(judged.exit_code, "unknown")
    template = environment().get_template("judged.html.j2")
    body = template.render(verdict=verdict, rest=rest, kind=kind, rests_on=rests_on(judged), limits=limits(judged))
    return page(f"{plain(judged.name, 60)} · bubblefinder budget", body)


def limits(judged: Judged) -> Table:
    """Return one row a limit, broken ones first."""
    rows = [
        (
            f"{one.metric}{place(one.where)}",
            one.limit or UNKNOWN,
            format_limit(one.value, one.unit) if one.value is not None else UNKNOWN,
            f"{SIGNS[one.outcome]} {one.outcome}",
            plain("; ".join(part for part in (one.message, one.why, _owner(one)) if part), 400),
        )
        for one in sorted(judged.judgements, key=lambda one: _ORDER.index(one.outcome))
    ]
    return Table("Limits", ("metric", "limit", "value", "verdict", "why"), rows)


def rests_on(judged: Judged) -> str:
    """Return what was judged, and against what."""
    parts = [plain(part, 80) for part in (judged.name, judged.label, judged.commit) if part]
    parts.append(f"{count(judged.steps)} decode steps")
    parts.append(f"baseline: {plain(judged.baseline, 120)}" if judged.baseline else "no baseline")
    return ", ".join(parts)


def _owner(one: Judgement) -> str:
    return f"owner: {one.owner}" if one.owner else ""


def _case(suite: ET.Element, one: Judgement) -> None:
    name = f"{one.metric}{place(one.where)} {one.limit}".strip()
    case = ET.SubElement(suite, "testcase", {"classname": "bubblefinder.budget", "name": name})
    properties = ET.SubElement(case, "properties")
    for key, told in (("verdict", one.outcome), ("severity", "error" if one.gates else "warn"), ("owner", one.owner)):
        if told:
            ET.SubElement(properties, "property", {"name": key, "value": plain(told)})
    message = plain(one.message, 400)
    if one.outcome == "fail":
        ET.SubElement(case, "failure", {"type": "fail", "message": message}).text = plain(one.why, 400)
    elif one.outcome in _UNANSWERED and one.gates:
        ET.SubElement(case, "error", {"type": one.outcome, "message": message})
    else:
        ET.SubElement(case, "system-out").text = f"{one.outcome}: {message}"
