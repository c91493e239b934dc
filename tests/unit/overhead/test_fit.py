"""Costs are found again in measurements that were made up from them."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.capture.recipes import Recipe, eager_recipes, graph_recipes
from bubblefinder.errors import UsageError
from bubblefinder.overhead.fit import MEASUREMENTS_SCHEMA, Runs, added, fit, late, measured_rows

if TYPE_CHECKING:
    from bubblefinder.overhead.model import Calibration

PLAYS = 6
GRAPHS = graph_recipes(dependent_launch=True)
EAGER = eager_recipes()
BASE = {"kernel": 4_000, "wide": 4_000, "stamped": 4_000, "dependent": 3_000, "memset": 2_000, "copy": 1_400}
APIS = (
    "cuLaunchKernel", "cuMemsetD32Async", "cuMemcpyDtoDAsync_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
    "cuEventRecord", "cuEventQuery", "cuStreamQuery", "cuStreamSynchronize",
)  # fmt: skip


@dataclass(frozen=True)
class Profiler:
    """What tracing costs in these made-up runs, in ns."""

    kernel: int = 0
    memset: int = 0
    dependent: int = 0
    branch: int = 0
    replay: int = 0
    eager: int = 0
    call: int = 0
    launch_node: float = 0.0


NODE = Profiler(
    kernel=130, memset=5_500, dependent=20, branch=300, replay=4_600, eager=110, call=1_200, launch_node=900
)
GRAPH = Profiler(replay=2_000, call=100)


def span(recipe: Recipe, tax: Profiler, *, eager: bool) -> int:
    total = 0 if eager else tax.kernel
    for item in recipe.items:
        total += BASE[item.kind]
        if eager:
            total += tax.eager
        elif recipe.branches > 1:
            total += tax.branch
        elif item.kind == "memset" and item.size < 16_384:
            total += tax.memset
        else:
            total += tax.dependent if item.kind == "dependent" else tax.kernel
    return total


def phase(tax: Profiler, launch_node: float) -> dict[str, Any]:
    graphs, eager, stamped = {}, {}, {}
    for recipe in GRAPHS:
        length = span(recipe, tax, eager=False)
        call = 3_000 + launch_node * len(recipe.items)
        spans = {
            "span_ns": [length + 40_000] + [length] * (PLAYS - 1),
            "between_ns": [2_500 + tax.replay] * (PLAYS - 1),
        }
        idle = {"call_ns": [call] * PLAYS, "period_ns": [length + 10_000] * PLAYS, "span_ns": [length] * PLAYS}
        graphs[recipe.name] = {"queued": spans | {"call_ns": [call] * PLAYS}, "idle": idle}
        if recipe.name.startswith("stamped"):
            stamped[recipe.name] = {
                "inside_ns": [1_000 + 26 * bool(tax.kernel)],
                "between_ns": [800 + 104 * bool(tax.kernel)],
            }
    for recipe in EAGER:
        eager[recipe.name] = {"span_ns": [span(recipe, tax, eager=True)] * PLAYS}
    calls = {name: {"call_ns": [2_000 + tax.call] * 9} for name in APIS}
    return {"api": calls, "graphs": graphs, "eager": eager, "stamped": stamped}


def run(tax: Profiler, attached_launch_node: float = 20.0) -> dict[str, Any]:
    recipes = {recipe.name: recipe.counts() for recipe in [*GRAPHS, *EAGER]}
    quiet = phase(Profiler(), attached_launch_node)
    inside = phase(tax, attached_launch_node + tax.launch_node)
    phases = {"before": quiet, "inside": inside, "after": quiet}
    return {"schema": MEASUREMENTS_SCHEMA, "gpu": {"name": "NVIDIA X1"}, "recipes": recipes, "phases": phases}


RUNS = Runs(untraced=[run(Profiler())], graph=[run(GRAPH, attached_launch_node=180.0)], node=[run(NODE)])


def fitted(runs: Runs = RUNS) -> Calibration:
    return fit(runs, driver="600.1", cupti="14.0", nsys="2027.1")


def test_the_costs_of_nodes_are_found_again() -> None:
    node = fitted().node
    assert node.kernel_node.value == pytest.approx(NODE.kernel, rel=0.01)
    assert node.memset_node.value == pytest.approx(NODE.memset, rel=0.01)
    assert node.dependent_node.value == pytest.approx(NODE.dependent, abs=2)
    assert node.branch_node.value == pytest.approx(NODE.branch, rel=0.01)
    assert node.copy_node.value == pytest.approx(NODE.kernel, rel=0.01)
    assert node.gap_share.value == pytest.approx(0.8)


def test_the_costs_between_replays_and_of_eager_work_are_found_again() -> None:
    assert fitted().node.replay.value == NODE.replay
    assert fitted().graph.replay.value == GRAPH.replay
    assert fitted().node.eager_operation.value == pytest.approx(NODE.eager, rel=0.01)


def test_host_costs() -> None:
    calibration = fitted()
    assert calibration.node.kernel_call.value == NODE.call
    assert calibration.graph.other_call.value == GRAPH.call
    launch = calibration.node.launch_node
    assert launch is not None
    assert launch.value == pytest.approx(20 + 3_000 / 200, rel=0.3)
    assert launch.high > 180


def test_graph_mode_costs_the_inside_of_a_graph_nothing() -> None:
    assert fitted().graph.kernel_node.value == 0
    assert fitted().graph.launch_call is None


def test_the_range_is_that_of_all_runs() -> None:
    dearer = run(Profiler(kernel=200, memset=7_000, eager=110))
    spread = fitted(Runs(untraced=RUNS.untraced, graph=RUNS.graph, node=[*RUNS.node, dearer])).node.kernel_node
    assert [spread.low, spread.high] == pytest.approx([130, 200], rel=0.01)


def test_a_run_faster_under_the_profiler_counts_as_no_cost() -> None:
    faster = run(Profiler(kernel=-50))
    assert fitted(Runs(untraced=RUNS.untraced, graph=RUNS.graph, node=[faster])).node.kernel_node.low == 0


def test_gpus_without_early_launch_have_no_such_chain() -> None:
    runs = deepcopy(RUNS)
    for one in (*runs.untraced, *runs.graph, *runs.node):
        for name in [name for name in one["recipes"] if name.startswith("dependent")]:
            del one["recipes"][name]
            for played in one["phases"].values():
                played["graphs"].pop(name, None)
    assert fitted(runs).node.dependent_node == fitted(runs).node.kernel_node


def test_the_table_holds_every_chain() -> None:
    rows = {row.recipe: row for row in measured_rows(RUNS)}
    assert rows["nodes_200"].operations == 200
    assert rows["nodes_200"].untraced_ns == 200 * 4_000
    assert rows["nodes_200"].added_ns_per_operation == NODE.kernel
    assert len(rows) == len(GRAPHS)


def test_warming_up_is_left_out() -> None:
    assert late([90, 80, 10, 11, 12]) == 11
    assert added(RUNS.node[0], "nodes_50") == 51 * NODE.kernel


@pytest.mark.parametrize("damage", ["schema", "phase", "recipe", "none", "gpus"])
def test_measurements_that_do_not_fit_are_refused(damage: str) -> None:
    node = deepcopy(RUNS.node[0])
    if damage == "schema":
        node["schema"] = "something else"
    elif damage == "phase":
        del node["phases"]["after"]
    elif damage == "recipe":
        del node["phases"]["inside"]["api"]["cuEventQuery"]
    elif damage == "gpus":
        node["gpu"] = {"name": "another"}
    with pytest.raises(UsageError):
        fitted(Runs(untraced=RUNS.untraced, graph=RUNS.graph, node=[] if damage == "none" else [node]))
