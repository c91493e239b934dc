"""Every format tells the numbers of the same report: what each says is read back and compared."""

from __future__ import annotations

import io
import json
import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest

from bubblefinder.render.formats import render
from bubblefinder.report.json import embedded_json
from bubblefinder.report.sentences import class_label
from bubblefinder.report.verdict import verdict
from bubblefinder.timeline.model import LEDGER_CLASSES
from bubblefinder.units import duration, milliseconds
from tests.samples import report

SAMPLES = Path(__file__).parents[2] / "sample_traces"
CAPTURES = ("nextn_before.node", "nextn_before.graph", "eager_item", "tp2_before.node")
captures = pytest.mark.parametrize("capture", CAPTURES)


@cache
def rendered(capture: str, form: str) -> str:
    content = render("report", report(capture), form)
    assert isinstance(content, str)
    return content


class Cells(HTMLParser):
    """The rows of the tables of a page, by the title of their row."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        if tag == "tr":
            self.rows.append([])
        self.inside = tag in ("td", "th") or (self.inside and tag not in ("tr", "table", "section"))
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.inside and self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.strip()


@captures
def test_json_is_the_report_to_the_nanosecond(capture: str) -> None:
    told: dict[str, Any] = json.loads(rendered(capture, "json"))
    known = report(capture)
    for row, tells in zip(known.steps.rows, told["steps"]["rows"], strict=True):
        assert all(tells[f"{name}_ns"] == getattr(row, f"{name}_ns") for name in ("duration", *LEDGER_CLASSES))
    assert told["steps"]["bubble_share"]["total"] == known.steps.bubble_share.total
    assert told["devices"][0]["inter_graph"]["host_late_ns"] == known.devices[0].inter_graph.host_late_ns


@captures
def test_the_page_holds_the_same_json(capture: str) -> None:
    assert json.loads(embedded_json(rendered(capture, "html"))) == json.loads(rendered(capture, "json"))


@captures
def test_the_page_shows_the_statistics_of_every_class(capture: str) -> None:
    rows = [row[:5] for row in Cells(rendered(capture, "html")).rows]
    for name, stats in report(capture).steps.per_step.items():
        values = [milliseconds(value) for value in (stats.mean, stats.p50, stats.p95, stats.max)]
        assert [{"duration": "step"}.get(name) or class_label(name), *values] in rows or not stats.max


@captures
def test_markdown_and_the_job_summary_show_the_same_table(capture: str) -> None:
    stats = report(capture).steps.per_step
    for form in ("markdown", "summary"):
        lines = [[cell.strip(" *") for cell in line.split("|")] for line in rendered(capture, form).splitlines()]
        table = {cells[1]: cells[2:5] for cells in lines if len(cells) > 5}
        assert table["step"] == [milliseconds(getattr(stats["duration"], key)) for key in ("mean", "p50", "p95")]
        assert table["host late"] == [milliseconds(getattr(stats["host_late"], key)) for key in ("mean", "p50", "p95")]


@captures
def test_junit_holds_the_medians_and_the_costs(capture: str) -> None:
    known = report(capture)
    suite = ET.fromstring(rendered(capture, "junit"))
    told = {one.get("name"): one.get("value") for one in suite.iterfind("properties/property")}
    for name, stats in known.steps.per_step.items():
        value = told.get(f"per_step.{name}.p50_ns")
        assert (None if value is None else float(value)) == stats.p50
    costs = [case.find("properties/property[@name='bubble_ns.p50']") for case in suite.iterfind("testcase")]
    values = [None if cost is None else float(cost.get("value") or 0) for cost in costs]
    assert values[: len(known.findings)] == [finding.bubble_ns.p50 for finding in known.findings]


@captures
def test_annotations_hold_the_cost_of_each_finding(capture: str) -> None:
    known = report(capture)
    lines = [line for line in rendered(capture, "github").splitlines() if line.startswith("::")]
    for finding, line in zip(known.findings, lines[1:], strict=False):
        if finding.bubble_ns.p50 is not None:
            assert f"bubble {duration(finding.bubble_ns.p50)}" in line


@captures
def test_the_perfetto_trace_holds_every_window_to_the_nanosecond(capture: str) -> None:
    events = json.loads(rendered(capture, "perfetto"))["traceEvents"]
    steps = [event for event in events if event["ph"] == "X" and "duration_ns" in event["args"]]
    told = [(round(event["ts"] * 1000), event["args"]["duration_ns"], event["args"]["busy_ns"]) for event in steps]
    assert told == [(row.start_ns, row.duration_ns, row.busy_ns) for row in report(capture).steps.rows]


@captures
def test_the_tables_hold_every_window(capture: str) -> None:
    known = report(capture)
    parquet = render("report", known, "parquet")
    assert isinstance(parquet, bytes)
    frame = pl.read_parquet(io.BytesIO(parquet))
    assert frame.equals(pl.read_csv(io.StringIO(rendered(capture, "csv")), schema=frame.schema))
    assert frame["duration_ns"].to_list() == [row.duration_ns for row in known.steps.rows]
    assert frame["host_late_ns"].to_list() == [row.host_late_ns for row in known.steps.rows]


@captures
@pytest.mark.parametrize("form", ["text", "html", "markdown", "summary", "junit", "github", "perfetto"])
def test_all_open_with_the_same_verdict(capture: str, form: str) -> None:
    judged = verdict(report(capture))
    text = re.sub(r"<[^>]+>|\*\*|&#8203;", "", rendered(capture, form)) if form != "junit" else rendered(capture, form)
    plain = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").replace("%25", "%").split())
    assert judged.headline in plain


@captures
def test_pages_of_the_samples_stay_small(capture: str) -> None:
    assert len(rendered(capture, "html").encode()) < 2_500_000
