"""Markdown for a pull request comment and for a job summary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.errors import InternalError
from bubblefinder.render.kit.markdown import COMMENT_LIMIT, SUMMARY_LIMIT, code, escape, folded, link, table
from bubblefinder.render.report.sections import NAMES, QUALITY, notes, sections
from bubblefinder.report.prediction_sentences import to_recover_words
from bubblefinder.report.sentences import (
    MODE_LABELS,
    cost_words,
    note_count,
    plain,
    reference_url,
    scope_words,
    site_words,
)
from bubblefinder.report.verdict import verdict
from bubblefinder.units import count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bubblefinder.render.kit.sheet import Section
    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import Report

TOP: Final = 5


def render(report: Report, report_url: str = "") -> str:
    """Return a comment of at most 60,000 bytes that ends in the hidden marker of a sticky comment."""
    marker = "<!-- bubblefinder:report -->\n"
    return fit(report, report_url, COMMENT_LIMIT - len(marker)) + marker


def render_summary(report: Report, report_url: str = "") -> str:
    """Return the same, with room for everything, to append to $GITHUB_STEP_SUMMARY."""
    return fit(report, report_url, SUMMARY_LIMIT)


def fit(report: Report, report_url: str, limit: int) -> str:
    """Return the fullest text within `limit` bytes: details go first, then all but five findings, then all of them.

    Raises:
        InternalError: not even the summary fits.
    """
    known = sections(report)
    plainer = {anchor: section for anchor, section in known.items() if not section.is_detail}
    whole = len(report.findings)
    for shown, parts in ((whole, known), (whole, plainer), (TOP, plainer), (0, {"ledger": known["ledger"]})):
        text = _comment(report, parts, shown, report_url)
        if len(text.encode()) <= limit:
            return text
    raise InternalError(f"the summary of {plain(report.trace.name)} needs more than {limit} bytes")


def _comment(report: Report, known: Mapping[str, Section], shown: int, report_url: str) -> str:
    folds = {
        anchor: folded(escape(section.heading, 400), _below(section))
        for anchor, section in known.items()
        if anchor != "ledger"
    }
    if folds:
        folds["quality"] = _quality(report)
    parts = [
        _verdict(report),
        _below(known["ledger"]) if report.steps.count else "",
        _provenance(report, report_url),
        *[_finding(number, finding, report) for number, finding in enumerate(report.findings[:shown], start=1)],
        _left_out(len(report.findings) - shown, report_url),
        *[folds[anchor] for anchor in NAMES if anchor in folds],
    ]
    return "\n\n".join(part for part in parts if part) + "\n\n"


def _below(section: Section) -> str:
    """Return what stands below a section's heading; a comment has no room for columns that can be spared."""
    said = [escape(sentence, 700) for sentence in section.sentences]
    titled = ((f"**{escape(one.title)}**\n\n" if one.title else "", one.narrow()) for one in section.tables)
    return "\n\n".join([*said, *(title + table(one) for title, one in titled)])


def _verdict(report: Report) -> str:
    judged = verdict(report)
    headline = escape(judged.headline, 400)
    if judged.number:
        headline = headline.replace(judged.number, f"**{judged.number}**", 1)
    return "\n\n".join(
        part
        for part in (
            "### bubblefinder",
            headline,
            escape(" ".join(filter(None, (judged.blame, judged.gain, judged.rest))), 1_000),
        )
        if part
    )


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
        escape(finding.message, 1_200),
        f"Where: {escape(site_words(finding.site), 400)}" if site_words(finding.site) else "",
        f"Cost: {escape(cost, 400)}" if (cost := cost_words(finding, report)) else "",
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


def _quality(report: Report) -> str:
    lines = [f"{note.level}: {escape(note.message, 400)} {note_count(note)}".rstrip() for note in notes(report)[:40]]
    lines += [
        f"Expected, {escape(one.owner, 60)}: {escape(one.finding.title)} ({escape(one.reason, 200)})"
        for one in report.expected[:20]
    ]
    return folded(QUALITY, "\n".join(f"* {line}" for line in lines or ["Nothing stood out."]))
