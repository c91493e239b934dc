"""The account of the steps: it sums, and every nanosecond lies where it was spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from bubblefinder.report.account import FOREIGN, OTHERS, REPLAY, UNSEEN
from bubblefinder.report.detail import account as module
from bubblefinder.report.detail.account import accounts
from bubblefinder.trace.model import KERNEL
from tests.loops import DRAFT, EXTEND, VERIFY, Loop, disturbed
from tests.simulate import Graph, Machine, nodes
from tests.unit.report.detail.analysed import Analysed, loop

if TYPE_CHECKING:
    from bubblefinder.report.account import Account, RoleAccount

US = 1_000


def only(one: Analysed, shapes: pl.DataFrame | None = None) -> Account:
    (account,) = accounts(one.timeline, one.steps, one.causes, shapes)
    return account


def role(account: Account, name: str) -> RoleAccount:
    return next(r for r in account.roles if r.role == name)


def total(account: Account) -> int:
    inside = sum(sum(r.own_ns) + sum(r.gap_ns) for r in account.roles)
    return inside + sum(e.own_ns + e.gap_ns for e in account.eager) + sum(i.ns for i in account.idle)


@pytest.mark.parametrize("seed", range(12))
def test_its_parts_sum_to_the_steps_to_the_nanosecond(seed: int) -> None:
    one = Analysed(disturbed(seed).sketch.trace())
    account = only(one)
    assert total(account) == account.duration_ns
    assert account.duration_ns == int((one.decode["end_ns"] - one.decode["start_ns"]).sum())
    assert account.steps == len(one.decode)


def test_nodes_come_in_the_order_of_the_graph_with_what_each_took() -> None:
    one = loop()
    account, steps = only(one), len(one.decode)
    verify = role(account, "verify")
    assert [account.names[n] for n in verify.names] == list(VERIFY.kernels)
    assert verify.replays == steps
    assert verify.counts == [steps] * len(VERIFY.kernels)
    assert all(own == pytest.approx(10 * US * steps, rel=0.03) for own in verify.own_ns)
    assert verify.gap_ns[0] == 0
    assert verify.gap_ns[1:] == [US * steps] * (len(VERIFY.kernels) - 1)
    assert verify.early_ns == [0] * len(VERIFY.kernels)
    assert verify.shapes is None


def test_a_replay_recorded_whole_is_one_node() -> None:
    verify = role(account := only(loop(node_mode=False)), "verify")
    assert [account.names[n] for n in verify.names] == [REPLAY]
    assert verify.own_ns == verify.ran_ns


def test_a_node_that_begins_early_adds_only_what_it_runs_alone() -> None:
    made = Loop(jitter=0)
    for _ in range(8):
        made.spend(400)
        made.upload()
        correlation = made.call("cudaGraphLaunch_v10000", 10)
        for number in range(1, 31):
            overlap = 3 * US if number > 1 else 0
            made.free -= overlap
            made.run(KERNEL, 10, correlation, name=f"k{number}", graph_node=6 << 32 | number)
        made.read()
    account = only(Analysed(made.sketch.trace()))
    (graph,) = account.roles
    assert graph.early_ns == [0] + [3 * US * account.steps] * 29
    assert graph.own_ns == [10 * US * account.steps] + [7 * US * account.steps] * 29
    assert set(graph.ran_ns) == {10 * US * account.steps}
    assert total(account) == account.duration_ns


def test_launch_shapes_belong_to_their_nodes() -> None:
    one = loop()
    rows = one.timeline.operations.filter(pl.col("kind") == KERNEL)
    shapes = rows.select(
        "row",
        grid=pl.col("name").cast(pl.String),
        block=pl.lit("128"),
        registers=pl.lit(32, pl.Int64),
        shared_bytes=pl.lit(0, pl.Int64),
        local_bytes=pl.lit(0, pl.Int64),
    )
    account = only(one, shapes)
    told = role(account, "draft").shapes
    assert told is not None
    assert len(set(told.grid)) == len(set(DRAFT.kernels))
    assert set(told.block) == {"128"}
    assert [e.shape for e in account.eager] == [None, None]


def test_eager_names_beyond_the_longest_are_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_EAGER", 3)
    made = Loop()
    for _ in range(8):
        made.step()
        for number in range(6):
            made.kernel(f"glue_{number}", 5)
    account = only(Analysed(made.sketch.trace()))
    assert [account.names[e.name] for e in account.eager][-1] == OTHERS
    assert len(account.eager) == 4
    assert total(account) == account.duration_ns


def test_beyond_so_many_steps_nodes_are_scaled_and_the_sum_stays_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = only(loop())
    monkeypatch.setattr(module, "MOST_STEPS", 3)
    thinned = only(loop())
    assert UNSEEN in thinned.names
    assert total(thinned) == thinned.duration_ns == whole.duration_ns
    assert thinned.idle == whole.idle
    verify, all_of_it = role(thinned, "verify"), role(whole, "verify")
    assert verify.counts == all_of_it.counts
    assert verify.replays == pytest.approx(all_of_it.replays)
    assert sum(verify.own_ns) == pytest.approx(sum(all_of_it.own_ns), rel=0.02)


def test_the_work_of_another_process_on_the_gpu_is_told_apart() -> None:
    machine = Machine()
    mine, other = machine.host(1001), machine.host(1002)
    graph = Graph(3, nodes("attn", "mlp") * 12)
    for number in range(12):
        mine.work(200)
        mine.upload()
        mine.replay(graph)
        mine.read()
        other.not_before(mine.now)
        if number % 3 == 0:
            other.kernel("theirs", 20)
    one = Analysed(machine.trace())
    account = next(a for a in accounts(one.timeline, one.steps, one.causes) if a.pid == 1001)
    assert FOREIGN in account.names
    assert total(account) == account.duration_ns


def test_the_graphs_that_the_loop_plays_are_all_there() -> None:
    assert [r.role for r in only(loop()).roles] == ["draft", "verify", "draft-extend"]
    assert [len(r.names) for r in only(loop()).roles] == [len(g.kernels) for g in (DRAFT, VERIFY, EXTEND)]
