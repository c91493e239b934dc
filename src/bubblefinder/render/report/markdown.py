"""Markdown for a pull request comment and for a job summary."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import InternalError
from bubblefinder.render.kit.markdown import COMMENT_LIMIT, SUMMARY_LIMIT, code, escape, folded, link, table
from bubblefinder.render.kit.table import Table
from bubblefinder.render.report import economics, host
from bubblefinder.report.many import ranks_shown
from bubblefinder.report.overhead_sentences import overhead_sentences
from bubblefinder.report.prediction_sentences import to_recover_words
from bubblefinder.report.sentences import (
    MODE_LABELS,
    class_label,
    cost_words,
    left_out_words,
    note_count,
    plain,
    reference_url,
    scope_words,
    site_words,
    steps_sentences,
)
from bubblefinder.report.verdict import verdict
from bubblefinder.timeline.model import LEDGER_CLASSES
from bubblefinder.units import count, duration, milliseconds, share

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import Report

TOP: Final = 5


def render(report: Report, report_url: str = "", comment_id: str = "report") -> str:
    """Return a comment of at most 60,000 bytes that ends in the hidden marker of a sticky comment."""
    marker = f"<!-- bubblefinder:{re.sub(r'[^A-Za-z0-9._-]', '-', comment_id)} -->\n"
    return fit(lambda shown: _comment(report, shown, report_url), report, COMMENT_LIMIT - len(marker)) + marker


def render_summary(report: Report, report_url: str = "") -> str:
    """Return the same, with room for everything, to append to $GITHUB_STEP_SUMMARY."""
    return fit(lambda shown: _comment(report, shown, report_url), report, SUMMARY_LIMIT)


def fit(draw: Callable[[int], str], report: Report, limit: int) -> str:
    """Return the fullest text within `limit` bytes: every finding, the first five, or none.

    Raises:
        InternalError: not even the summary fits.
    """
    for shown in (len(report.findings), TOP, 0):
        text = draw(shown)
        if len(text.encode()) <= limit:
            return text
    raise InternalError(f"the summary of {plain(report.trace.name)} needs more than {limit} bytes")


def _comment(report: Report, shown: int, report_url: str) -> str:
    parts = [
        _verdict(report),
        _steps_table(report),
        "\n\n".join(escape(sentence, 400) for sentence in steps_sentences(report)),
        _provenance(report, report_url),
        *[_finding(number, finding, report) for number, finding in enumerate(report.findings[:shown], start=1)],
        _left_out(len(report.findings) - shown, report_url),
        *([_host(section) for section in host.sections(report)] if shown else []),
        _devices(report),
        _economics(report),
        _capture(report) if shown or not report.findings else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n\n"


def _host(section: host.Section) -> str:
    said = [escape(sentence, 400) for sentence in section.sentences]
    return folded(escape(section.heading, 400), "\n\n".join([*said, *map(table, section.tables)]))


def _economics(report: Report) -> str:
    if report.economics is None:
        return ""
    said = [escape(sentence, 700) for sentence in economics.sentences(report.economics)]
    return folded(economics.HEADING, "\n\n".join([*said, *map(table, economics.tables(report.economics))]))


def _verdict(report: Report) -> str:
    judged = verdict(report)
    headline = escape(judged.headline, 400)
    if judged.number:
        headline = headline.replace(judged.number, f"**{judged.number}**", 1)
    return "\n\n".join(
        part for part in ("### bubblefinder", headline, escape(f"{judged.blame} {judged.gain}".strip(), 800)) if part
    )


def _steps_table(report: Report) -> str:
    stats, corrected = report.steps.per_step, report.overhead.corrected
    if not report.steps.count:
        return ""
    total = stats["duration"].mean
    rows = list[tuple[str, ...]]()
    unseen = report.trace.capture_mode == "unseen"
    for name in ("duration",) if unseen else ("duration", *LEDGER_CLASSES):
        one = stats.get(name)
        if one is None or (name not in ("duration", "busy") and one.max == 0):
            continue
        label = "step" if name == "duration" else class_label(name)
        part = share(one.mean / total) if one.mean is not None and total else "not measured"
        cells = [label, milliseconds(one.mean), milliseconds(one.p50), milliseconds(one.p95), part]
        rows.append((*cells, milliseconds(corrected.get(name))) if corrected else tuple(cells))
    header = ("ms per decode step", "mean", "p50", "p95", "of the step", *(("p50 corrected",) if corrected else ()))
    return table(Table("", header, rows, left=frozenset(header[:1])))


def _provenance(report: Report, report_url: str) -> str:
    run, trace = report.run, report.trace
    gpus = ", ".join(sorted({plain(gpu.name, 60) for gpu in trace.gpus if gpu.name}))
    mode = MODE_LABELS.get(trace.capture_mode, trace.capture_mode)
    parts = [
        escape(run.label),
        code(run.commit),
        escape(trace.name),
        escape(gpus),
        mode,
        escape(f"1 capture, {scope_words(report)}", 200),
    ]
    return "<sub>" + " · ".join(part for part in (*parts, link("full report", report_url)) if part) + "</sub>"


def _finding(number: int, finding: Finding, report: Report) -> str:
    summary = f"<b>{number}. {escape(finding.title)}</b> · {finding.severity}"
    if gain := to_recover_words(finding):
        summary += f" · {gain}"
    facts = [
        escape(finding.message, 600),
        f"Where: {escape(site_words(finding.site), 400)}" if site_words(finding.site) else "",
        f"Cost: {escape(cost, 400)}" if (cost := cost_words(finding, report)) else "",
        f"Host blocked: {duration(finding.host_blocked_ns.p50)} (p50), {duration(finding.host_blocked_ns.p95)} (p95)"
        if finding.host_blocked_ns.p50 is not None
        else "",
        f"Seen: {_times(finding)}" if _times(finding) else "",
        f"Remedy: {escape(finding.remedy, 800)}",
        f"Note: {escape('; '.join(finding.caveats), 400)}" if finding.caveats else "",
        "References: " + ", ".join(link(one, reference_url(one)) or escape(one, 200) for one in finding.references)
        if finding.references
        else "",
        f"Rule: {code(finding.rule)}, {finding.confidence} confidence",
    ]
    return folded(summary, "\n".join(f"* {fact}" for fact in facts if fact))


def _times(finding: Finding) -> str:
    each = f"{count(finding.per_step_count)} a step" if finding.per_step_count is not None else ""
    times = f"{count(finding.occurrences)} times" if finding.occurrences is not None else ""
    steps = f"in {count(finding.steps_affected)} steps" if finding.steps_affected is not None else ""
    return ", ".join(part for part in (each, " ".join(part for part in (times, steps) if part)) if part)


def _left_out(number: int, report_url: str) -> str:
    if number <= 0:
        return ""
    where = "the full report linked above" if report_url else "the HTML or JSON report"
    return f"_{count(number)} more findings are left out here to stay within GitHub's limit; they are in {where}._"


def _devices(report: Report) -> str:
    ranks, others = ranks_shown(report)
    if len(ranks) < 2:  # noqa: PLR2004 - ranks side by side need two
        return ""
    rows = [
        (
            f"GPU {one.gpu}, process {one.pid}",
            count(one.count),
            *(milliseconds(one.per_step[name].p50) for name in ("duration", "busy", "intra_graph", "host_late")),
        )
        for one in ranks
    ]
    header = ("p50, ms", "steps", "step", "busy", "inside graphs", "host late")
    told = table(Table("", header, rows, left=frozenset(header[:1])))
    return folded("Ranks side by side", f"{told}\n\n{others}" if others else told)


def _capture(report: Report) -> str:
    trace = report.trace
    versions = {
        "nsys": trace.nsys_version,
        "CUPTI": trace.cupti_version,
        "driver": trace.driver_version,
        "CUDA": trace.cuda_version,
    }
    lines = ["Versions: " + ", ".join(f"{name} {escape(value or 'unknown', 60)}" for name, value in versions.items())]
    lines += [f"Left out of the statistics: {escape(words, 600)}"] if (words := left_out_words(report)) else []
    lines += [f"{escape(key, 60)}: {escape(value)}" for key, value in list(report.run.meta.items())[:20]]
    lines += [f"{note.level}: {escape(note.message, 400)} {note_count(note)}".rstrip() for note in report.quality[:40]]
    lines += [
        f"Expected, {escape(one.owner, 60)}: {escape(one.finding.title)} ({escape(one.reason, 200)})"
        for one in report.expected[:20]
    ]
    lines += [escape(sentence, 400) for sentence in overhead_sentences(report.overhead)]
    lines.append(f"{report.tool.name} {report.tool.version}")
    return folded("Capture, quality and versions", "\n".join(f"* {line}" for line in lines))
