"""A comparison and a judged budget in every format, with hostile names in them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import date
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from bubblefinder.compare.baseline import of_reports
from bubblefinder.compare.budget import BudgetFile
from bubblefinder.compare.diff import diff
from bubblefinder.compare.judge import judge
from bubblefinder.errors import UsageError
from bubblefinder.render.formats import format_for, formats_of, render
from bubblefinder.report.charts import StepTimeline, TimelineBar
from bubblefinder.report.found import Quantiles, Site
from bubblefinder.units import duration
from tests.unit.compare.builders import MS, a_finding, a_kernel, a_report, with_kernels

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.compare.judge import Judged
    from bubblefinder.compare.model import Diff

EVIL = "</script><img src=x onerror=alert(1)>|`@everyone` \x1b[31m ]]> &"


def render_diff(result: Diff, name: str) -> str:
    content = render("diff", result, name)
    assert isinstance(content, str)
    return content


def render_judged(result: Judged, name: str) -> str:
    content = render("budget", result, name)
    assert isinstance(content, str)
    return content


class Tags(HTMLParser):
    """Collects the tags of a page and the text of its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not [name for name, _ in attrs if name.startswith("on") or name == "style"]

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script" and data.strip():
            self.scripts.append(data)


@pytest.fixture(scope="module")
def hostile() -> Diff:
    site = Site(api="cudaMemcpyAsync", copy_kind="DtoH", nvtx=EVIL, after_role=EVIL)
    bars = [TimelineBar(track=EVIL, kind="replay", name=EVIL, start_ns=0, end_ns=1 * MS)]
    timeline = StepTimeline(which="median", index=1, gpu=0, pid=100, start_ns=0, end_ns=7 * MS, bars=bars, dropped=0)
    base = with_kernels(a_report(EVIL), a_kernel(EVIL, EVIL, 3, 1e6))
    head = with_kernels(a_report(EVIL, host_late=2 * MS), a_kernel("verify", EVIL, 3, 2e6))
    head = type(head)(
        **{f: getattr(head, f) for f in head.__slots__} | {"findings": [a_finding(title=EVIL, site=site)]}
    )
    for report in (base, head):
        report.detail.timelines.append(timeline)
    return diff([base], [head])


@pytest.fixture(scope="module")
def judged() -> Judged:
    report = a_report(EVIL, host_late=2 * MS)
    budgets = [
        {"metric": "step.duration.p50", "max": "7 ms", "regress": 0.02, "why": EVIL, "owner": EVIL},
        {"metric": "corrected.step.duration.p50", "max": "7 ms"},
        {"metric": "step.busy.p50", "max": "7 ms"},
        {"metric": "waits.per_step", "max": 0, "severity": "warn"},
    ]
    file = BudgetFile.model_validate({"version": 1, "budget": budgets})
    return judge(report, file, of_reports([a_report(EVIL)], report), date(2026, 11, 29))


def test_text_leads_with_the_verdict_and_holds_no_escapes(hostile: Diff) -> None:
    text = render_diff(hostile, "text")
    assert text.startswith(
        "Regression: the mean step takes 6.87 ms before and 8.82 ms after (+28.4 %), beyond the noise"
    )
    assert "1 capture (30 steps) against 1 capture (30 steps); confidence in the verdict: low" in text
    assert "\x1b" not in text


def test_json_follows_its_published_schema(hostile: Diff, root: Path) -> None:
    schema = json.loads((root / "docs/schema/diff-1.json").read_text())
    document = json.loads(render_diff(hostile, "json"))
    jsonschema.validate(document, schema)
    assert document["schema"] == "bubblefinder.diff/1"
    assert document["verdict"] == "regression"


@pytest.mark.parametrize("kind", ["diff", "judged"])
def test_markdown_neutralises_names_and_ends_in_its_marker(hostile: Diff, judged: Judged, kind: str) -> None:
    text = render_diff(hostile, "markdown") if kind == "diff" else render_judged(judged, "markdown")
    assert "<img" not in text
    assert "@everyone" not in text
    assert text.rstrip().splitlines()[-1].startswith("<!-- bubblefinder:")
    widths = {line.count("|") for line in text.splitlines() if line.startswith("|") and "Kernels" in line}
    assert widths <= {6}


def test_a_refusal_is_told_whole() -> None:
    refused = diff([a_report()], [a_report(mode="graph", intra_graph=None)])
    for name in set(formats_of("diff")) - {"csv"}:
        text = render_diff(refused, name)
        assert "trace CUDA graphs differently" in text
    assert 'class="verdict unknown">Can&#39;t be compared</h1>' in render_diff(refused, "html")


def test_markdown_stays_within_githubs_limit() -> None:
    names = [f"kernel_{number}_" + "<" * 60 for number in range(3000)]
    head = with_kernels(a_report(), *[a_kernel("verify", name, 1, 1e5) for name in names])
    findings = [a_finding(title="<" * 150, site=Site(api="a", nvtx=f"{n}" + "<" * 150)) for n in range(500)]
    head = replace(head, findings=findings)
    text = render_diff(diff([a_report()], [head]), "markdown")
    assert len(text.encode()) < 65_536
    assert "left out: a comment has no room for more" in text


