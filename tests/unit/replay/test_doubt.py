"""The least and the most that a change gives, where part of the step may be the profiler's: by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bubblefinder.replay.changes import CaptureEager, HostSpeed, RemoveTracing, RemoveWaits
from bubblefinder.replay.critical_path import Bound
from bubblefinder.replay.doubt import Doubt, Estimate
from bubblefinder.replay.likely_costs import Untraced
from bubblefinder.replay.predict import Prediction
from bubblefinder.replay.sentences import sentence

THEN = Prediction(
    gpu=0, process=1, now_ns=10_000_000, step_ns=7_000_000, low_ns=6_000_000, high_ns=8_000_000, bound=Bound.HOST
)
WAIT = RemoveWaits(frozenset({1}))


def test_without_doubt_a_gain_is_as_wide_as_hosts_differ() -> None:
    gives = Estimate(THEN)
    assert gives.value is THEN
    assert gives.gain_range_ns == (2_000_000, 4_000_000)
    assert gives.step_range_ns == (6_000_000, 8_000_000)
    assert "goes from 10.0 ms to 7.00 ms" in sentence(gives)


@pytest.mark.parametrize(("profilers_ns", "least"), [(1_500_000, 500_000), (3_000_000, 0)])
def test_what_may_be_the_profilers_comes_off_the_least(profilers_ns: int, least: int) -> None:
    gives = Estimate(THEN, Doubt(profilers_ns))
    assert gives.value is None
    assert gives.gain_range_ns == (least, 4_000_000)
    assert gives.step_range_ns == (6_000_000 - profilers_ns, 8_000_000)
    assert "up to" in sentence(gives)
    assert "7.00" not in sentence(gives)


def test_of_a_faster_host_only_what_surely_remains_is_sure() -> None:
    gives = Estimate(THEN, Doubt(sure=0.4))
    assert gives.value is None
    assert gives.gain_range_ns == (1_200_000, 4_000_000)
    assert gives.step_range_ns == (6_000_000, 8_800_000)
    assert sentence(gives, why=False) == "The step loses between 1.20 ms and 4.00 ms."
    assert sentence(gives).endswith(": part of the traced step may be the profiler's own time.")
    assert Estimate(THEN, Doubt(sure=0.96)).value is THEN


def test_more_gives_no_less_than_a_part_of_it_surely_does() -> None:
    gives = Estimate(THEN, Doubt(sure=0.4), least_ns=1_900_000)
    assert gives.gain_range_ns == (1_900_000, 4_000_000)
    assert gives.step_range_ns == (6_000_000, 8_100_000)


def test_what_a_slowed_host_hides_of_waits_widens_the_range_where_there_is_no_value() -> None:
    untraced = Untraced(low_ns=3_000_000, high_ns=9_000_000, most_ns=4_500_000)
    gives = Estimate(THEN, Doubt(1_500_000), untraced=untraced)
    assert gives.gain_range_ns == (500_000, 4_500_000)
    assert gives.step_range_ns == (3_000_000, 8_000_000)
    assert Estimate(THEN, untraced=untraced).gain_range_ns == (2_000_000, 4_000_000)
    assert Estimate(THEN, untraced=untraced).step_range_ns == (6_000_000, 8_000_000)


def test_a_change_has_the_doubts_that_are_about_it() -> None:
    doubt = Doubt(1_000, 0.5)
    assert doubt.about([WAIT]) == Doubt(1_000)
    assert doubt.about([WAIT, HostSpeed(2.0)]) == doubt
    assert doubt.about([CaptureEager("eager")]) == doubt
    none = np.empty(0)
    untraced = RemoveTracing(none, none, none, none, none, none, none, none)
    assert doubt.about([HostSpeed(2.0), untraced]) == Doubt()
