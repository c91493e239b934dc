"""JUnit XML: one suite a capture, one case a finding, a passing case when all is well."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from bubblefinder.render.kit.junit import add_properties
from bubblefinder.report.sentences import cost_words, plain, site_words, steps_sentences
from bubblefinder.report.verdict import verdict

if TYPE_CHECKING:
    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import Report


def render(report: Report) -> str:
    """Return the suite; findings above `info` fail, expected ones are skipped, damaged captures are errors."""
    name = plain(report.trace.name)
    suite = ET.Element("testsuite", name=f"bubblefinder {name}")
    add_properties(suite, _properties(report))
    for number, finding in enumerate(report.findings, start=1):
        _finding_text(_case(suite, finding, name, number), finding, cost_words(finding, report))
    for expected in report.expected:
        case = _case(suite, expected.finding, name)
        ET.SubElement(case, "skipped", message=plain(f"expected: {expected.reason} ({expected.owner})", 400))
    for note in report.quality:
        if note.level == "error":
            case = ET.SubElement(suite, "testcase", classname=name, name=f"quality: {plain(note.code)}")
            ET.SubElement(case, "error", type=plain(note.code), message=plain(note.message, 400))
    if not len(suite.findall("testcase")):
        ET.SubElement(suite, "testcase", classname=name, name=verdict(report).blame)
    for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f".//{tag}"))))
    ET.indent(suite)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _properties(report: Report) -> dict[str, object]:
    share = report.steps.bubble_share
    return {
        "verdict": verdict(report).headline,
        "label": plain(report.run.label),
        "commit": plain(report.run.commit),
        "capture_mode": report.trace.capture_mode,
        "steps": report.steps.count,
        "steps.about": plain(" ".join(steps_sentences(report)), 1000),
        "bubble_share.total": share.total,
        "bubble_share.inter_graph": share.inter_graph,
        "bubble_share.intra_graph": share.intra_graph,
        **{f"per_step.{name}.p50_ns": stats.p50 for name, stats in report.steps.per_step.items()},
    }


def _finding_text(case: ET.Element, finding: Finding, cost: str) -> None:
    parts = (finding.message, site_words(finding.site), cost, finding.remedy)
    text = "\n".join(plain(part, 1000) for part in parts if part)
    if finding.severity == "info":
        ET.SubElement(case, "system-out").text = text
    else:
        ET.SubElement(case, "failure", type=finding.severity, message=plain(finding.title)).text = text


def _case(suite: ET.Element, finding: Finding, capture: str, number: int | None = None) -> ET.Element:
    place = f" #{number}" if number else ""
    case = ET.SubElement(
        suite, "testcase", classname=capture, name=f"{plain(finding.rule)}{place}: {plain(finding.title)}"
    )
    values = {
        "severity": finding.severity,
        "confidence": finding.confidence,
        "bubble_ns.p50": finding.bubble_ns.p50,
        "host_blocked_ns.p50": finding.host_blocked_ns.p50,
        "recoverable_ns": finding.recoverable_ns,
    }
    add_properties(case, values)
    return case
