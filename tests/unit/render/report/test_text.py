"""The report at a terminal: what has nothing to say stays out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblefinder.render.report.text import render
from bubblefinder.report.found import Site
from bubblefinder.trace.model import QualityNote
from bubblefinder.units import milliseconds
from tests.unit.report.sample import finding, graph_report, sample_report, unseen_report


def labels(text: str) -> list[str]:
    lines = text.split("\n  ms a step ")[1].splitlines()[1:]
    return [line.strip().split("  ")[0] for line in lines[: lines.index("")] if not line.startswith("  Left out")]


def test_where_graph_work_is_unseen_only_the_length_of_a_step_is_told() -> None:
    assert labels(render(unseen_report())) == ["step"]


def test_the_inside_of_graphs_is_told_as_unknown_only_where_there_are_graphs() -> None:
    graph = graph_report()
    assert "inside graphs" in labels(render(graph))
    eager = replace(graph, trace=replace(graph.trace, capture_mode="none"))
    assert "inside graphs" not in labels(render(eager))


def test_the_gravest_note_comes_first() -> None:
    notes = [QualityNote(code=level, level=level, message=f"a {level}") for level in ("info", "warn", "error")]
    text = render(sample_report(quality=notes), verbose=True)
    assert text.index("a error") < text.index("a warn") < text.index("a info")


def test_what_is_said_of_several_places_is_said_once() -> None:
    same = [finding(title="A scalar is read", severity="info", site=Site(nvtx=name)) for name in "ab"]
    lines = render(sample_report(findings=same)).splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines if "A scalar is read" in line] == [
        "A scalar is read (in 2 places)"
    ]


def test_a_capture_that_names_calls_alone_says_where_each_is_called() -> None:
    walked = QualityNote(code="stack-walked", level="warn", message="walked")
    read = Site(api="cudaMemcpyAsync", frame="prepare_decode (scheduler.py)")
    report = sample_report(findings=[finding(title="A scalar is read", severity="info", site=read)])
    assert "prepare_decode" not in render(report)
    text = render(replace(report, quality=[walked]))
    assert "cudaMemcpyAsync, in prepare_decode (scheduler.py)" in text
    assert "For information" not in text


def test_why_windows_were_left_out_is_told_in_words() -> None:
    report = sample_report()
    left_out = replace(report.steps, excluded={"not_selected": 5, "tail": 1})
    assert "Left out of the statistics: 5 not selected, 1 unclosed last window" in render(
        replace(report, steps=left_out)
    )


@pytest.mark.parametrize("width", [80, 100, 160])
def test_numbers_are_never_cut(width: int) -> None:
    report = sample_report(gpus=2)
    shown = set(render(report, width).split())
    ranks = [milliseconds(rank.per_step[name].p50) for rank in report.steps.by_device for name in ("duration", "busy")]
    gaps = [f"{row.p50_ns / 1000:,.1f}" for row in report.detail.gaps if row.gap_class != "intra_graph"]
    assert set(ranks + gaps) <= shown


def test_a_narrow_terminal_spares_what_the_classes_mean() -> None:
    assert "meaning" in render(sample_report(), 120)
    assert "meaning" not in render(sample_report(), 100)


def test_no_line_ends_in_blanks() -> None:
    assert not [line for line in render(sample_report()).splitlines() if line != line.rstrip()]


def test_a_wait_in_a_row_shows_what_it_gives_in_its_turn() -> None:
    held = finding(recoverable_ns=3_200, in_turn_ns=423_000)
    text = " ".join(render(sample_report(findings=[held])).split())
    assert "Findings, gravest first" in text
    assert "to recover 423 us once the waits before it are gone, alone 3.20 us" in text
    assert "step then" not in text
    assert "once the waits before" not in render(sample_report(findings=[finding(in_turn_ns=400)]))
