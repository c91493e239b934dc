"""Tables and sentences at a terminal of any width."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.text import Text

from bubblefinder.compare.diff import diff
from bubblefinder.render.diff.sheet import sheet
from bubblefinder.render.kit.sheet import Table
from bubblefinder.render.kit.text import PLAIN_WIDTH, draw, page_width, prose, show, write
from bubblefinder.report.found import Site
from tests.unit.compare.builders import MS, a_finding, a_report

NARROW = 80
LONG = Table(
    "Limits",
    ("metric", "limit", "why"),
    [("step.duration.p50 (rank 0)", "9 ms", "agreed with everybody " * 6)],
    left=("why",),
)
SPARE = Table("Steps", ("", "p50", "p95"), [("a" * 60, "1.000", "2.000")], spare=1)


def squeezed(text: str) -> str:
    return "".join(text.split())


def test_a_table_is_as_wide_as_it_likes_where_nothing_limits_it() -> None:
    assert draw(LONG).splitlines()[2].endswith("agreed with everybody")


@pytest.mark.parametrize("width", [80, 100, 160])
def test_long_cells_wrap_and_lose_nothing(width: int) -> None:
    lines = draw(LONG, width).splitlines()
    assert max(map(len, lines)) <= width
    assert "".join(lines).count("everybody") == 6


def test_names_break_between_words_while_there_is_room() -> None:
    assert "step.duration.p50 (rank 0)" in draw(LONG, NARROW)
    assert "step.duration.p50" in draw(LONG, 50)


def test_columns_that_can_be_spared_go_before_others_shrink_and_are_named() -> None:
    narrow, wide = draw(SPARE, 72), draw(SPARE, NARROW)
    assert "2.000" in wide
    assert "wider" not in wide
    assert "2.000" not in narrow
    assert narrow.endswith("A wider terminal shows p95 as well.")


def test_a_sentence_is_one_line_unless_a_terminal_is_narrower() -> None:
    words = "one two " * 20
    assert prose(words, None) == words
    assert max(map(len, prose(words, 30, "  ").splitlines())) <= 30
    assert prose(words, 30, "  ").splitlines()[1].startswith("  ")


def test_a_comparison_fits_a_narrow_terminal_and_says_the_same() -> None:
    site = Site(api="cudaMemcpyAsync", nvtx="resolve", after_role="verify", before_role="draft")
    head = a_report(host_late=2 * MS, findings=[a_finding(title="Lengths are read in resolve", site=site)])
    result = diff([a_report()], [head])
    narrow, free = write(sheet(result), NARROW), write(sheet(result))
    assert max(map(len, narrow.splitlines())) <= NARROW
    assert squeezed(free.split("\n\n")[0]) == squeezed(narrow.split("\n\n")[0])
    assert squeezed(free).startswith(squeezed(result.headline))
    assert max(map(len, free.split("\n\n")[0].splitlines())) <= PLAIN_WIDTH


@pytest.mark.parametrize(("columns", "width"), [("", None), ("many", None), ("0", None), ("80", 80), ("3", 20)])
def test_without_a_terminal_a_page_is_as_wide_as_columns_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str, width: int | None
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert page_width() == width
    show(lambda _: Text("word " * 50))
    assert max(map(len, capsys.readouterr().out.splitlines())) in range(
        (width or PLAIN_WIDTH) - 5, (width or PLAIN_WIDTH) + 1
    )


def test_a_place_that_the_title_names_is_not_named_again() -> None:
    finding = a_finding(title="Lengths are read (resolve)", site=Site(api="copy", nvtx="resolve"))
    other = replace(finding, title="A read")
    told = [write(sheet(diff([a_report()], [a_report(findings=[one])]))) for one in (finding, other)]
    assert "Lengths are read (resolve) (copy)" in told[0]
    assert "A read (copy, in resolve)" in told[1]
