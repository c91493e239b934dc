"""`bubblefinder report`: from a report to any other format."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from bubblefinder.cli.app import app, main
from bubblefinder.compare.diff import diff
from bubblefinder.render.formats import write
from bubblefinder.report.json import read_report
from tests.unit.compare.builders import a_report
from tests.unit.report.sample import sample_report, unseen_report

if TYPE_CHECKING:
    from pathlib import Path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["bubblefinder", "report", *map(str, arguments)])
    with pytest.raises(SystemExit) as stop:
        main()
    return int(stop.value.code or 0)


def test_a_page_becomes_json_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page, back = tmp_path / "a.html", tmp_path / "b.json"
    write("report", sample_report(), page)
    assert run(monkeypatch, page, "-o", back, "-o", tmp_path / "c.md", "-q") == 0
    assert read_report(back) == sample_report()
    assert (tmp_path / "c.md").read_text().startswith("### bubblefinder")


def test_markdown_is_printed_with_its_link(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("report", sample_report(), tmp_path / "a.json")
    assert run(monkeypatch, tmp_path / "a.json", "-f", "markdown", "--report-url", "https://host/r.html") == 0
    assert "[full report](https://host/r.html)" in capsys.readouterr().out


def test_the_page_of_a_comparison_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write("diff", diff([a_report("a")], [a_report("b")]), tmp_path / "diff.html")
    assert run(monkeypatch, tmp_path / "diff.html") == 3
    assert "diff.html: this is the page of a comparison (bubblefinder diff)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["gone.json"], 3, "gone.json can't be read"),
        (["a.json", "-f", "docx"], 2, "no format 'docx'"),
        (["a.json", "-o", "b.docx"], 2, "no format is written to files named like 'b.docx'"),
        (["not.json"], 3, "no JSON object"),
        (["unseen.json"], 3, "lacks the GPU work"),
    ],
)
def test_what_can_not_be_done_is_said_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    arguments: list[str], code: int, says: str,
) -> None:  # fmt: skip
    write("report", sample_report(), tmp_path / "a.json")
    write("report", unseen_report(), tmp_path / "unseen.json")
    (tmp_path / "not.json").write_text("SQLite format 3")
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, *arguments) == code
    assert says in capsys.readouterr().err


def test_standard_input_is_read_and_json_printed(tmp_path: Path) -> None:
    write("report", sample_report(), tmp_path / "a.json")
    done = CliRunner().invoke(app, ["report", "-", "--json"], input=(tmp_path / "a.json").read_bytes())
    assert done.stdout == (tmp_path / "a.json").read_text()
