from __future__ import annotations

import pytest

from tests.simulate import Graph, Machine, nodes
from tests.unit.steps.found import steps_of

STEP = Graph(3, nodes("attention", "mlp", "experts") * 16)


@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
def test_graphs_given_up_half_way_are_another_regime(node_mode: bool) -> None:
    machine = Machine(node_mode=node_mode)
    host = machine.host()
    for number in range(60):
        host.work(250)
        host.upload(64)
        if number < 40:
            host.replay(STEP)
        else:
            for name, us in STEP.nodes:
                host.work(4)
                host.kernel(name, us)
        host.read(8)
    windows = steps_of(machine.trace()).windows
    assert windows["regime"].to_list() == [0] * 40 + [1] * 20
    assert windows["excluded"].to_list() == [None] * 40 + ["other_regime"] * 19 + ["tail"]


def test_a_rank_that_waits_for_others_now_in_this_graph_and_now_in_that_runs_all_steps_alike() -> None:
    """GPU 0 of the workload `slow_rank`: 17 of its 38 steps were taken for another regime, and left out."""
    machine = Machine(node_mode=False)
    host = machine.host()
    for number in range(40):
        host.work(100)
        host.upload(64)
        host.replay(Graph(3, nodes("attention", "mlp", us=100) * 8))
        host.replay(Graph(4, nodes("head", us=1_700 if number < 23 else 1_200)))
        host.read(8)
    windows = steps_of(machine.trace()).windows
    assert windows["regime"].to_list() == [0] * 40
    assert windows["excluded"].to_list() == [None] * 39 + ["tail"]


def test_batch_sizes_in_runs_are_regimes_of_the_headline() -> None:
    machine = Machine()
    host = machine.host()
    for batch in (1, 4, 1):
        for _ in range(10):
            host.work(250)
            host.upload(64)
            host.replay(STEP.scaled(1 + batch / 8, 100 + batch))
            host.read(8)
    windows = steps_of(machine.trace()).windows
    assert windows["regime"].to_list() == [0] * 10 + [1] * 10 + [0] * 10
    assert "other_regime" not in windows["excluded"].to_list()


def test_a_batch_size_that_comes_once_is_no_regime() -> None:
    machine = Machine()
    host = machine.host()
    for number in range(30):
        host.work(250)
        host.upload(64)
        host.replay(STEP.scaled(1.5, 104) if number == 12 else STEP)
        host.read(8)
    assert steps_of(machine.trace()).windows["regime"].to_list() == [0] * 30


def test_eager_steps_for_another_number_of_requests_are_a_regime_of_the_headline() -> None:
    machine = Machine()
    host = machine.host()
    for requests in (1,) * 10 + (6,) * 10:
        host.work(250)
        host.upload(64)
        host.kernel("_combine_sampled_and_draft_tokens_kernel", 2, grid=(requests, 1))
        for name, us in STEP.nodes:
            host.work(4)
            host.kernel(name, us)
        host.kernel("_get_num_sampled_and_rejected_kernel", 2, grid=(requests, 1))
        host.read(8)
    windows = steps_of(machine.trace()).windows
    assert windows["regime"].to_list() == [0] * 10 + [1] * 10
    assert "other_regime" not in windows["excluded"].to_list()
