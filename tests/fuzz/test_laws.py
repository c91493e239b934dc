"""The laws that fuzzed reports are held to notice a report that breaks them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bubblefinder.report.build import analyze_trace
from bubblefinder.rules.cases import Case, picture
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.schema import CALLS_TABLE, KIND_TABLES
from tests.laws import broken, lost_rows, seems_idle

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.model import Report

STEP = """
nvtx     | [decode_step                           ]
api      | D.V..CCCCCCCCCCCCCCCCCCC...............
gpu0 s7  | ddd.vvvvvvvvvvvvvvvvvvvC...............
D = graph 1 d
V = graph 2 v
C = copy DtoH 8 pageable
"""
TRACE = draw(picture(Case(name="x", why="x", fires=True, timeline=STEP, repeat=6)))
REPORT = analyze_trace(TRACE)


def device(**values: object) -> Callable[[Report], Report]:
    return lambda report: replace(report, devices=[replace(report.devices[0], **values)])  # type: ignore[arg-type]


def step(**values: object) -> Callable[[Report], Report]:
    def changed(report: Report) -> Report:
        row = replace(report.steps.rows[1], **values)  # type: ignore[arg-type]
        return replace(report, steps=replace(report.steps, rows=[report.steps.rows[0], row, *report.steps.rows[2:]]))

    return changed


def share(total: float) -> Callable[[Report], Report]:
    return lambda r: replace(r, steps=replace(r.steps, bubble_share=replace(r.steps.bubble_share, total=total)))


def finding(**values: object) -> Callable[[Report], Report]:
    return lambda report: replace(report, findings=[replace(report.findings[0], **values)])  # type: ignore[arg-type]


def mode(name: str) -> Callable[[Report], Report]:
    return lambda report: replace(report, trace=replace(report.trace, capture_mode=name))


BREACHES = {
    "no device": lambda report: replace(report, devices=[]),
    "the span": device(span_ns=1),
    "is not the union": device(busy_ns=REPORT.devices[0].busy_ns + 1),
    "ledger sums to": device(profiler_ns=1),
    "missing or negative": device(unrecorded_ns=None),
    "idle is not": device(idle_ns=0),
    "more launches recorded": device(launches=replace(REPORT.devices[0].launches, seen=0)),
    "launches lack their work": device(launches=replace(REPORT.devices[0].launches, seen=99)),
    "was not measured": mode("graph"),
    "yet idle time is told": mode("unseen"),
    "are explained": step(busy_ns=1),
    "are listed": step(excluded="prefill"),
    "the total share is 1.5": share(1.5),
    "something that is no number": share(float("nan")),
    "recovers": finding(recoverable_ns=10**12),
    "longer than the capture": finding(bubble_ns=replace(REPORT.findings[0].bubble_ns, p50=1e12)),
}


def test_a_sound_report_keeps_them() -> None:
    assert REPORT.steps.count == 5
    assert broken(REPORT, TRACE) == []


@pytest.mark.parametrize("told", BREACHES)
def test_a_breach_is_told(told: str) -> None:
    assert any(told in law for law in broken(BREACHES[told](REPORT), TRACE))


def test_idle_time_without_end_needs_a_warning() -> None:
    calm = replace(REPORT, quality=[])
    assert not seems_idle(calm)
    idle = device(idle_ns=REPORT.devices[0].span_ns)
    assert seems_idle(idle(calm))
    assert not seems_idle(idle(replace(REPORT, quality=[replace(REPORT.quality[0], level="warn")])))


def test_rows_that_vanish_are_told() -> None:
    kernels, copies = TRACE.operations["kind"].value_counts().sort("kind")["count"]
    whole = {KIND_TABLES[0]: kernels, KIND_TABLES[1]: copies, CALLS_TABLE: TRACE.calls.height}
    assert list(lost_rows(TRACE, whole)) == []
    assert len(list(lost_rows(TRACE, whole | {KIND_TABLES[0]: kernels + 1, CALLS_TABLE: 0}))) == 2
