"""Whatever a path holds, as a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.source import labelled, load
from bubblefinder.errors import InputError
from bubblefinder.render.report.html import render as render_html
from bubblefinder.report.json import render as render_json
from tests.unit.compare.builders import a_finding, a_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_reports_come_back_from_json_and_html(tmp_path: Path) -> None:
    report = a_report("</script><b>name", findings=[a_finding()])
    for name, content in (("report.json", render_json(report)), ("report.html", render_html(report))):
        (tmp_path / name).write_text(content)
        assert load(tmp_path / name) == report


def test_captures_are_analysed(sample: Callable[[str], Path]) -> None:
    assert load(sample("null_gpu_1.graph")).steps.count > 50


def test_what_is_neither_is_refused(tmp_path: Path) -> None:
    for name, content in (("a.json", '{"schema": "other/1"}'), ("a.html", "<p>hello"), ("a.txt", "hello")):
        (tmp_path / name).write_text(content)
        with pytest.raises(InputError):
            load(tmp_path / name)
    with pytest.raises(InputError):
        load(tmp_path / "none.sqlite")


def test_a_label_and_a_commit_are_put_on() -> None:
    report = labelled(a_report(), label="nightly", commit="abc")
    assert (report.run.label, report.run.commit) == ("nightly", "abc")
    assert labelled(report).run == report.run
