from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given

from bubblefinder.replay.bound import Bound
from bubblefinder.replay.changes import FreeLaunches, HostSpeed, RemoveWaits
from bubblefinder.replay.doubt import Estimate
from bubblefinder.replay.hosts import KERNEL_DRIFT
from bubblefinder.replay.model import EdgeKind
from bubblefinder.replay.predict import predict, steps_after
from bubblefinder.replay.sentences import sentence
from bubblefinder.trace.model import KERNEL
from tests.captures import captures
from tests.loops import Loop
from tests.modelled import model_drawn, model_of
from tests.unit.replay.test_changes import ALL, HOST, READ

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.predict import Prediction
    from bubblefinder.timeline.rank import Rank
    from bubblefinder.trace.model import Trace


def only(found: Mapping[Rank, Prediction]) -> Prediction:
    (then,) = found.values()
    return then


def test_removing_nothing_changes_nothing() -> None:
    then = only(predict(model_drawn(READ), []))
    assert then.now_ns == then.step_ns == 20_000
    assert then.recoverable_ns == 0
    same = only(predict(model_drawn(READ), [RemoveWaits(frozenset())]))
    assert same.recoverable_ns == 0


def test_what_bounds_the_step_is_told() -> None:
    assert only(predict(model_drawn(READ), [])).bound is Bound.WAIT
    assert only(predict(model_drawn(READ), [ALL])).bound is Bound.GPU
    assert only(predict(model_drawn(HOST), [ALL])).bound is Bound.HOST
    assert only(predict(model_drawn(HOST), [ALL, HostSpeed(1e9)])).bound is Bound.GPU


def test_the_sentence_says_that_the_host_bounds_the_step_afterwards() -> None:
    said = sentence(Estimate(only(predict(model_drawn(HOST), [ALL]))))
    assert "Then the host's own work bounds the step" in said
    assert said.startswith("The step goes from 20.0 us to")
    nothing = sentence(Estimate(only(predict(model_drawn(HOST), []))))
    assert nothing.startswith("Almost nothing to gain: the step stays at 20.0 us (")


def test_the_range_holds_the_prediction_and_never_exceeds_the_step_of_today() -> None:
    for picture in (READ, HOST):
        then = only(predict(model_drawn(picture), [ALL]))
        low, high = then.range_ns
        assert low <= then.step_ns <= high <= then.now_ns


def noisy(steps: int = 30, jitter: float = 0.3) -> Trace:
    loop = Loop(jitter=jitter)
    for _ in range(steps):
        loop.step()
    return loop.sketch.trace()


def test_a_host_that_varies_is_told_from_a_steady_one() -> None:
    steady, varying = model_of(noisy(jitter=0.0)), model_of(noisy(jitter=0.3))
    assert steady.host_spread < 0.001
    assert varying.host_spread > 0.02


def test_where_another_host_gains_nothing_is_only_not_sure() -> None:
    then = replace(only(predict(model_drawn(HOST), [])), runs=((20_000, 20_000), (18_000, 15_000)), bound=Bound.HOST)
    assert sentence(Estimate(then)).startswith(
        "Almost nothing to gain for sure, and up to 3.00 us on another host: the step stays at 20.0 us ("
    )


@pytest.mark.parametrize("factor", [1.1, 1.5, 2, 10, 1e9])
def test_a_faster_host_is_never_slower(factor: float) -> None:
    model = model_of(noisy())
    slower, faster = (only(predict(model, [HostSpeed(k)])).step_ns for k in (factor * 0.8, factor))
    assert faster <= slower


@given(captures())
def test_no_change_makes_a_step_longer(trace: Trace) -> None:
    model = model_of(trace)
    asked: list[list[Change]] = [[], [ALL], [HostSpeed(2)], [FreeLaunches()], [ALL, HostSpeed(3), FreeLaunches()]]
    for changes in asked:
        for then in predict(model, changes).values():
            assert 0 <= then.step_ns <= then.now_ns
            (low, high), (least, most) = then.range_ns, then.gain_range_ns
            assert low <= then.step_ns <= high <= then.now_ns
            assert 0 <= least <= then.recoverable_ns <= most


def test_the_quick_answer_is_the_same() -> None:
    model = model_of(noisy(10))
    asked: list[list[Change]] = [[], [ALL], [HostSpeed(2)]]
    for changes in asked:
        assert steps_after(model, changes) == {lane: then.step_ns for lane, then in predict(model, changes).items()}


def in_turns(steps: int = 12) -> Trace:
    """Two streams get work in turns from a host that is always late, and a read ends each step."""
    loop = Loop(jitter=0)
    for _ in range(steps):
        loop.spend(100)
        for number in range(6):
            for stream in (7, 8):
                loop.spend(60)
                launch = loop.call("cudaLaunchKernel_v7000", 4)
                loop.run(KERNEL, 50, launch, name=f"kernel {number} of {stream}", stream=stream)
        loop.read()
    return loop.sketch.trace()


def test_streams_that_had_the_gpu_in_turns_are_not_promised_to_share_it(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of(in_turns())
    busy = int(model.windows["occupied_ns"][0])
    assert busy > 12 * 50_000
    assert only(predict(model, [HostSpeed(1e9)])).step_ns == busy
    assert only(predict(model, [HostSpeed(1e9)])).bound is Bound.GPU
    monkeypatch.setattr("bubblefinder.replay.predict._least", lambda *_, **__: None)
    assert only(predict(replace(model), [HostSpeed(1e9)])).step_ns < 0.7 * busy


@given(captures())
def test_no_host_makes_a_step_shorter_than_its_gpu_work(trace: Trace) -> None:
    model = model_of(trace)
    if (model.edges.kind == EdgeKind.MEET).any():
        return
    for (gpu, process), then in predict(model, [HostSpeed(1e9)]).items():
        windows = model.windows.filter((pl.col("gpu") == gpu) & (pl.col("process") == process))
        working = (windows["occupied_ns"] - windows["alone_ns"]).to_numpy()
        least = min(then.now_ns, float(np.median(working)))
        assert then.step_ns >= round(least)
        assert then.range_ns[0] >= (1 - KERNEL_DRIFT) * least - len(model.work.edges)
