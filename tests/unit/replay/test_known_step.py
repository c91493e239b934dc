from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from bubblefinder.overhead.calibration import bundled_calibrations
from bubblefinder.pipeline import Analysis
from bubblefinder.replay.changes import NEVER_LATE, DropKernels, HostSpeed
from bubblefinder.replay.corrected import TracedSteps, traced_steps, without_tracing
from bubblefinder.replay.known_step import known_step, rerun
from bubblefinder.replay.predict import predict, steps_after
from bubblefinder.replay.run import replay
from tests import samples
from tests.loops import Loop


def traced_of(analysis: Analysis) -> TracedSteps:
    (rank,) = analysis.study.ranks
    rows = analysis.steps.windows.filter(rank.mine & pl.col("excluded").is_null())
    return traced_steps(analysis.timeline, analysis.steps, analysis.study.model, rows)


@pytest.fixture(scope="module")
def loop() -> TracedSteps:
    """A loop whose host needs 0.4 ms before each step, after it has read the step before; nothing is known of costs."""
    loop = Loop(jitter=0)
    for _ in range(12):
        loop.step()
    return traced_of(Analysis(loop.sketch.trace()))


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("speed", [0.5, 1.0, 1.5, 3.0])
def test_where_the_gpu_waits_the_hosts_speed_is_told_by_the_step_that_it_gives(
    loop: TracedSteps, speed: float, *, mean: bool
) -> None:
    model = rerun(loop.model, [HostSpeed(speed)])
    (steps,) = model.steps.values()
    there = model.recorded[steps.end] - model.recorded[steps.begin]
    found = known_step(loop, None, float(np.mean(there) if mean else np.median(there)), mean=mean)
    assert (found.reached, found.factor) == (True, 0)
    assert found.host_speed == pytest.approx(speed, rel=0.01)


@pytest.mark.parametrize("name", ["nextn_before.node", "dspark_before.node", "nextn_after.node"])
def test_a_step_that_its_costs_tell_needs_no_other_host(name: str) -> None:
    (one,) = bundled_calibrations()
    traced = traced_of(samples.analysis(name))
    found = known_step(traced, one.node, without_tracing(traced, one.node).step_ns, mean=False)
    assert [found.factor, found.host_speed] == pytest.approx([1, 1], abs=0.001)


def test_no_host_makes_up_for_what_the_gpu_takes_longer_or_shorter() -> None:
    """Its own work sets the pace: a step 1 % longer is told by lower costs, not by a host three times as slow."""
    (one,) = bundled_calibrations()
    traced = traced_of(samples.analysis("nextn_after.node"))
    by_costs = without_tracing(traced, one.node).step_ns
    for step, dearer in ((0.99 * by_costs, True), (1.01 * by_costs, False)):
        found = known_step(traced, one.node, step, mean=False)
        assert (found.reached, found.host_speed) == (True, 1)
        assert (found.factor > 1) is dearer


@pytest.mark.parametrize("name", ["nextn_before.node", "hard_before.graph"])
def test_the_host_makes_up_for_what_known_costs_leave_where_the_gpu_waits_for_it(name: str) -> None:
    (one,) = bundled_calibrations()
    costs = one.graph if "graph" in name else one.node
    traced = traced_of(samples.analysis(name))
    found = known_step(traced, costs, 1.01 * without_tracing(traced, costs).step_ns, mean=False)
    assert (found.reached, found.factor) == (True, 1)
    assert 0.8 < found.host_speed < 1


def test_a_run_on_another_host_replays_as_itself_and_answers_as_such(loop: TracedSteps) -> None:
    model, (rank,) = loop.model, loop.model.steps
    faster = rerun(model, [HostSpeed(2.0)])
    assert (replay(faster, faster.edges.lag, faster.edges.lag == faster.edges.lag) == faster.recorded).all()
    now = predict(faster, [])[rank].now_ns
    assert now == pytest.approx(steps_after(model, [HostSpeed(2.0)])[rank], abs=2)
    assert now < predict(model, [])[rank].now_ns


def test_the_gpus_work_is_shorter_in_a_run_without_some_of_it(loop: TracedSteps) -> None:
    model, (rank,) = loop.model, loop.model.steps
    verify = model.blocks["role"] == "verify"
    lost = tuple((verify.fill_null(value=False).to_numpy() * 50_000).tolist())
    shorter = rerun(model, [DropKernels("attn", lost)])
    before, after = (one.windows["occupied_ns"].to_numpy() for one in (model, shorter))
    assert (before - after).tolist() == [50_000] * len(before)
    assert (
        predict(shorter, [NEVER_LATE])[rank].step_ns
        == steps_after(model, [DropKernels("attn", lost), NEVER_LATE])[rank]
    )


@pytest.mark.parametrize(("step", "speed"), [(10_000, 4), (1e9, 0.25)])
def test_a_step_that_nothing_gives_is_missed_and_the_nearest_told(loop: TracedSteps, step: float, speed: float) -> None:
    found = known_step(loop, None, step, mean=True)
    assert not found.reached
    assert found.nearest.startswith(f"a host {speed:g} times as fast as recorded takes ")
