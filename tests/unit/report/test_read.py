"""Reports come back from the files that were written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import NotATraceError
from bubblefinder.render.formats import write
from bubblefinder.report.read import read_report
from tests.unit.report.sample import hostile_report, sample_report

if TYPE_CHECKING:
    from pathlib import Path


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
