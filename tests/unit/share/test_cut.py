"""A part of a capture: the work asked for, and what is needed to judge it as the whole would."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.errors import CannotAnswerError
from bubblefinder.report.build import Options, analyze_trace
from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.ledger import device_ledger
from bubblefinder.timeline.model import CaptureMode
from bubblefinder.trace.drawn import draw
from tests.judged import cut
from tests.loops import SPECULATIVE, US, Loop

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace


def speculative(steps: int = 12, seed: int = 1) -> Trace:
    loop = Loop(seed=seed)
    for _ in range(steps):
        loop.step(SPECULATIVE)
    return loop.sketch.trace()


def test_a_window_does_not_make_launches_outside_of_it_unrecorded() -> None:
    trace = draw("""
        api      | AB..C....D.E
        gpu0 s7  | .AA..CC...D.
        gpu0 s14 | .......BB...
        gpu0 s7  | ............E
    """)
    part = build_timeline(cut(trace, window=(50_000, 110_000)))
    assert part.operations["start_ns"].to_list() == [50_000, 70_000, 100_000]
    (device,) = part.devices
    told = {name: time for name, time in device_ledger(part, device).items() if time}
    assert told == {"busy_ns": 50_000, "launching_ns": 10_000}
    assert (device.start_ns, device.end_ns, device.launches_seen, device.launches_recorded) == (50_000, 110_000, 3, 3)


def test_a_window_counts_from_the_captures_start() -> None:
    trace = draw("gpu0 | AA.BB.CC")
    shifted = replace(trace, info=replace(trace.info, start_ns=30_000))
    assert cut(shifted, window=(0, 30_000)).operations["start_ns"].to_list() == [30_000]


def test_a_window_has_the_mode_of_its_capture() -> None:
    trace = draw("api | A.G...\ngpu0 | A..gg.\nG = graph g", us_per_char=1)
    assert build_timeline(cut(trace, window=(0, 1_000))).mode is CaptureMode.NODE


def test_a_window_without_work_is_refused() -> None:
    with pytest.raises(CannotAnswerError, match="no GPU operation starts inside"):
        cut(draw("gpu0 | AA.BB"), window=(20_000, 30_000))


def test_what_is_asked_for_of_nothing_is_the_capture_itself() -> None:
    trace = speculative(3)
    assert cut(trace) is trace


def test_what_happened_meanwhile_stays_and_the_rest_goes() -> None:
    trace = draw("""
        nvtx     | [early ][open      ]
        api      | A.W...B.....
        api2     | .........C..
        gpu0     | .AA....BB..C
        os       | PP..QQ.....PP
        W = cudaStreamSynchronize_v3020 s7
        P = name poll
        Q = name read
    """)
    part = cut(trace, window=(70_000, 90_000))
    assert part.nvtx["text"].to_list() == ["early", "open"]
    assert part.calls["start_ns"].to_list() == [60_000]
    assert part.os_calls["name"].to_list() == ["read"]
    assert set(part.thread_names) <= set(part.calls["thread"]) | set(part.nvtx["thread"])


@given(first=st.integers(0, 9), length=st.integers(1, 4), seed=st.integers(0, 99))
def test_selected_steps_have_the_ledger_that_the_whole_capture_gives_them(first: int, length: int, seed: int) -> None:
    trace = speculative(seed=seed)
    whole = {row.index: row for row in analyze_trace(trace).steps.rows}
    part = analyze_trace(trace, Options(steps=(first, first + length)))
    assert part.steps.count
    assert [row for row in part.steps.rows if row.excluded is None] == [
        row for index, row in whole.items() if first <= index < first + length and row.excluded is None
    ]


def test_a_part_of_a_part_is_that_part() -> None:
    trace = speculative()
    once, twice = cut(trace, steps=(3, 5)), cut(cut(trace, steps=(2, 8)), steps=(3, 5))
    assert once.operations.equals(twice.operations)
    assert once.calls.equals(twice.calls)


def test_work_that_reaches_into_the_first_step_is_kept() -> None:
    trace = speculative()
    steps = analyze_trace(trace).steps.rows
    third = steps[3].start_ns
    early = trace.operations.filter(pl.col("start_ns") < third).tail(1)
    reaching = early.with_columns(end_ns=pl.lit(third + 5 * US), stream=pl.lit(99, dtype=pl.Int64), correlation=None)
    columns = trace.operations.columns
    operations = pl.concat([trace.operations, reaching.select(columns).cast(trace.operations.schema)]).sort("start_ns")
    longer = replace(trace, operations=operations)
    assert cut(longer, steps=(3, 5)).operations["start_ns"].min() == early["start_ns"][0]


def test_a_step_that_is_not_there_is_refused() -> None:
    with pytest.raises(CannotAnswerError, match="no decode step has such an index"):
        cut(speculative(4), steps=(40, 50))
