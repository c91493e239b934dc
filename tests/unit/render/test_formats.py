"""The registry: which suffix means what, and files that appear whole or not at all."""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest

from bubblefinder.compare.budget import BudgetFile
from bubblefinder.compare.diff import diff
from bubblefinder.compare.judge import judge
from bubblefinder.errors import UsageError
from bubblefinder.fleet.model import Failure, Fleet, Row
from bubblefinder.pipeline import Analysis
from bubblefinder.render.formats import FORMATS, Document, encoded, format_for, formats_of, render, write
from bubblefinder.replay.answer import answer as of_study
from bubblefinder.report.model import Selection
from tests.loops import disturbed
from tests.unit.compare.builders import MS, a_report
from tests.unit.render.test_trend import a_trend
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
    from collections.abc import Callable

    from bubblefinder.replay.answer import Answer

LIMITS = BudgetFile.model_validate({"version": 1, "budget": [{"metric": "step.duration.p50", "max": "7 ms"}]})

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

    assert "in each of 2 of 11 steps (left-out ones counted)" in told(2)
    assert "in 1 of 11 steps" in told(1)
    assert "in each of" not in told(9)


COMMANDS: dict[Document, str] = {
    "report": "analyze",
    "diff": "diff",
    "budget": "budget check",
    "prediction": "whatif",
    "trend": "history trend",
    "floor": "floor",
    "speculation": "speculation",
    "fleet": "batch",
}


@pytest.mark.parametrize("form", sorted({one.name for one in FORMATS}))
def test_the_page_on_formats_says_which_commands_write_one_and_by_which_suffix(root: Path, form: str) -> None:
    page = (root / "docs" / "formats.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| `")]
    (row,) = [row for row in rows if row[0] == f"`{form}`"]
    by = [document for document in get_args(Document) if form in formats_of(document)]
    assert row[3] == ("all" if len(by) == len(COMMANDS) else ", ".join(f"`{COMMANDS[one]}`" for one in by))
    suffixes = {suffix for document in by for suffix in formats_of(document)[form].suffixes}
    assert all(f"`{suffix.removesuffix('.gz')}`" in row[1] for suffix in suffixes)
    assert [command for command in COMMANDS.values() if f"`{command}`" not in page] == []


@cache
def answer() -> Answer:
    analysis = Analysis(disturbed(0).sketch.trace())
    study = analysis.study
    return replace(of_study(study, study.ranks[0], accept_length=3.0), name=HOSTILE[0])


def a_row(**changed: Any) -> Row:
    known: dict[str, Any] = {"mode": "node", "confidence": "high", **changed}
    return Row(
        **known,
        gpu=0, pid=1, steps=9, step_ns=7e6, busy_ns=6e6, bubble_ns=1e6, inter_ns=3e5,
    )  # fmt: skip


DOCUMENTS: dict[Document, Callable[[], object]] = {
    "diff": lambda: diff([a_report(HOSTILE[0])], [a_report(HOSTILE[0], host_late=2 * MS)]),
    "budget": lambda: judge(a_report(HOSTILE[0]), LIMITS, None, date(2026, 11, 29)),
    "prediction": answer,
    "trend": lambda: a_trend(*[7e6] * 4, *[7.7e6] * 4),
    "fleet": lambda: Fleet(
        (a_row(capture=HOSTILE[0], path=f"/{HOSTILE[0]}", first=HOSTILE[0]),), (Failure("/x", HOSTILE[0]),)
    ),
}


@pytest.mark.parametrize(
    ("document", "form"), [(kind, form) for kind in DOCUMENTS for form in formats_of(kind) if form != "parquet"]
)
def test_every_document_is_written_in_its_formats_and_names_do_nothing(document: Document, form: str) -> None:
    shown = DOCUMENTS[document]()
    first, second = (encoded(render(document, shown, form)).decode() for _ in range(2))
    assert first == second
    assert len(first) > 40
    assert "\x1b" not in first
    if form in ("html", "markdown", "summary"):
        assert "<script>alert" not in first
        assert "<img" not in first
    if form in ("text", "html", "markdown", "summary", "github"):
        assert re.search(r"7\.[0-9]+ ms|step", first)


def test_csv_has_one_row_a_metric_limit_fix_or_run() -> None:
    rows = {kind: str(render(kind, value(), "csv")).splitlines() for kind, value in DOCUMENTS.items()}
    assert len(rows["trend"]) == 1 + 8
    assert len(rows["budget"]) == 1 + 1
    assert rows["prediction"][0] == (
        "number,fix,text,now_ns,step_ns,low_ns,high_ns,recoverable_ns,recoverable_low_ns,recoverable_high_ns,bound"
    )
    assert len(rows["prediction"]) == 1 + len(answer().fixes)
    assert rows["diff"][0].startswith("metric,where,unit,base,head,delta,threshold,status")


@pytest.mark.parametrize("form", sorted(set(formats_of("report")) - {"csv", "parquet"}))
def test_what_was_chosen_is_in_every_format_but_those_of_rows(form: str) -> None:
    chosen = Selection(
        window_ns=None,
        steps=[5, 15],
        step_by="sequence:40",
        count=40,
        step_p50_ns=9.86e6,
        method="cadence",
        confidence="high",
    )
    report = sample_report()
    told = render("report", replace(report, steps=replace(report.steps, selection=chosen)), form)
    assert isinstance(told, str)
    assert "sequence:40" in told.replace("%3A", ":").replace("\\:", ":")
