from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from bubblefinder.causes.decode import lanes, p50, percentile, spread
from bubblefinder.timeline.model import IdleClass
from tests.judged import drawn
from tests.unit.causes.test_sites import CPU


def test_a_lane_counts_the_tail_for_findings_but_not_for_durations() -> None:
    judged = drawn(CPU)
    (lane,) = lanes(judged.timeline, judged.steps, judged.causes)
    assert lane.steps == 3
    assert lane.counted.sum() == 4
    assert lane.step_p50_ns == 21_000


def test_idle_of_a_lane_sums_to_what_its_steps_idle() -> None:
    judged = drawn(CPU)
    (lane,) = lanes(judged.timeline, judged.steps, judged.causes)
    idle = lane.idle(np.ones(len(lane.pieces.index), np.bool_))
    assert idle.tolist() == [14_000] * 3
    assert lane.share(idle.sum()) == pytest.approx(14 / 21)
    late = lane.idle(lane.pieces.idle_class == IdleClass.HOST_LATE)
    assert (late <= idle).all()


def test_idle_that_a_window_begins_in_is_shared_between_both() -> None:
    judged = drawn(CPU)
    inside = judged.steps.windows.with_columns(pl.col("start_ns", "end_ns") - 5_000)
    (lane,) = lanes(judged.timeline, replace(judged.steps, windows=inside), judged.causes)
    whole = lane.per_window(lane.pieces.window, lane.pieces.ns)
    assert lane.idle(np.ones(len(lane.pieces.index), np.bool_)).tolist() == [9_000, 14_000, 14_000]
    assert whole.sum() == (judged.timeline.pieces["end_ns"] - judged.timeline.pieces["start_ns"]).sum()


def test_windows_of_other_lanes_are_none_of_this_one() -> None:
    judged = drawn(CPU)
    (lane,) = lanes(judged.timeline, judged.steps, judged.causes)
    assert lane.own(pl.Series([0, None, 3, 99])).tolist() == [0, -1, 3, -1]


def test_percentiles_are_numpys_and_nothing_has_none() -> None:
    assert p50(np.array([1, 2, 10])) == 2
    assert percentile(np.array([1, 3]), 50) == 2
    assert p50(np.array([], np.int64)) is None


def test_evidence_is_spread_over_all_rows() -> None:
    assert spread(pl.Series(range(101)), 3).to_list() == [0, 50, 100]
    assert spread(pl.Series([4, 5]), 3).to_list() == [4, 5]
