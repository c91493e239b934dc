from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bubblefinder.errors import CannotAnswerError
from bubblefinder.pipeline import Analysis
from bubblefinder.replay.changes import NEVER_LATE, DropKernels, HostSpeed
from bubblefinder.replay.known_step import host_speed_of, on_such_a_host, rerun
from bubblefinder.replay.predict import predict, steps_after
from bubblefinder.replay.run import replay
from tests.loops import Loop

if TYPE_CHECKING:
    from bubblefinder.replay.model import Model
    from bubblefinder.timeline.rank import Rank


@pytest.fixture(scope="module")
def run() -> tuple[Model, Rank]:
    """A loop whose host needs 0.4 ms before each step, after it has read the step before."""
    loop = Loop(jitter=0)
    for _ in range(12):
        loop.step()
    study = Analysis(loop.sketch.trace()).study
    return study.model, study.ranks[0]


def mean_step(model: Model, rank: Rank) -> float:
    steps = model.steps[rank]
    return float(np.mean(model.recorded[steps.end] - model.recorded[steps.begin]))


@pytest.mark.parametrize("speed", [0.5, 1.0, 1.5, 3.0])
def test_the_speed_is_told_by_the_step_that_it_gives(run: tuple[Model, Rank], speed: float) -> None:
    model, rank = run
    there = on_such_a_host(model, speed)
    assert host_speed_of(model, rank, mean_step(there, rank), mean=True) == pytest.approx(speed, rel=0.01)
    assert host_speed_of(model, rank, predict(there, [])[rank].now_ns, mean=False) == pytest.approx(speed, rel=0.01)


def test_a_run_on_another_host_replays_as_itself_and_answers_as_such(run: tuple[Model, Rank]) -> None:
    model, rank = run
    faster = on_such_a_host(model, 2.0)
    assert (replay(faster, faster.edges.lag, faster.edges.lag == faster.edges.lag) == faster.recorded).all()
    assert predict(faster, [])[rank].now_ns == pytest.approx(steps_after(model, [HostSpeed(2.0)])[rank], abs=2)
    assert mean_step(faster, rank) < mean_step(model, rank)


def test_the_gpus_work_is_shorter_in_a_run_without_some_of_it(run: tuple[Model, Rank]) -> None:
    model, rank = run
    verify = model.blocks["role"] == "verify"
    lost = tuple((verify.fill_null(value=False).to_numpy() * 50_000).tolist())
    shorter = rerun(model, [DropKernels("attn", lost)])
    before, after = (one.windows["occupied_ns"].to_numpy() for one in (model, shorter))
    assert (before - after).tolist() == [50_000] * len(before)
    assert (
        predict(shorter, [NEVER_LATE])[rank].step_ns
        == steps_after(model, [DropKernels("attn", lost), NEVER_LATE])[rank]
    )


def test_a_step_that_no_host_gives_is_refused(run: tuple[Model, Rank]) -> None:
    model, rank = run
    with pytest.raises(CannotAnswerError, match="no host gives a step of"):
        host_speed_of(model, rank, 10_000, mean=True)
    with pytest.raises(CannotAnswerError, match="as slow as recorded"):
        host_speed_of(model, rank, 1e9, mean=False)
