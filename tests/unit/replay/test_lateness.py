"""How late a rank comes, as recorded and without the profiler, against ranks whose lateness is known."""

from __future__ import annotations

import pytest

from bubblefinder.pipeline import Analysis
from bubblefinder.replay.lateness import late_ns, lateness_left
from tests import samples
from tests.simulate import Graph, Machine, collective, nodes
from tests.unit.replay.taxed import on_h200

GRAPH = Graph(3, nodes("attn", "mlp", us=20) * 8)
STEPS = 20
US = 1_000


def ranks(own_us: float, calls: int = 0, tax_us: float = 0) -> Analysis:
    """Two ranks that meet behind each replay; the second works longer before it, and makes calls that tracing taxes."""
    machine = Machine(jitter=0)
    hosts = [machine.host(), machine.host(1002, gpu=1)]
    for _ in range(STEPS):
        for number, host in enumerate(hosts):
            host.work(30 + number * own_us)
            for _ in range(number * calls):
                host.kernel("small", 2)
                host.work(tax_us)
            host.replay(GRAPH)
        collective(hosts, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 60)
        for host in hosts:
            host.read()
        hosts[1].now = hosts[0].now = max(host.now for host in hosts)
    return Analysis(on_h200(machine.trace()))


def left(found: Analysis) -> float:
    """The part of what the second rank is waited for that remains, by the facts that rules look at."""
    assert found.model
    (first, second) = (step.skews for step in found.recoverable.fill(found.facts).steps)
    assert {skew.left_share for skew in first} <= {1.0}
    (skew,) = (skew for skew in second if (skew.skew_p50_ns or 0) > 50 * US)
    assert (skew.left_p50_ns is None) is (skew.left_share >= 0.95)
    return skew.left_share


def late(found: Analysis) -> int:
    assert found.model
    return late_ns(found.model, found.model.recorded)[max(found.model.steps)]


def test_it_is_what_the_others_wait() -> None:
    found = ranks(300)
    assert found.model
    first, second = late_ns(found.model, found.model.recorded).values()
    assert first == 0
    assert second / STEPS == pytest.approx(300 * US, rel=0.1)


def test_what_its_own_work_makes_a_rank_late_by_remains() -> None:
    assert left(ranks(300)) > 0.95


@pytest.mark.parametrize(("own_us", "tax_us"), [(0, 10), (0, 20), (150, 10), (300, 20)])
def test_no_more_remains_than_there_was_without_the_tax(own_us: float, tax_us: float) -> None:
    assert left(ranks(own_us, 20, tax_us)) <= 1.05 * late(ranks(own_us, 20)) / late(ranks(own_us, 20, tax_us))


def test_nothing_is_known_where_no_cost_is_or_no_rank_meets_another() -> None:
    found = samples.analysis("nextn_before.node")
    assert found.model
    assert lateness_left(found.timeline, found.model) == {}
