"""The HTML report: one file that works offline, under a policy that allows only its own inline parts."""

from __future__ import annotations

import json as stdlib_json
import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.render.kit.bars import segment
from bubblefinder.render.kit.html import Extra, environment, harmless, page
from bubblefinder.render.kit.sheet import Section
from bubblefinder.render.report import charted, html_charts
from bubblefinder.render.report.charts import MAX_MARKS, MAX_STEPS, figures, is_cut, leading_rows, marks
from bubblefinder.render.report.sections import MOST, NAMES, QUALITY, gap_table, notes, sections
from bubblefinder.report import json, sentences
from bubblefinder.report.json import ELEMENT_ID
from bubblefinder.report.prediction_sentences import gain_words, in_turn_words
from bubblefinder.report.verdict import verdict
from bubblefinder.trace.model import QualityNote
from bubblefinder.units import count, milliseconds, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from jinja2 import Environment

    from bubblefinder.render.kit.figure import Figure
    from bubblefinder.report.charts import GapRow
    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import Report

MAX_ROWS: Final = 3_000
"""Windows that the embedded report keeps; the JSON report keeps all."""
_WHOLE: Final = 600
"""Characters of a kernel's name that a pointer brings up."""
FOLDED: Final = Extra(is_folded=True)


def render(report: Report) -> str:
    """Return the whole page, with the report embedded as JSON."""
    title = f"{sentences.plain(report.run.label or report.trace.name, 80)} · bubblefinder"
    return page(title, render_body(report), charts=True)


def render_body(report: Report) -> str:
    """Return what stands between <body> and the scripts: sections, the charts' data and the embedded report.

    It holds no script that runs and no style, so any page with the scripts and the style of `kit.html` can carry it.
    """
    drawn = figures(report)
    return (
        templates()
        .get_template("body.html.j2")
        .render(
            report=report,
            verdict=verdict(report),
            embedded=harmless(json.encode(thinned(report)).decode()),
            drawn=drawn,
            figures=harmless(stdlib_json.dumps(drawn, separators=(",", ":"))),
            element_id=ELEMENT_ID,
            marks=_marks_note(drawn),
            **_parts(report),
        )
    )