@pytest.mark.parametrize("kind", ["diff", "judged"])
def test_html_is_one_safe_page(hostile: Diff, judged: Judged, kind: str) -> None:
    page = render_diff(hostile, "html") if kind == "diff" else render_judged(judged, "html")
    written = page.partition("<script>")[0]
    tags = Tags(written)
    assert "img" not in tags.tags
    assert tags.tags.count("table") >= 1
    assert "http" not in written.replace("http-equiv", "")
    if kind == "diff":
        figures, told = map(json.loads, tags.scripts)
        assert [note["text"][:6] for note in figures["timelines"]["layout"]["annotations"]] == ["base: ", "head: "]
        assert told["verdict"] == "regression"


def test_what_draws_charts_is_only_in_a_page_that_has_some(hostile: Diff, judged: Judged) -> None:
    assert render_diff(hostile, "html").count("<script>") == 2
    assert render_judged(judged, "html").count("<script>") == 1
    assert render_diff(replace(hostile, head_step=None), "html").count("<script>") == 1


def test_the_drawn_steps_are_said_to_be_steps_and_not_medians(hostile: Diff) -> None:
    page = render_diff(hostile, "html")
    for side, step in (("base", hostile.base_step), ("head", hostile.head_step)):
        assert step
        assert f"{side}: step {step.index}, {duration(step.duration_ns)}" in page
    assert "One real step of each side, the one nearest its median" in page
    assert "he median step" not in page


def test_words_begin_at_the_left_and_numbers_end_at_the_right(hostile: Diff, judged: Judged) -> None:
    limits = render_judged(judged, "markdown").splitlines()
    assert limits[limits.index("| metric | limit | value | verdict | why |") + 1] == "| :-- | --: | --: | :-- | :-- |"
    ledger = render_diff(hostile, "markdown").splitlines()
    assert "| :-- | --: | --: | --: | :-- | --: | --: | --: | --: | :-- |" in ledger
    assert '<th scope="col" class="words">why</th>' in render_judged(judged, "html")
    assert re.search(r'<td class="n">[0-9]\.[0-9]{3}</td>', render_diff(hostile, "html"))
    assert '<td class="words">✗ worse</td>' in render_diff(hostile, "html")


def test_a_finding_without_a_cost_is_present_or_counted() -> None:
    bare: dict[str, Any] = {"bubble_ns": Quantiles(p50=None, p95=None), "recoverable_ns": None}
    counted = a_finding("a", title="Counted", site=Site(nvtx="a"), **bare)
    told = a_finding("b", title="Told", site=Site(nvtx="b"), per_step_count=None, **bare)
    text = render_diff(diff([a_report(findings=[counted, told])], [a_report(findings=[counted, told])]), "text")
    rows = {
        line.split()[0]: " ".join(line.split())
        for line in text.splitlines()
        if line.startswith(("  Told", "  Counted"))
    }
    assert rows == {"Told": "Told (in b) present present –", "Counted": "Counted (in a) 1 a step 1 a step –"}


def test_what_came_or_went_without_a_cost_has_a_word_alone() -> None:
    bare = a_finding(title="Told", bubble_ns=Quantiles(p50=None, p95=None), recoverable_ns=None)
    text = render_diff(diff([a_report(findings=[bare])], [a_report()]), "text")
    assert next(line for line in text.splitlines() if "- gone" in line).split()[-3:] == ["absent", "-", "gone"]


def test_a_metric_keeps_its_name_at_the_head_of_a_page(judged: Judged) -> None:
    assert '<p class="lead">step.duration.p50: ' in render_judged(judged, "html")


def test_a_difference_that_rounds_to_nothing_has_no_minus() -> None:
    slower, quicker = a_report(jitter=0.0), a_report(busy=6 * MS - 10, jitter=0.0)
    assert "-0.000" not in render_diff(diff([slower], [quicker]), "text")


def test_junit_has_a_case_a_limit(judged: Judged) -> None:
    suites = ET.fromstring(render_judged(judged, "junit"))
    assert suites.attrib == {"tests": "5", "failures": "2", "errors": "1"}
    cases = suites.findall("./testsuite/testcase")
    assert len(cases) == 5
    assert [c.find("failure") is not None for c in cases] == [True, True, False, False, False]
    assert cases[2].find("error") is not None


def test_judged_text_and_json_say_the_same(judged: Judged) -> None:
    document = json.loads(render_judged(judged, "json"))
    assert document["exit_code"] == 1
    assert [one["outcome"] for one in document["judgements"]] == ["fail", "fail", "missing", "ok", "ok"]
    text = render_judged(judged, "text")
    assert text.startswith("Fail: step.duration.p50: 8.82 ms is above 7.00 ms. 1 more fails as well.")
    assert "\x1b" not in text


def test_files_are_named_by_suffix(tmp_path: Path) -> None:
    assert format_for("diff", tmp_path / "a.HTML").name == "html"
    assert format_for("budget", tmp_path / "a.junit.xml").name == "junit"
    with pytest.raises(UsageError, match="no format"):
        format_for("diff", tmp_path / "a.parquet")
