"""The least and the most that a change gives, where part of the step may be the profiler's: by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bubblefinder.replay.bound import Bound
from bubblefinder.replay.changes import CaptureEager, HostSpeed, RemoveTracing, RemoveWaits
from bubblefinder.replay.doubt import Doubt, Estimate
from bubblefinder.replay.predict import Prediction
from bubblefinder.replay.sentences import sentence

MS = 1_000_000
THEN = Prediction(
    gpu=0,
    process=1,
    runs=((10 * MS, 7 * MS), (12 * MS, 8 * MS), (8 * MS, 6 * MS)),
    bound=Bound.HOST,
)
"""On the recorded host, a slower one and a faster one."""
WAIT = RemoveWaits(frozenset({1}))


def test_a_wait_more_that_goes_costs_no_time_on_any_host() -> None:
    """As of SGLang on two GPUs, where a replay without the third wait in a row came 19 us later than with it."""
    more = replace(THEN, runs=((10 * MS, 8 * MS), (12 * MS, 7 * MS), (8 * MS, 6 * MS)))
    assert more.no_longer_than(THEN).runs == ((10 * MS, 7 * MS), (12 * MS, 7 * MS), (8 * MS, 6 * MS))


def test_without_doubt_a_gain_is_as_wide_as_hosts_differ_in_it() -> None:
    gives = Estimate(THEN)
    assert gives.value is THEN
    assert gives.gain_range_ns == (2 * MS, 4 * MS)
    assert gives.step_range_ns == (6 * MS, 8 * MS)
    assert "goes from 10.0 ms to 7.00 ms" in sentence(gives)


@pytest.mark.parametrize(("profilers_ns", "least"), [(1_500_000, 500_000), (3_000_000, 0)])
def test_what_may_be_the_profilers_comes_off_the_least_where_no_host_without_it_was_tried(
    profilers_ns: int, least: int
) -> None:
    gives = Estimate(THEN, Doubt(profilers_ns))
    assert gives.value is None
    assert gives.gain_range_ns == (least, 4 * MS)
    assert gives.step_range_ns == (6 * MS - profilers_ns, 8 * MS)
    assert "up to" in sentence(gives)
    assert "7.00" not in sentence(gives)


def test_hosts_without_the_profiler_tell_what_may_be_its_own() -> None:
    tried = replace(THEN, runs=(*THEN.runs, (7 * MS, 5_500_000), (9 * MS, 4 * MS)), untraced=True)
    gives = Estimate(tried, Doubt(1_500_000))
    assert gives.value is None
    assert gives.gain_range_ns == (1_500_000, 5 * MS)
    assert gives.step_range_ns == (4 * MS, 8 * MS)


def test_of_a_faster_host_only_what_surely_remains_is_sure() -> None:
    gives = Estimate(THEN, Doubt(sure=0.4))
    assert gives.value is None
    assert gives.gain_range_ns == (1_200_000, 4 * MS)
    assert gives.step_range_ns == (6 * MS, 8_800_000)
    assert sentence(gives, why=False) == "The step loses between 1.20 ms and 4.00 ms."
    assert sentence(gives).endswith(": part of the traced step may be the profiler's own time.")
    assert Estimate(THEN, Doubt(sure=0.96)).value is THEN


def test_a_change_has_the_doubts_that_are_about_it() -> None:
    doubt = Doubt(1_000, 0.5)
    assert doubt.about([WAIT]) == Doubt(1_000)
    assert doubt.about([WAIT, HostSpeed(2.0)]) == doubt
    assert doubt.about([CaptureEager("eager")]) == doubt
    none = np.empty(0)
    untraced = RemoveTracing(none, none, none, none, none, none, none, none)
    assert doubt.about([HostSpeed(2.0), untraced]) == Doubt()
