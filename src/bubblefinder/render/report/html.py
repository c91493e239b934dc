"""The HTML report: one file that works offline, under a policy that allows only its own inline parts."""

from __future__ import annotations

import json as stdlib_json
import re
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.render.kit.html import environment, harmless, page, themes
from bubblefinder.render.report import economics, host, html_charts
from bubblefinder.render.report.charts import (
    MAX_MARKS,
    MAX_STEPS,
    figures,
    filled_histograms,
    is_cut,
    leading_rows,
    marks,
)
from bubblefinder.report import json, sentences
from bubblefinder.report.many import gpu_words, gpus_shown, ranks_shown
from bubblefinder.report.overhead_sentences import overhead_sentences
from bubblefinder.report.prediction_sentences import gain_words, in_turn_words
from bubblefinder.report.read import ELEMENT_ID
from bubblefinder.report.verdict import verdict
from bubblefinder.timeline.model import LEDGER_CLASSES
from bubblefinder.trace.model import QualityNote
from bubblefinder.units import count, duration, milliseconds, plural, share

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from jinja2 import Environment

    from bubblefinder.render.report.chart_style import Figure
    from bubblefinder.report.charts import StepTimeline, TimelineBar
    from bubblefinder.report.model import Report, StepRow

MAX_ROWS: Final = 3_000
"""Windows that the embedded report keeps; the JSON report keeps all."""
TABLE_ROWS: Final = 200
"""Rows of a table on the page."""
NOTABLE_BARS: Final = 60


@dataclass(frozen=True, slots=True)
class Assets:
    """The page's own scripts and styles, to be inlined or served: library, script, style."""

    plotly: str
    script: str
    style: str


def render(report: Report) -> str:
    """Return the whole page, with the report embedded as JSON."""
    assets = report_assets()
    title = f"{sentences.plain(report.run.label or report.trace.name, 80)} · bubblefinder"
    return page(title, render_body(report), style=assets.style, scripts=(assets.plotly, assets.script))


def render_body(report: Report) -> str:
    """Return what stands between <body> and the scripts: sections, the charts' data and the embedded report.

    It holds no script that runs and no style, so any page that loads `report_assets()` can carry it.
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


@cache
def report_assets() -> Assets:
    """Return the scripts and the style of the page."""
    folder = files("bubblefinder.render.report") / "assets"
    names = ("plotly-cartesian.min.js", "report.js", "report.css")
    plotly, script, style = (folder.joinpath(name).read_text("utf-8") for name in names)
    return Assets(plotly=plotly, script=script, style=themes() + style)


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
    gpus, other_gpus = gpus_shown(report)
    return {
        "gpus": gpus,
        "other_gpus": other_gpus,
        "other_ranks": ranks_shown(report)[1],
        "key_figures": html_charts.key_figures(report),
        "strip": html_charts.strip(report.steps.per_step),
        "waterfall": html_charts.waterfall(report),
        "role_segments": html_charts.role_segments(report),
        "ranks": html_charts.ranks(report),
        "overhead_notes": list(overhead_sentences(report.overhead)),
        "gain_words": gain_words,
        "in_turn_words": in_turn_words,
        "rows": rows,
        "ledger_known": html_charts.ledger_known(report.steps.per_step),
        "shown_rows": rows[:TABLE_ROWS],
        "binned": len(rows) > MAX_STEPS,
        "is_cut": is_cut(rows),
        "histograms": filled_histograms(report),
        "lead_stats": _lead_stats(report),
        "sections": _sections(report, rows),
        "host_sections": list(host.sections(report)),
        "notable": notable,
        "ordered_stats": lambda stats: [(name, stats[name]) for name in ("duration", *LEDGER_CLASSES) if name in stats],
        "kind_labels": sentences.KIND_LABELS,
        "longest_kernel_ns": max((row.per_step_ns for row in report.detail.kernels), default=1) or 1,
    }


def notable(timeline: StepTimeline) -> list[TimelineBar]:
    """Return the waits, launches, replays and wide gaps of a drawn step, the longest first."""
    kinds = {"launch", "wait", "blamed_wait", "replay", "drain", *LEDGER_CLASSES[2:]}
    bars = [bar for bar in timeline.bars if bar.kind in kinds]
    return sorted(bars, key=lambda bar: bar.start_ns - bar.end_ns)[:NOTABLE_BARS]


def _sections(report: Report, rows: Sequence[StepRow]) -> list[tuple[str, str]]:
    detail = report.detail
    shown = {section.anchor for section in host.sections(report)}
    known = (
        ("findings", "Findings", True),
        ("waits", "Waits in a row", "waits" in shown),
        ("host", "The host's step", "host" in shown),
        ("step", "Where the step goes", html_charts.ledger_known(report.steps.per_step)),
        ("timelines", "Inside a step", bool(detail.timelines)),
        ("run", "Steps over the run", bool(rows)),
        ("gaps", "Gaps", bool(detail.gaps)),
        ("leads", "Launch lead", bool(detail.leads)),
        ("kernels", "Kernels", bool(detail.kernels)),
        ("ranks", "Ranks", bool(html_charts.ranks(report))),
        ("economics", economics.HEADING, report.economics is not None),
        ("quality", "Quality", True),
        ("reading", "How to read this", True),
        ("provenance", "Provenance", True),
    )
    return [(target, title) for target, title, there in known if there]


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
    made.filters |= {"economics_sentences": economics.sentences, "economics_tables": economics.tables}
    made.globals |= {
        "economics_heading": economics.HEADING,
        "LEDGER_CLASSES": LEDGER_CLASSES,
        "CLASS_MEANINGS": sentences.CLASS_MEANINGS,
        "EXCLUDED_LABELS": sentences.EXCLUDED_LABELS,
        "MODE_LABELS": sentences.MODE_LABELS,
        "gpu_words": gpu_words,
        "scope_words": sentences.scope_words,
        "steps_sentences": sentences.steps_sentences,
    }
    return made
