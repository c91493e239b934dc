"""The hosts without the profiler, where the capture can't tell what that added; of samples."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bubblefinder.replay.hosts import KERNEL_DRIFT, host_noise
from bubblefinder.replay.predict import predict, steps_on
from bubblefinder.replay.untraced import untraced_hosts, without_tracing
from tests.samples import analysis

UNTOLD = ["eager_item", "sglang/fi.node"]


@pytest.mark.parametrize("name", UNTOLD)
def test_they_go_from_the_slowest_to_the_fastest(name: str) -> None:
    study = analysis(name).study
    (lane,) = study.ranks
    hosts, noise = study.model.untraced, host_noise(study.model)
    assert [hosts[end].speed for end in (0, -1)] == [pytest.approx(1 - noise), pytest.approx(1 + noise)]
    assert [hosts[end].kernels for end in (0, -1)] == [pytest.approx(1 + KERNEL_DRIFT), pytest.approx(1 - KERNEL_DRIFT)]
    steps = [steps_on(host, study.model, [])[lane] for host in hosts]
    assert all(earlier > later for earlier, later in pairwise(steps))
    assert without_tracing(study.timeline, study.model, lane, []) == (steps[-1], steps[0])


@pytest.mark.parametrize("name", UNTOLD)
def test_a_gain_that_cant_be_told_is_that_of_these_hosts(name: str) -> None:
    study = analysis(name).study
    (lane,) = study.ranks
    for fix in study.fixes:
        then = predict(study.model, [fix.change])[lane]
        assert then.untraced
        assert len(then.runs) == 1 + len(study.model.untraced)
        assert not study.doubt(lane).told


@pytest.mark.parametrize("name", ["nextn_before.node", "sglang/chain.graph", "nextn_before.nsys2023.node"])
def test_where_the_profilers_part_is_told_or_nothing_is_known_of_it_there_are_none(name: str) -> None:
    assert analysis(name).study.model.untraced == ()


def test_nothing_is_said_where_nothing_is_known_of_what_tracing_costs() -> None:
    study = analysis("nextn_before.nsys2023.node").study
    (lane,) = study.ranks
    assert untraced_hosts(study.timeline, study.model, lane.gpu) == ()
    assert without_tracing(study.timeline, study.model, lane, []) is None
