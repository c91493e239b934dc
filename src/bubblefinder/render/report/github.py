"""GitHub workflow commands: the verdict as a notice, the worst findings as annotations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit.github import MOST, Command, command
from bubblefinder.report.sentences import cost_words, plain, site_words, steps_sentences
from bubblefinder.report.verdict import verdict

if TYPE_CHECKING:
    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import Report

_LEVELS: Final[dict[str, Command]] = {"high": "error", "medium": "warning", "low": "notice", "info": "notice"}


def render(report: Report) -> str:
    """Return one workflow command a line; print them to the log of a step."""
    judged = verdict(report)
    about = (plain(sentence, 400) for sentence in steps_sentences(report))
    summary = " ".join(part for part in (judged.headline, judged.blame, judged.gain, judged.rest, *about) if part)
    lines = [command("notice", f"bubblefinder: {plain(report.trace.name, 80)}", summary)]
    lines += [_annotation(finding, report) for finding in report.findings[:MOST]]
    if len(report.findings) > MOST:
        left_out = len(report.findings) - MOST
        lines.append(f"{left_out} more findings are in the report; GitHub shows about ten annotations of a level.")
    return "\n".join(lines) + "\n"


def _annotation(finding: Finding, report: Report) -> str:
    parts = (finding.message, site_words(finding.site), cost_words(finding, report), finding.remedy)
    message = "\n".join(plain(part, 400) for part in parts if part)
    return command(_LEVELS[finding.severity], f"{finding.rule}: {plain(finding.title)}", message)
