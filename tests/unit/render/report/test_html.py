"""The page: whole, offline, and harmless whatever the names hold."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING

import plotly.offline
import pytest

from bubblefinder.render.kit import html as kit
from bubblefinder.render.report import html
from bubblefinder.report.found import Site
from bubblefinder.report.json import embedded_json
from bubblefinder.units import milliseconds
from tests.unit.report.sample import finding, graph_report, healthy_report, hostile_report, sample_report, unseen_report
from tests.unit.report.test_row_of_waits import CHAIN

if TYPE_CHECKING:
    from bubblefinder.report.model import Report

ASSETS = Path(kit.__file__).parent / "assets"
DATA = {"application/json"}


class Page(HTMLParser):
    """The elements of a page, the text outside scripts, and the text of each script and style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[tuple[str | None, str]] = []
        self.styles: list[str] = []
        self.inside: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))
        if tag == "style":
            self.styles.append("")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002
        self.inside = None

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            kind, text = self.scripts[-1]
            self.scripts[-1] = (kind, text + data)
        elif self.inside == "style":
            self.styles[-1] += data
        else:
            self.text += data

    def attribute(self, tag: str, name: str) -> list[str]:
        return [value for element, attrs in self.elements if element == tag and (value := attrs.get(name))]


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("report", [sample_report(), hostile_report()])
def test_the_policy_allows_its_own_parts_and_nothing_else(report: Report) -> None:
    page = Page(html.render(report))
    (policy,) = [attrs["content"] or "" for tag, attrs in page.elements if attrs.get("http-equiv")]
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split("; ")}
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"] == [digest(text) for kind, text in page.scripts if kind is None]
    assert set(rules["style-src"]) == {digest(text) for text in page.styles}
    assert "unsafe" not in policy


def test_nothing_is_fetched_and_no_element_carries_code_or_style() -> None:
    page = Page(html.render(hostile_report()))
    tags = {tag for tag, _ in page.elements}
    assert tags & {"img", "iframe", "object", "embed", "link", "base", "form", "audio", "video", "source"} == set()
    names = {name for _, attrs in page.elements for name in attrs}
    assert [name for name in names if name.startswith("on") or name in ("style", "src", "srcset", "action")] == []
    assert [link for link in page.attribute("a", "href") if not link.startswith(("#", "https://"))] == []


def test_hostile_names_are_text() -> None:
    content = html.render(hostile_report())
    page = Page(content)
    assert "</script><img src=x onerror=alert(1)>" in page.text
    assert "\x1b" not in content
    assert "k" * 2001 not in page.text
    assert sum(kind is None for kind, _ in page.scripts) == 2
    for kind, text in page.scripts:
        assert kind is None or kind in DATA
        assert kind is None or "<" not in text


@pytest.mark.parametrize("report", [sample_report(gpus=2), graph_report(), healthy_report(), unseen_report()])
def test_the_report_inside_the_page_is_the_report(report: Report) -> None:
    assert json.loads(embedded_json(html.render(report)))["schema"] == report.schema


def test_sections_come_in_the_order_people_read() -> None:
    ids = Page(html.render(sample_report(gpus=2))).attribute("section", "id")
    assert ids == [
        "verdict", "findings", "step", "untraced", "timelines", "run", "gaps", "lengths", "leads", "kernels", "ranks",
        "quality", "reading", "provenance",
    ]  # fmt: skip


def test_every_link_to_a_section_leads_somewhere() -> None:
    for report in (sample_report(gpus=2), graph_report(), unseen_report()):
        page = Page(html.render(report))
        targets = {link[1:] for link in page.attribute("a", "href") if link.startswith("#")}
        assert targets <= {value for _, attrs in page.elements if (value := attrs.get("id"))}


def test_every_chart_has_its_numbers_in_a_table() -> None:
    content = html.render(sample_report())
    assert set(re.findall(r'data-chart="([^"]+)"', content)) == {
        "timeline-median", "timeline-worst", "run", "lengths", "leads",
    }  # fmt: skip
    for section in re.findall(r"<section.*?</section>", content, re.DOTALL):
        assert section.count("data-chart=") <= section.count("<table")


