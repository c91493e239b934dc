"""The parts of a report: the same in every format, in one order."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from bubblefinder.render.report import html, markdown, text
from bubblefinder.render.report.sections import NAMES, gpu_table, notes, sections
from bubblefinder.trace.model import QualityNote
from tests import samples
from tests.unit.report.sample import graph_report, healthy_report, sample_report, unseen_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.model import Report

WIDE = 400
REPORTS = {
    "sample": sample_report(gpus=2),
    "graph": graph_report(),
    "healthy": healthy_report(),
    "unseen": unseen_report(),
}
FORMATS: dict[str, Callable[[Report], str]] = {
    "text": lambda report: text.render(report, WIDE, verbose=True),
    "markdown": lambda report: re.sub(r"&#(\d+);", lambda found: chr(int(found[1])), markdown.render(report)),
    "html": lambda report: unescape(re.sub(r"<[^>]*>", " ", html.render(report).partition("<script")[0])),
}


def without_steps() -> Report:
    report = samples.report("nextn_before.graph")
    return replace(report, steps=replace(report.steps, count=0, roles=[], by_device=[]), host=None, wait_chains=[])


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("which", REPORTS)
def test_every_format_shows_every_part_and_every_cell(form: str, which: str) -> None:
    report = REPORTS[which]
    shown = " ".join(FORMATS[form](report).split())
    for section in sections(report).values():
        for sentence in section.sentences:
            assert sentence in shown
        for table in section.tables:
            cells = {cell for row in table.narrow().rows for cell in row}
            assert {cell for cell in cells if " ".join(cell.split()) not in shown} == set()


def test_details_are_for_who_asks_for_more() -> None:
    report = REPORTS["sample"]
    details = {section.heading for section in sections(report).values() if section.is_detail}
    assert {"Kernels of a step", "Launch lead", "Gaps by length"} <= details
    assert not any(heading in text.render(report) for heading in details)


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_words_keep_the_one_order(form: str) -> None:
    known = sections(REPORTS["sample"])
    assert list(known) == [anchor for anchor in NAMES if anchor in known]
    shown = FORMATS[form](REPORTS["sample"])
    places = [shown.index(section.heading) for anchor, section in known.items() if anchor != "ledger"]
    assert places == sorted(places)


def test_the_page_keeps_the_one_order() -> None:
    anchors = re.findall(r'<section id="(\w+)"', html.render(REPORTS["sample"]))
    assert anchors[0] == "verdict"
    assert anchors[1:] == [anchor for anchor in NAMES if anchor in anchors]
    assert set(sections(REPORTS["sample"])) - set(anchors) == {"ledger"}


def test_the_gravest_note_comes_first() -> None:
    said = [QualityNote(code=level, level=level, message=f"a {level}") for level in ("info", "warn", "error")]
    assert [note.level for note in notes(sample_report(quality=said))] == ["error", "warn", "info"]
    assert [note.level for note in notes(sample_report(quality=said), verbose=False)] == ["error", "warn"]


def test_without_steps_the_whole_window_is_told_in_shares_that_add_up() -> None:
    report = without_steps()
    ledger = sections(report)["ledger"]
    assert ledger.heading.startswith("The whole window")
    for table in (ledger.tables[0], gpu_table(report)):
        (row,) = table.rows
        shares = [float(cell.removesuffix(" %")) for cell in row if cell.endswith("%")]
        assert sum(shares) == pytest.approx(100, abs=0.5)
    assert "The whole window" in text.render(report)


def test_a_table_keeps_its_columns_but_those_it_can_spare() -> None:
    (table,) = sections(sample_report())["gaps"].tables
    assert table.header[-2:] == ("total ms", "class")
    assert table.narrow().header == table.header[:-2]
    assert all(len(before) == len(after) for before, after in pairwise(table.narrow().rows))
