"""The host's step in the report, and in the text that a terminal shows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bubblefinder.render.report import html, markdown, text
from bubblefinder.render.report.host import host_tables, sections
from bubblefinder.report.build import analyze_trace, report_of
from bubblefinder.units import duration
from tests.simulate import Graph, Machine, nodes
from tests.unit.causes.test_host_time import slow_host
from tests.unit.replay.test_wait_chains import EVERY, engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.model import Report


def fed() -> Machine:
    machine = Machine(jitter=0)
    host = machine.host()
    for _ in range(20):
        host.work(50)
        host.replay(Graph(6, nodes(*("attn", "mlp") * 40)))
    return machine


def test_a_late_host_is_taken_apart_and_what_shortens_it_is_priced() -> None:
    report = analyze_trace(slow_host().trace())
    host = report.host
    assert host is not None
    assert (host.gpu, host.pid) == (report.steps.gpu, report.steps.pid)
    assert host.shorten[0].recoverable_ns == pytest.approx(550_000, rel=0.02)
    assert host.shorten[0].step_after_ns == pytest.approx(1_340_000 - 550_000, rel=0.02)
    assert report.findings[0].rule == "CUDA101"
    assert "draft-extend to draft 1.10 ms" in report.findings[0].message
    shown = text.render(report)
    assert "Where the launching thread's step goes\n  The step: 1.34 ms; " in shown
    assert "draft-extend to draft" in shown


def test_a_host_that_is_ahead_is_shown_only_when_asked_for_more() -> None:
    report = analyze_trace(fed().trace())
    assert report.host is not None
    assert report.host.shorten == []
    assert "Where the launching thread" not in text.render(report)
    assert "Where the launching thread" in text.render(report, verbose=True)


def test_few_rows_are_shown_and_all_when_asked() -> None:
    machine = Machine(jitter=0)
    host = machine.host()
    for _ in range(20):
        for number in range(12):
            with host.range("part " + "abcdefghijkl"[number]):
                host.work(30)
                host.kernel(f"k{number}", 2)
        host.read()
    report = analyze_trace(machine.trace())
    assert report.host is not None
    few, every = ([len(table.rows) for table in host_tables(report.host, verbose=verbose)] for verbose in (False, True))
    assert max(few) == 8
    assert max(every) == 13


def test_no_decode_step_has_no_host_step() -> None:
    machine = Machine()
    machine.host().kernel("once", 5)
    assert analyze_trace(machine.trace()).host is None


def test_waits_in_a_row_stand_below_each_other_with_what_each_and_all_give() -> None:
    report = report_of(engine(*EVERY))
    (chain,) = report.wait_chains
    waits = next(section for section in sections(report) if section.anchor == "waits")
    (table,) = waits.tables
    assert [row[0].partition(".")[0] for row in table.rows] == ["1", "2", "3", "all of them together"]
    assert [row[2].partition(" (")[0] for row in table.rows] == [
        *(duration(link.in_turn_ns) for link in chain.links),
        duration(chain.joint.recoverable_ns),
    ]
    assert all(link.rule and link.rule in row[0] for link, row in zip(chain.links, table.rows, strict=False))
    assert duration(chain.both.step_after_ns) in waits.sentences[1]


@pytest.mark.parametrize("render", [text.render, markdown.render, html.render], ids=["text", "markdown", "html"])
def test_every_format_shows_what_holds_the_launching_thread(render: Callable[[Report], str]) -> None:
    shown = render(report_of(engine(*EVERY)))
    assert "all of them together" in shown
    assert "Waits that hold the launching thread one after the other" in shown
    assert "from the launch of" in shown


def test_a_chain_of_another_rank_is_left_to_the_json() -> None:
    report = report_of(engine(*EVERY))
    elsewhere = replace(report, wait_chains=[replace(report.wait_chains[0], pid=1)])
    assert "waits" not in {section.anchor for section in sections(elsewhere)}