def test_the_tables_hold_the_numbers_of_the_report() -> None:
    report = sample_report()
    text = Page(html.render(report)).text
    for name in ("duration", "host_late", "intra_graph"):
        stats = report.steps.per_step[name]
        for value in (stats.mean, stats.p50, stats.p95, stats.max):
            assert milliseconds(value) in text
    for row in report.steps.rows:
        assert milliseconds(row.duration_ns) in text


def test_what_was_not_measured_is_said() -> None:
    text = Page(html.render(graph_report())).text
    assert "at least" in text
    assert "not measured" in text


def test_without_graph_work_nothing_is_claimed() -> None:
    page = Page(html.render(unseen_report()))
    assert "No cause can be named: export the .nsys-rep again" in page.text
    assert page.attribute("div", "data-chart") == []


def test_long_runs_embed_some_windows_and_say_so() -> None:
    report = sample_report(steps=html.MAX_ROWS + 1000)
    known = html.thinned(report)
    assert len(known.steps.rows) == html.MAX_ROWS
    assert known.steps.per_step == report.steps.per_step
    assert known.quality[-1].code == "html-rows-thinned"
    assert known.quality[-1].count == 1003
    assert known.steps.rows[0].index == 0
    assert len(html.render(report)) < 4_000_000


def test_pages_stay_small() -> None:
    assert len(html.render(sample_report(steps=60, gpus=2)).encode()) < 2_500_000


def test_the_body_brings_no_code_of_its_own() -> None:
    page = Page(html.render_body(hostile_report()))
    assert {kind for kind, _ in page.scripts} == DATA
    assert page.styles == []


def test_the_library_is_the_one_that_plotly_brings() -> None:
    head = (ASSETS / "plotly-cartesian.min.js").read_text("utf-8")[:200]
    assert f"v{plotly.offline.get_plotlyjs_version()}" in head
    assert "Plotly" in (ASSETS / "plotly.LICENSE").read_text("utf-8")


def test_scripts_and_styles_can_not_end_their_element() -> None:
    for text in (kit.asset("plotly-cartesian.min.js"), kit.asset("page.js")):
        assert "</script" not in text.lower()
        assert "<!--" not in text
    assert "<" not in kit.style()


def test_numbers_stay_with_their_units() -> None:
    assert html.unbroken("2.54 ms of 8 steps, 28 %") == "2.54\N{NO-BREAK SPACE}ms of 8 steps, 28\N{NO-BREAK SPACE}%"


def test_only_secure_references_become_links() -> None:
    report = sample_report()
    bad = replace(report.findings[0], references=["javascript:alert(1)", "http://x", "https://x/<y>"])
    page = Page(html.render(replace(report, findings=[bad], expected=[])))
    assert [link for link in page.attribute("a", "href") if not link.startswith("#")] == ["https://x/<y>"]


def test_what_is_to_recover_is_said_once_a_finding() -> None:
    report = sample_report()
    ranged = replace(
        report.findings[0], recoverable_ns=None, recoverable_range_ns=[55_700, 4_550_000], step_after_ns=None
    )
    page = html.render(replace(report, findings=[ranged], expected=[], joint=None)).partition('id="findings"')[2]
    assert page.count("<dt>To recover</dt>") == 1
    assert "the profiler's part of it can't be told" in page.replace("&#39;", "'")


def test_what_cures_give_is_set_in_bold_and_neither_names_nor_what_is_left() -> None:
    less = finding(idle_share=0.05, recoverable_ns=450_000)
    said = [html.render(report) for report in (beside_a_row(), sample_report(findings=[less]))]
    bold = [re.findall("<strong>(.*?)</strong>", page[: page.index("<figure>")]) for page in said]
    assert [len(found) for found in bold] == [1, 1]
    assert "Beside it, 3 waits in a row: 1. Lengths" in said[0].replace("\N{NO-BREAK SPACE}", " ")
    assert "The waits together would give" in bold[0][0]
    assert "in a row" not in bold[0][0]
    assert "The first finding explains" in said[1]
    assert "explains" not in bold[1][0]


def beside_a_row() -> Report:
    """A late host leads, and waits in a row are told beside it."""
    report = sample_report(findings=[finding(site=Site(), occurrences=None)])
    return replace(report, wait_chains=[replace(CHAIN, gpu=report.steps.gpu or 0, pid=report.steps.pid or 0)])
