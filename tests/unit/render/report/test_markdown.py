"""Markdown: verdict first, names that do nothing, and never more bytes than GitHub takes."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from markdown_it import MarkdownIt

from bubblefinder.errors import InternalError
from bubblefinder.render.kit import markdown as kit
from bubblefinder.render.kit.sheet import Table
from bubblefinder.render.report import markdown
from bubblefinder.trace.model import QualityNote
from bubblefinder.units import milliseconds
from tests.unit.report.sample import (
    HOSTILE,
    finding,
    graph_report,
    healthy_report,
    hostile_report,
    sample_report,
    unseen_report,
)

if TYPE_CHECKING:
    from bubblefinder.report.model import Report

ALLOWED = {
    "a", "b", "br", "code", "details", "em", "h3", "li", "p", "strong", "sub", "summary",
    "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip


class Page(HTMLParser):
    """The tags, attributes and text that GitHub would show."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.prose = ""
        self.open: list[str] = []
        self.feed(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name not in {"style", "align"}]

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.text += data
        if "code" not in self.open:
            self.prose += data


def many(number: int) -> Report:
    return sample_report(findings=[finding(title=f"finding {n} " + "x" * 100) for n in range(number)])


def test_the_verdict_comes_first_and_the_marker_last() -> None:
    text = markdown.render(sample_report())
    assert text.startswith("### bubblefinder\n\nThe GPU idles **28.8 %** of the decode time")
    assert text.endswith("<!-- bubblefinder:report -->\n")
    assert text.count("<!--") == 1


def test_one_table_is_open_and_the_details_are_folded() -> None:
    text = re.sub(r"<details>.*?</details>", "", markdown.render(sample_report(gpus=2)), flags=re.DOTALL)
    assert Page(text).tags.count("table") == 1
    assert "nightly" in text
    assert "<code>0f3c2d1</code>" in text
    assert "1 capture, 9 decode steps" in text


def test_the_table_holds_the_numbers_of_the_report() -> None:
    report = sample_report()
    text = markdown.render(report)
    for label, name in (("step", "duration"), ("busy", "busy"), ("host late", "host_late"), ("queued", "queued")):
        stats = report.steps.per_step[name]
        row = next(line for line in text.splitlines() if line.startswith(f"| {label} |"))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert cells[1:5] == [milliseconds(one) for one in (stats.mean, stats.p50, stats.p95, stats.max)]
        assert cells[6] == milliseconds(report.overhead.corrected.get(name))


def test_what_was_not_measured_is_no_zero() -> None:
    row = next(line for line in markdown.render(graph_report()).splitlines() if line.startswith("| inside graphs"))
    assert row == "| inside graphs | – | – | – | – | – |"


def test_without_graph_work_only_the_step_has_a_row() -> None:
    ledger = markdown.render(unseen_report()).partition("<details>")[0]
    lines = [line for line in ledger.splitlines() if line.startswith("| ")]
    assert [line.split("|")[1].strip() for line in lines] == ["ms a step", ":--", "step"]


def test_a_healthy_run_says_so() -> None:
    assert "No host call is to blame for idle time." in markdown.render(healthy_report())


def test_the_link_to_the_full_report_can_not_end_early() -> None:
    text = markdown.render(sample_report(), "https://host/a b)<script>|`")
    assert "[full report](https://host/a%20b%29%3Cscript%3E%7C%60)" in text
    assert "full report" not in markdown.render(sample_report())


def test_hostile_names_are_shown_and_do_nothing() -> None:
    text = markdown.render(hostile_report())
    page = Page(text)
    assert set(page.tags) <= ALLOWED
    assert [link for link in page.links if not link.startswith("text-align")] == []
    assert HOSTILE[0] in page.text
    assert "@team" not in page.prose
    assert "@\N{ZERO WIDTH SPACE}team" in page.text
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "k" * 1_201 not in text
    assert all(len(set(re.findall(r"(?<!\\)\|", line))) == 1 for line in text.splitlines() if line.startswith("|"))


@pytest.mark.parametrize("name", HOSTILE)
def test_an_escaped_name_stays_one_table_cell(name: str) -> None:
    text = kit.table(Table("", ("a", "b"), [(name, name)]))
    page = Page(text)
    assert page.tags.count("td") == 2
    assert set(page.tags) <= ALLOWED


def test_a_comment_fits_in_three_levels() -> None:
    few, many_, huge = (markdown.render(many(number)) for number in (3, 400, 400))
    assert few.count("<details><summary><b>") == 3
    assert len(many_.encode()) <= 60_000
    assert many_.count("<details><summary><b>") == 5
    assert "395 more findings are left out" in many_
    assert many_ == huge


def test_details_go_first_then_all_but_five_findings_then_all_but_the_verdict() -> None:
    report = many(6)
    whole = len(markdown.fit(report, "", 60_000).encode())
    plainer = markdown.fit(report, "", whole - 1)
    assert "Kernels of a step" not in plainer
    assert plainer.count("<details><summary><b>") == 6
    five = markdown.fit(report, "", len(plainer.encode()) - 1)
    assert five.count("<details><summary><b>") == 5
    least = markdown.fit(report, "", len(five.encode()) - 1)
    assert "<details>" not in least
    with pytest.raises(InternalError, match="needs more than 5 bytes"):
        markdown.fit(report, "", 5)


def test_a_note_counts_what_it_does_not_say_itself() -> None:
    told = [(f"{number} rows carry no time", 3) for number in (3, 4)] + [("no GPU is named", 1), ("none", None)]
    notes = [QualityNote(code="x", level="info", message=message, count=number) for message, number in told]
    lines = markdown.render(sample_report(quality=notes)).splitlines()
    assert [line for line in lines if line.startswith("* info: ")] == [
        "* info: 3 rows carry no time",
        "* info: 4 rows carry no time (3)",
        "* info: no GPU is named",
        "* info: none",
    ]


def test_wide_characters_count_as_bytes() -> None:
    report = sample_report(findings=[replace(finding(), message="\N{SNOWMAN}" * 600) for _ in range(60)])
    assert len(markdown.render(report).encode()) <= 60_000


def test_the_job_summary_has_no_marker_and_room_for_all() -> None:
    text = markdown.render_summary(many(400))
    assert text.count("<details><summary><b>") == 400
    assert "<!--" not in text
    assert len(text.encode()) < 1024 * 1024
