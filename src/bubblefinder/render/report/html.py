"""The HTML report: one file that works offline, under a policy that allows only its own inline parts."""

from __future__ import annotations

import json as stdlib_json
import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.render.kit.html import environment, harmless, page
from bubblefinder.render.report import html_charts
from bubblefinder.render.report.charts import (
    MAX_MARKS,
    MAX_STEPS,
    figures,
    filled_histograms,
    is_cut,
    leading_rows,
    marks,
)
from bubblefinder.render.report.sections import NAMES, gap_table, gpu_table, notes, sections
from bubblefinder.report import json, sentences
from bubblefinder.report.many import gpu_words
from bubblefinder.report.prediction_sentences import gain_words, in_turn_words
from bubblefinder.report.read import ELEMENT_ID
from bubblefinder.report.verdict import verdict
from bubblefinder.timeline.model import LEDGER_CLASSES
from bubblefinder.trace.model import QualityNote
from bubblefinder.units import count, duration, milliseconds, plural, share

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment

    from bubblefinder.render.kit.figure import Figure
    from bubblefinder.render.kit.sheet import Section
    from bubblefinder.report.charts import GapRow, StepTimeline, TimelineBar
    from bubblefinder.report.model import Report

MAX_ROWS: Final = 3_000
"""Windows that the embedded report keeps; the JSON report keeps all."""
TABLE_ROWS: Final = 200
"""Rows of a table on the page."""
NOTABLE_BARS: Final = 60


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
        _environment()
        .get_template("body.html.j2")
        .render(
            report=report,
            verdict=verdict(report),
            embedded=harmless(json.encode(thinned(report)).decode()),
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
    rows = leading_rows(report)
    shared = sections(report)
    return {
        "sections": shared,
        "contents": _contents(report, shared),
        "notes": notes(report),
        "gpu_table": gpu_table(report),
        "gap_table": gap_table(report.detail.gaps),
        "gap_spans": [_longest(row) for row in report.detail.gaps],
        "key_figures": html_charts.key_figures(report),
        "strip": html_charts.strip(report.steps.per_step),
        "waterfall": html_charts.waterfall(report),
        "role_segments": html_charts.role_segments(report),
        "rank_bars": html_charts.rank_bars(report),
        "gain_words": gain_words,
        "in_turn_words": in_turn_words,
        "rows": rows,
        "ledger_known": html_charts.ledger_known(report.steps.per_step),
        "shown_rows": rows[:TABLE_ROWS],
        "binned": len(rows) > MAX_STEPS,
        "is_cut": is_cut(rows),
        "histograms": filled_histograms(report),
        "lead_stats": _lead_stats(report),
        "notable": notable,
        "kind_labels": sentences.KIND_LABELS,
        "longest_kernel_ns": max((row.per_step_ns for row in report.detail.kernels), default=1) or 1,
    }


def notable(timeline: StepTimeline) -> list[TimelineBar]:
    """Return the waits, launches, replays and wide gaps of a drawn step, the longest first."""
    kinds = {"launch", "wait", "blamed_wait", "replay", "drain", *LEDGER_CLASSES[2:]}
    bars = [bar for bar in timeline.bars if bar.kind in kinds]
    return sorted(bars, key=lambda bar: bar.start_ns - bar.end_ns)[:NOTABLE_BARS]


def _contents(report: Report, shared: Mapping[str, Section]) -> list[str]:
    """Return the anchors of the page's sections; the verdict on top holds the ledger."""
    detail = report.detail
    drawn = {
        "step": html_charts.waterfall(report),
        "timelines": detail.timelines,
        "run": leading_rows(report),
        "gaps": detail.gaps or filled_histograms(report),
        "leads": detail.leads,
        "kernels": detail.kernels,
    }
    there = {"findings", "quality", "reading", "provenance", *shared, *(name for name, one in drawn.items() if one)}
    return [anchor for anchor in NAMES if anchor in there and anchor != "ledger"]


def _longest(row: GapRow) -> tuple[int, int] | None:
    """Return where the longest of recurring gaps lies in the capture."""
    return None if row.longest_start_ns is None else (row.longest_start_ns, row.longest_start_ns + row.max_ns)


def _lead_stats(report: Report) -> list[tuple[str, int, float, int, int]]:
    """Return role, launches, share in time, smallest and largest lead."""
    stats = []
    for role in dict.fromkeys(lead.role for lead in report.detail.leads):
        leads = [lead.lead_ns for lead in report.detail.leads if lead.role == role]
        stats.append((role or "no role", len(leads), sum(ns > 0 for ns in leads) / len(leads), min(leads), max(leads)))
    return stats


def _marks_note(drawn: Mapping[str, Figure]) -> str:
    number = sum(marks(figure) for figure in drawn.values())
    return f"The charts draw {number:,} marks; no page draws more than {MAX_MARKS:,}."


def unbroken(text: str) -> str:
    """Return the text with numbers tied to their units, so that no line breaks between them."""
    return re.sub(r"(?<=\d) (?=(?:ns|us|ms|s|%)\b|%)", "\N{NO-BREAK SPACE}", text)


@cache
def _environment() -> Environment:
    made = environment("bubblefinder.render.report")
    helpers = (
        duration,
        milliseconds,
        share,
        count,
        plural,
        sentences.plain,
        sentences.class_label,
        sentences.site_words,
        sentences.reference_url,
        sentences.per_step_words,
        sentences.note_count,
    )
    made.filters |= {helper.__name__: helper for helper in helpers}
    made.filters["unbroken"] = unbroken
    made.globals |= {
        "NAMES": NAMES,
        "LEDGER_CLASSES": LEDGER_CLASSES,
        "CLASS_MEANINGS": sentences.CLASS_MEANINGS,
        "EXCLUDED_LABELS": sentences.EXCLUDED_LABELS,
        "left_out_words": sentences.left_out_words,
        "MODE_LABELS": sentences.MODE_LABELS,
        "gpu_words": gpu_words,
        "scope_words": sentences.scope_words,
        "steps_sentences": sentences.steps_sentences,
    }
    return made