def thinned(report: Report) -> Report:
    """Return the report as the page embeds it: very long runs keep evenly spaced windows, and say so."""
    rows = report.steps.rows
    if len(rows) <= MAX_ROWS:
        return report
    kept = [rows[index * len(rows) // MAX_ROWS] for index in range(MAX_ROWS)]
    message = (
        f"This page embeds {len(kept):,} of {len(rows):,} windows, evenly spaced; the statistics are those of all."
    )
    note = QualityNote(code="html-rows-thinned", level="info", message=message, count=len(rows) - len(kept))
    return replace(report, steps=replace(report.steps, rows=kept), quality=[*report.quality, note])


def _parts(report: Report) -> dict[str, Any]:
    shared = _sections(report)
    return {
        "sections": shared,
        "contents": _contents(report, shared),
        "extras": dict(_extras(report)),
        "captions": dict(_captions(report)),
        "notes": notes(report),
        "key_figures": list(html_charts.key_figures(report)),
        "strip": html_charts.strip(report.steps.per_step),
        "waterfall": html_charts.waterfall(report),
        "role_segments": html_charts.role_segments(report),
    }


def _sections(report: Report) -> dict[str, Section]:
    """Return the parts that all formats share, with the rows that a page has room for."""
    shared = sections(report) | {one.anchor: one for one in charted.sections(report, MOST)}
    if rows := report.detail.gaps:
        heading = "Recurring gaps, costliest first, and the call that ended them"
        shared["gaps"] = Section("gaps", heading, (), (gap_table(rows),))
    return shared


def _extras(report: Report) -> Iterator[tuple[tuple[str, int], Extra]]:
    """Yield what the page adds to a table of a part, by its anchor and the table's place in it."""
    detail = report.detail
    yield ("run", 0), Extra(is_folded=True, is_sortable=True)
    yield ("lengths", 0), FOLDED
    yield ("leads", 0), FOLDED
    yield ("gaps", 0), Extra(spans=[_longest(row) for row in detail.gaps], is_sortable=True)
    longest = max((row.per_step_ns for row in detail.kernels), default=1) or 1
    bars = [(segment("busy", sentences.plain(row.name), row.per_step_ns, 0, longest),) for row in detail.kernels]
    whole = [(sentences.plain(row.name, _WHOLE),) for row in detail.kernels]
    yield ("kernels", 0), Extra(bars=bars, drawn="time", names=whole, is_sortable=True)
    ends = [(sentences.plain(run.first, _WHOLE), sentences.plain(run.last, _WHOLE)) for run in detail.runs]
    yield ("kernels", 1), Extra(names=ends, is_sortable=True)
    yield ("ranks", 0), Extra(bars=html_charts.rank_bars(report), drawn="mean step")


def _captions(report: Report) -> Iterator[tuple[str, str]]:
    """Yield what there is to say of a chart, by its anchor."""
    rows, left_out = leading_rows(report), sentences.left_out_words(report)
    said = [f"One bar a window; pale ones are left out of the statistics{f' ({left_out})' if left_out else ''}."]
    if len(rows) > MAX_STEPS:
        said.append("The run is long: each bar is the mean of several neighbouring windows.")
    if is_cut(rows):
        said.append("Bars that reach the top are longer than drawn; the table has their length.")
    yield "run", " ".join(said)


def _contents(report: Report, shared: Mapping[str, Section]) -> list[str]:
    """Return the anchors of the page's sections; the verdict on top holds the ledger."""
    drawn = {"step": html_charts.waterfall(report), "timelines": report.detail.timelines}
    there = {"findings", "quality", "reading", *shared, *(name for name, one in drawn.items() if one)}
    return [anchor for anchor in NAMES if anchor in there and anchor != "ledger"]


def _longest(row: GapRow) -> tuple[int, int] | None:
    """Return where the longest of recurring gaps lies in the capture."""
    return None if row.longest_start_ns is None else (row.longest_start_ns, row.longest_start_ns + row.max_ns)


def evidence_extra(finding: Finding) -> Extra:
    """Return where each row of a finding's evidence lies."""
    return Extra(spans=[(one.start_ns, one.end_ns) for one in finding.evidence], is_folded=True)


def _marks_note(drawn: Mapping[str, Figure]) -> str:
    number = sum(marks(figure) for figure in drawn.values())
    return f"The charts draw {number:,} marks; no page draws more than {MAX_MARKS:,}."


def unbroken(text: str) -> str:
    """Return the text with numbers tied to their units and to what they count, so that no line breaks between them."""
    return re.sub(r"(?<=\d) (?=(?:ns|us|ms|s|%)\b|%)|(?<=[:;] \d\.) ", "\N{NO-BREAK SPACE}", text)


@cache
def templates() -> Environment:
    """Return the templates of a report."""
    made = environment("bubblefinder.render.report")
    helpers = (
        milliseconds,
        share,
        count,
        sentences.class_label,
        sentences.site_words,
        sentences.reference_url,
        sentences.per_step_words,
        sentences.note_count,
        unbroken,
    )
    made.filters |= {helper.__name__: helper for helper in helpers}
    made.globals |= {
        "NAMES": NAMES,
        "QUALITY": QUALITY,
        "CLASS_MEANINGS": sentences.CLASS_MEANINGS,
        "MODE_LABELS": sentences.MODE_LABELS,
        "folded": FOLDED,
        "evidence": charted.evidence,
        "evidence_extra": evidence_extra,
        "notable": charted.notable,
        "gain_words": gain_words,
        "in_turn_words": in_turn_words,
        "scope_words": sentences.scope_words,
        "steps_sentences": sentences.steps_sentences,
    }
    return made
