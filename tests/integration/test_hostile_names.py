"""Names that bite, taken from the capture through the whole analysis into every format."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from bubblefinder.render.formats import formats_of, render
from bubblefinder.report.build import Options, analyze_trace
from bubblefinder.report.model import Run
from bubblefinder.trace.model import Process
from tests.loops import Graph, Loop
from tests.unit.render.report.test_html import Page as HtmlPage
from tests.unit.render.report.test_markdown import ALLOWED
from tests.unit.render.report.test_markdown import Page as MarkdownPage
from tests.unit.report.sample import HOSTILE

if TYPE_CHECKING:
    from bubblefinder.report.model import Report
    from bubblefinder.trace.model import Trace


def hostile_trace() -> Trace:
    """A loop whose kernels, ranges, threads, process, GPU and file all have names that bite."""
    made = Loop()
    graph = Graph(6, (*HOSTILE, *HOSTILE))
    for _ in range(8):
        made.step((graph,), mark=HOSTILE[0])
    trace = made.sketch.trace(name=HOSTILE[0])
    info = replace(
        trace.info,
        gpus=tuple(replace(gpu, name=HOSTILE[1]) for gpu in trace.info.gpus),
        processes=tuple(Process(one.process, one.pid, HOSTILE[4]) for one in trace.info.processes),
        driver_version=HOSTILE[2],
    )
    threads = dict.fromkeys(trace.calls["thread"].unique(), HOSTILE[3])
    return replace(trace, info=info, thread_names=threads)


@cache
def report() -> Report:
    run = Run(label=HOSTILE[3], commit=HOSTILE[2], meta={HOSTILE[0]: HOSTILE[4]})
    return analyze_trace(hostile_trace(), Options(run=run))


@cache
def rendered(form: str) -> str:
    content = render("report", report(), form)
    return content if isinstance(content, str) else content.decode("latin-1")


def test_the_loop_is_understood_all_the_same() -> None:
    assert report().steps.count >= 6
    assert report().findings
    assert report().detail.kernels


@pytest.mark.parametrize("form", [name for name in formats_of("report") if name not in ("parquet", "json", "html")])
def test_no_format_lets_a_control_character_or_a_long_name_through(form: str) -> None:
    assert re.search(r"[\x00-\x08\x0b-\x1f\x7f]", rendered(form).replace("\r\n", "\n")) is None
    assert "k" * 2001 not in rendered(form)


def test_json_escapes_control_characters() -> None:
    assert re.search(r"[\x00-\x08\x0b-\x1f]", rendered("json")) is None
    assert json.loads(rendered("json"))["run"]["label"] == HOSTILE[3]


def test_the_page_shows_them_and_runs_two_scripts() -> None:
    page = HtmlPage(rendered("html"))
    assert [tag for tag, _ in page.elements if tag in ("img", "b", "script") and tag != "b"] == ["script"] * 4
    assert sum(kind is None for kind, _ in page.scripts) == 2
    assert HOSTILE[0] in page.text
    assert "\x1b" not in rendered("html")


@pytest.mark.parametrize("form", ["markdown", "summary"])
def test_markdown_shows_them_and_mentions_nobody(form: str) -> None:
    page = MarkdownPage(rendered(form))
    assert set(page.tags) <= ALLOWED
    assert HOSTILE[0] in page.text
    assert "@team" not in page.prose


def test_annotations_stay_one_a_line() -> None:
    for line in rendered("github").splitlines():
        assert re.match(r"::(error|warning|notice) title=[^:]*::", line)


def test_xml_stays_whole() -> None:
    assert ET.fromstring(rendered("junit")).tag == "testsuite"


def test_perfetto_stays_json() -> None:
    assert json.loads(rendered("perfetto"))["traceEvents"]
