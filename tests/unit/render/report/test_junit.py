"""JUnit: findings fail, expected ones are skipped, and a good capture still has a case."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from bubblefinder.render.report import junit
from tests.unit.report.sample import HOSTILE, finding, healthy_report, hostile_report, sample_report, unseen_report


def test_findings_fail_and_expected_ones_are_skipped() -> None:
    suite = ET.fromstring(junit.render(sample_report()))
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == ["3", "2", "0", "1"]
    assert [failure.get("type") for failure in suite.iter("failure")] == ["high", "medium"]
    assert [skipped.get("message") for skipped in suite.iter("skipped")] == ["expected: the stream needs it (serving)"]


def test_all_is_well_is_one_passing_case() -> None:
    suite = ET.fromstring(junit.render(healthy_report()))
    (case,) = suite.findall("testcase")
    assert list(case) == []
    assert suite.get("failures") == "0"


def test_informative_findings_pass() -> None:
    suite = ET.fromstring(junit.render(sample_report(findings=[finding(severity="info")], expected=[])))
    assert suite.get("failures") == "0"
    assert "Keep the lengths" in (suite.findtext("testcase/system-out") or "")


def test_a_capture_that_can_not_answer_is_an_error() -> None:
    suite = ET.fromstring(junit.render(unseen_report()))
    assert suite.get("errors") == "1"
    assert [error.get("type") for error in suite.iter("error")] == ["graph-work-unseen"]


def test_hostile_names_keep_the_xml_whole() -> None:
    report = hostile_report()
    suite = ET.fromstring(junit.render(report))
    assert HOSTILE[0] in (suite.get("name") or "")
    assert suite.get("tests") == "7"


def test_characters_that_xml_forbids_are_replaced() -> None:
    suite = ET.fromstring(junit.render(sample_report(findings=[finding(title="a\x00b\ufffec\ud800d\uffff")])))
    assert "b" in next(iter(suite.iter("failure"))).get("message", "")
