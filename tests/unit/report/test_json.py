"""JSON: the same values come back, and the published schema describes them.

Run this file to publish the schema: ``python -m tests.unit.report.test_json``.
"""

from __future__ import annotations

import json as stdlib_json
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from bubblefinder.errors import NotATraceError
from bubblefinder.render.formats import write
from bubblefinder.report import json
from bubblefinder.report.json import read_report
from tests.unit.report.sample import graph_report, hostile_report, sample_report, unseen_report

if TYPE_CHECKING:
    from bubblefinder.report.model import Report

ROOT = Path(__file__).parents[3]
PUBLISHED = ROOT / "docs" / "schema" / "report-1.json"
REPORTS = [sample_report(gpus=2), graph_report(), unseen_report(), hostile_report()]


@pytest.mark.parametrize("report", REPORTS)
def test_what_is_written_reads_back_equal(report: Report) -> None:
    assert json.decode(json.render(report)) == report
    assert json.decode(json.encode(report)) == report


@pytest.mark.parametrize("report", REPORTS)
def test_it_satisfies_the_published_schema(report: Report) -> None:
    schema = stdlib_json.loads(PUBLISHED.read_text())
    jsonschema.Draft202012Validator(schema).validate(stdlib_json.loads(json.render(report)))


def test_the_schema_refuses_a_time_that_is_text() -> None:
    content = stdlib_json.loads(json.render(sample_report()))
    content["devices"][0]["span_ns"] = "88 ms"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(content, stdlib_json.loads(PUBLISHED.read_text()))


def test_keys_are_sorted_and_unknown_is_null() -> None:
    content = stdlib_json.loads(json.render(graph_report()), object_pairs_hook=lambda pairs: pairs)
    names = [name for name, _ in content]
    assert names == sorted(names)
    assert dict(dict(content)["steps"])["bubble_share"][0] == ("inter_graph", pytest.approx(0.2, abs=0.1))
    assert ("total", None) in dict(dict(content)["steps"])["bubble_share"]


def test_unknown_keys_are_ignored() -> None:
    content = stdlib_json.loads(json.render(sample_report()))
    content["novelty"] = content["trace"]["novelty"] = {"a": 1}
    assert json.decode(stdlib_json.dumps(content)) == sample_report()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"SQLite format 3\x00", "no JSON object"),
        (b"\xff\xfe", "no JSON object"),
        (b"[]", "no JSON object"),
        (b"{}", "names no schema"),
        (b'{"schema": "other/1"}', "other/1"),
        (b'{"schema": "bubblefinder.report/1"}', "damaged"),
    ],
)
def test_other_files_are_refused_with_a_hint(content: bytes, says: str) -> None:
    with pytest.raises(NotATraceError, match=says) as caught:
        json.decode(content)
    assert "bubblefinder analyze" in caught.value.hint


@pytest.mark.parametrize("suffix", [".json", ".html"])
def test_a_written_report_reads_back_equal(tmp_path: Path, suffix: str) -> None:
    for number, report in enumerate((sample_report(gpus=2), hostile_report())):
        path = tmp_path / f"{number}{suffix}"
        write("report", report, path)
        assert read_report(path) == report


def test_a_page_without_a_report_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "x.html"
    page.write_text("<!doctype html><script>{}</script>")
    with pytest.raises(NotATraceError, match=r"x\.html: this HTML page holds no bubblefinder report"):
        read_report(page)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotATraceError, match=r"gone\.json can't be read"):
        read_report(tmp_path / "gone.json")
