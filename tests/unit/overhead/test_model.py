from __future__ import annotations

from bubblefinder.overhead.model import Cost, Costs, parameters_of

COSTS = Costs(
    kernel_node=Cost(130, 100, 200),
    launch_call=Cost(3000, 2000, 9000),
    launch_node=Cost(20, 3, 700),
    launch_start=Cost(10, 8, 30),
)


def test_the_least_costs_assume_the_slowest_untraced_launch() -> None:
    least = COSTS.least()
    assert (least.kernel_node.value, least.launch_node and least.launch_node.value) == (100, 700)
    most = COSTS.most()
    assert (most.kernel_node.value, most.launch_node and most.launch_node.value) == (200, 3)


def test_a_factor_scales_what_was_added_and_not_what_a_call_takes() -> None:
    scaled = COSTS.scaled(-2)
    assert scaled.kernel_node == Cost(-260, -400, -200)
    assert scaled.launch_call == COSTS.launch_call
    assert scaled.gap_share == COSTS.gap_share


def test_parameters_name_their_unit_and_leave_out_what_costs_nothing() -> None:
    told = parameters_of(COSTS)
    assert told["kernel_node_ns"] == {"value": 130, "low": 100, "high": 200}
    assert set(told) == {"kernel_node_ns", "launch_call_ns", "launch_node_ns", "launch_start_ns", "gap_share"}
