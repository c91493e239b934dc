from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.pipeline import Analysis
from tests.simulate import Graph, Machine, collective, nodes

if TYPE_CHECKING:
    from bubblefinder.causes.facts import StepFacts

GRAPH = Graph(3, nodes("attn", "mlp", us=20) * 8)
US = 1_000
REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def ranks(late_us: float) -> list[StepFacts]:
    """Two ranks that reduce for 60 us after each replay; the second begins later by so much."""
    machine = Machine()
    hosts = [machine.host(), machine.host(1002, gpu=1)]
    for _ in range(20):
        for number, host in enumerate(hosts):
            host.work(30 + number * late_us)
            host.replay(GRAPH)
        collective(hosts, REDUCE, 60)
        for host in hosts:
            host.read()
        hosts[1].now = hosts[0].now = max(host.now for host in hosts)
    return list(Analysis(machine.trace()).facts.steps)


@pytest.mark.parametrize("late_us", [0, 300])
def test_waiting_for_another_rank_is_no_work_of_the_collective(late_us: float) -> None:
    for rank, step in enumerate(ranks(late_us)):
        length = step.step_p50_ns or 0
        waits = 0 if rank else late_us
        assert (step.collective_share or 0) * length == pytest.approx(60 * US, abs=4 * US)
        assert (step.collective_wait_share or 0) * length == pytest.approx(waits * US, abs=6 * US)
        assert step.collective_most_share is None
        assert step.collectives == (f"{REDUCE} x 1",)


def test_one_rank_alone_tells_only_both_together() -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(20):
        host.work(30)
        host.replay(GRAPH)
        collective([host], REDUCE, 60)
        host.read()
    (step,) = Analysis(machine.trace()).facts.steps
    assert (step.collective_share, step.collective_wait_share) == (None, None)
    assert (step.collective_most_share or 0) * (step.step_p50_ns or 0) == pytest.approx(60 * US, abs=3 * US)
