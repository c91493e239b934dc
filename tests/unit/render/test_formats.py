"""The registry: which suffix means what, and files that appear whole or not at all."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from bubblefinder.errors import UsageError
from bubblefinder.render.formats import format_for, formats_of, render, write
from tests.unit.report.sample import finding, graph_report, healthy_report, hostile_report, sample_report, unseen_report

REPORTS = {
    "sample": sample_report(gpus=2),
    "healthy": healthy_report(),
    "graph": graph_report(),
    "unseen": unseen_report(),
    "hostile": hostile_report(),
}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.html", "html"),
        ("a.JSON", "json"),
        ("nextn.node.perfetto.json", "perfetto"),
        ("nextn.node.perfetto.json.gz", "perfetto"),
        ("a.trace.json.GZ", "perfetto"),
        ("a.junit.xml", "junit"),
        ("a.xml", "junit"),
        ("a.md", "markdown"),
        ("a.summary.md", "summary"),
        ("a.txt", "text"),
        ("a.github.txt", "github"),
        ("a.csv", "csv"),
        ("a.parquet", "parquet"),
    ],
)
def test_the_longest_suffix_picks_the_format(name: str, form: str) -> None:
    assert format_for("report", Path(name)).name == form


def test_an_unknown_suffix_names_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"report\.docx") as caught:
        format_for("report", Path("report.docx"))
    assert ".junit.xml" in caught.value.hint


@pytest.mark.parametrize("form", [name for name in formats_of("report") if name != "text"])
@pytest.mark.parametrize("which", REPORTS)
def test_every_format_renders_every_kind_of_report(form: str, which: str) -> None:
    first, second = (render("report", REPORTS[which], form) for _ in range(2))
    assert len(first) > 50
    assert first == second


def test_a_file_appears_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write("report", sample_report(), path)
    assert path.read_text() == render("report", sample_report(), "json")
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
    assert path.stat().st_mode & 0o044 == 0o044


def test_a_packed_file_holds_the_same_and_not_the_time(tmp_path: Path) -> None:
    path = tmp_path / "a.perfetto.json.gz"
    write("report", sample_report(), path)
    packed = path.read_bytes()
    assert gzip.decompress(packed).decode() == render("report", sample_report(), "perfetto")
    assert packed[4:8] == bytes(4)


@pytest.mark.parametrize("name", ["a.json.gz", "a.gz", "a.html.gz"])
def test_only_what_a_reader_opens_packed_is_packed(name: str) -> None:
    with pytest.raises(UsageError, match="no format is written"):
        format_for("report", Path(name))


def test_nothing_is_left_where_the_target_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.json").mkdir()
    with pytest.raises(UsageError, match="can't be written"):
        write("report", sample_report(), tmp_path / "a.json")
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="can't be written"):
        write("report", sample_report(), tmp_path / "no" / "a.json")


def test_an_existing_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("mine")
    write("report", sample_report(), path)
    assert path.read_text().startswith("index,gpu,pid")


@pytest.mark.parametrize("form", ["text", "markdown", "html", "junit", "github"])
def test_what_few_steps_cost_is_not_told_as_the_cost_of_every_step(form: str) -> None:
    def told(affected: int) -> str:
        said = render("report", sample_report(findings=[finding(steps_affected=affected)]), form)
        assert isinstance(said, str)
        return " ".join(said.split())

    assert "in each of 2 of " in told(2)
    assert "in each of" not in told(9)
