"""What a change gives is told of one host at a time: by hand, in microseconds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given

from bubblefinder.replay.changes import HostSpeed, RemoveTracing
from bubblefinder.replay.hosts import HOST_NOISE, KERNEL_DRIFT, RECORDED, edited_on, hosts_of
from bubblefinder.replay.model import EdgeKind, Host
from bubblefinder.replay.predict import predict, steps_on
from tests.captures import captures
from tests.modelled import model_drawn, model_of
from tests.unit.replay.test_changes import ALL, HOST, READ

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace

NONE = np.empty(0)
AWAY = RemoveTracing(NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE)


def test_what_a_wait_costs_beside_the_hosts_own_work_doesnt_move_with_its_speed() -> None:
    """The step of 20 us is 16 us of host work and 4 us of a wait: a host an eighth slower takes 18.3 us without it."""
    (then,) = predict(model_drawn(HOST), [ALL]).values()
    low, high = then.range_ns
    assert high - low == pytest.approx(2 * HOST_NOISE * 16_000, rel=0.05)
    least, most = then.gain_range_ns
    assert least < 4_000 < most
    assert most - least < 1_000


def test_where_the_gpu_bounds_the_step_its_drift_is_the_width() -> None:
    (then,) = predict(model_drawn(READ), [ALL]).values()
    assert then.step_ns == 14_000
    low, high = then.range_ns
    assert low == pytest.approx(14_000 * (1 - KERNEL_DRIFT), abs=2)
    assert high == pytest.approx(14_000 * (1 + KERNEL_DRIFT), abs=2)


def test_a_host_that_is_slower_without_the_wait_as_well_gains_by_it() -> None:
    """Behind the read the host works 6 us of every step, the GPU waiting: an eighth more is an eighth of that."""
    (then,) = predict(model_drawn(READ), [ALL]).values()
    least, most = then.gain_range_ns
    assert least == pytest.approx(6_000 / (1 + HOST_NOISE), rel=0.05)
    assert most == pytest.approx(6_000 / (1 - HOST_NOISE), rel=0.05)


def test_hosts_without_the_profiler_are_tried_unless_the_changes_take_it_away() -> None:
    model = model_drawn(READ)
    untraced = replace(model, untraced=(Host(lag=model.edges.lag // 2),))
    assert hosts_of(untraced, [ALL])[-1] is untraced.untraced[0]
    assert hosts_of(untraced, [ALL, AWAY]) == hosts_of(model, [ALL])
    (lane,) = model.steps
    (then,) = predict(untraced, [ALL]).values()
    assert then.untraced
    before, after = then.runs[-1]
    assert before == steps_on(untraced.untraced[0], untraced, [])[lane] == pytest.approx(10_000, abs=10)
    assert after == pytest.approx(7_000, abs=10)
    assert then.gain_range_ns[0] == before - after


def test_the_profilers_costs_go_with_the_hosts_speed() -> None:
    """Of the 14 us inside the graph tracing took 1 us, or 3 at most and none at least."""
    model = model_drawn(READ)

    def away(us: float) -> RemoveTracing:
        calls, blocks = np.zeros(len(model.calls)), np.zeros(len(model.blocks))
        inside = np.where((model.blocks["kind"] == "graph").to_numpy(), us * 1000, 0.0)
        return RemoveTracing(blocks, inside, blocks, blocks, calls, calls, calls + 1, blocks)

    change = replace(away(1), ends=(away(3), away(0)))
    for host, left in ((RECORDED, 13_000), (Host(speed=1.1), 11_000), (Host(speed=0.9), 14_000)):
        lag = edited_on(host, model, [change]).lag[model.edges.kind == EdgeKind.WORK]
        assert left in lag.tolist()


@given(captures())
def test_a_gains_range_is_no_wider_than_what_hosts_differ_by(trace: Trace) -> None:
    for then in predict(model_of(trace), [ALL, HostSpeed(1.5)]).values():
        before, after = zip(*then.runs, strict=True)
        least, most = then.gain_range_ns
        assert most - least <= max(before) - min(before) + max(after) - min(after)
        assert least <= then.recoverable_ns <= most


def test_a_host_whose_work_varies_may_be_as_unlike_itself_in_another_run_and_as_alike_as_any() -> None:
    steady, varying = model_drawn(READ), model_drawn(READ)
    vars(varying)["host_spread"] = 0.2
    assert {one.speed for one in hosts_of(steady, [ALL])} == {1 - HOST_NOISE, 1, 1 + HOST_NOISE}
    assert {one.speed for one in hosts_of(varying, [ALL])} == {0.6, 1 - HOST_NOISE, 1, 1 + HOST_NOISE, 1.4}
    (narrow,), (wide,) = (predict(model, [ALL]).values() for model in (steady, varying))
    assert wide.step_ns == narrow.step_ns
    assert wide.gain_range_ns[0] < narrow.gain_range_ns[0]
    assert narrow.gain_range_ns[1] < wide.gain_range_ns[1]
