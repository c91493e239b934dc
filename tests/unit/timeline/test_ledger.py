from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.ledger import COLUMNS, window_ledger
from bubblefinder.timeline.model import IdleClass
from bubblefinder.trace.drawn import draw
from tests.captures import captures

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace


def test_there_is_a_column_for_every_class_in_order_of_precedence() -> None:
    names = ["profiler", "intra_graph", "unrecorded", "host_late", "launching", "queued", "unattributed"]
    assert [idle_class.name.lower() for idle_class in IdleClass] == names
    assert list(COLUMNS) == [f"{name}_ns" for name in names]


def test_each_window_has_the_part_of_the_ledger_inside_it() -> None:
    timeline = build_timeline(
        draw("""
            api  | A....B......
            gpu0 | .AAA....BBBB
        """)
    )
    starts, ends = np.array([10_000, 45_000]), np.array([45_000, 120_000])
    rows = (
        window_ledger(timeline, 0, starts, ends).select("busy_ns", "host_late_ns", "launching_ns", "queued_ns").rows()
    )
    # The gap lies from 40 to 80; B's launch runs from 50 to 60.
    assert rows == [(30_000, 5_000, 0, 0), (40_000, 5_000, 10_000, 20_000)]


def test_windows_of_one_gpu_know_nothing_of_another() -> None:
    timeline = build_timeline(draw("gpu0 | AA...A\ngpu1 | ..BBBB"))
    whole = np.array([0]), np.array([60_000])
    assert window_ledger(timeline, 0, *whole)["busy_ns"].to_list() == [30_000]
    assert window_ledger(timeline, 1, *whole)["busy_ns"].to_list() == [40_000]


@given(captures(), st.lists(st.integers(0, 80), max_size=4))
def test_windows_that_tile_the_span_share_out_the_whole_ledger(trace: Trace, cuts: list[int]) -> None:
    timeline = build_timeline(trace)
    for device in timeline.devices:
        inside = [device.start_ns + cut for cut in cuts if device.start_ns + cut < device.end_ns]
        edges = np.unique(np.array([device.start_ns, *inside, device.end_ns]))
        windows = window_ledger(timeline, device.gpu, edges[:-1], edges[1:])
        whole = window_ledger(timeline, device.gpu, edges[:1], edges[-1:])
        assert windows.sum().rows() == whole.rows()
        assert windows.sum_horizontal().to_list() == np.diff(edges).tolist()
        assert whole["busy_ns"].to_list() == [device.busy_ns]


@pytest.mark.parametrize("window", [(0, 0), (200_000, 300_000)], ids=["empty", "outside"])
def test_a_window_without_any_of_the_span_is_empty(window: tuple[int, int]) -> None:
    timeline = build_timeline(draw("gpu0 | AA.B"))
    ledger = window_ledger(timeline, 0, np.array(window[:1]), np.array(window[1:]))
    assert ledger.sum_horizontal().to_list() == [0]
