"""The corrected ledger of any decode loop, whatever the costs: it sums, and nothing in it is below zero."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.causes.find import find_causes
from bubblefinder.overhead.model import Cost, Costs
from bubblefinder.replay.build import build_model
from bubblefinder.replay.corrected import TracedSteps, role_medians, traced_steps, without_tracing
from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline
from bubblefinder.trace.model import KERNEL, MEMCPY
from bubblefinder.trace.sketch import Sketch, process_key, thread_key
from tests.captures import captures
from tests.unit.replay.taxed import sums

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace


def cut_anywhere(trace: Trace, cuts: list[int]) -> list[TracedSteps]:
    """Every rank of a capture, cut into steps at the begin of launched work, wherever that is."""
    timeline = build_timeline(trace)
    steps = find_steps(timeline)
    found = []
    for device in timeline.devices:
        alone = (pl.col("gpu") == device.gpu) & pl.col("replay_index").is_null()
        # What takes no time may lie outside the GPU's span, where no ledger is.
        inside = pl.col("start_ns").is_between(device.start_ns, device.end_ns)
        begun = timeline.operations.filter(alone & inside)["start_ns"].to_list()
        if len(device.processes) > 1 or not begun:
            continue
        edges = np.unique([begun[cut % len(begun)] for cut in cuts])
        windows = pl.DataFrame(
            {
                "index": np.arange(len(edges) - 1),
                "gpu": [device.gpu] * (len(edges) - 1),
                "process": [device.processes[0]] * (len(edges) - 1),
                "start_ns": edges[:-1],
                "end_ns": edges[1:],
                **{name: [None] * (len(edges) - 1) for name in ("excluded", "regime", "requests")},
            },
            schema=steps.windows.schema,
        )
        cut = replace(steps, windows=windows)
        model = build_model(timeline, cut, find_causes(timeline, steps))
        if not model.windows.is_empty():
            found.append(traced_steps(timeline, cut, model, windows))
    return found


def every_cost(ns: float, gap_share: float) -> Costs:
    one = Cost(ns, ns, ns)
    return Costs(
        kernel_node=one,
        branch_node=one,
        memset_node=one,
        copy_node=one,
        replay=one,
        eager_operation=one,
        kernel_call=one,
        copy_call=one,
        other_call=one,
        around_call=one,
        gap_share=Cost(gap_share, gap_share, gap_share),
        launch_call=Cost(0, 0, 0),
        launch_node=Cost(0, 0, 0),
    )


CUTS = st.lists(st.integers(0, 80), min_size=2, max_size=5)


@given(captures(), CUTS, st.floats(0, 8), st.floats(0, 1), st.floats(-2, 2))
def test_it_sums_whatever_the_costs(trace: Trace, cuts: list[int], ns: float, gap_share: float, factor: float) -> None:
    for steps in cut_anywhere(trace, cuts):
        assert sums(without_tracing(steps, every_cost(ns, gap_share), factor).rows)


@given(captures(), CUTS)
def test_without_costs_it_is_the_recorded_one(trace: Trace, cuts: list[int]) -> None:
    for steps in cut_anywhere(trace, cuts):
        if not steps.tracing.window_ns.any():
            assert without_tracing(steps, Costs()).rows.equals(steps.recorded.rows)


def begun_together(nodes: list[tuple[int, int]], copy: tuple[int, int], *later: tuple[int, int]) -> Trace:
    """A kernel, a graph whose nodes are given, a copy that begins with it, and another graph."""
    sketch = Sketch()
    process = process_key(1)
    sketch.operation(KERNEL, 1000, 1001, process=process, name="first")
    launch = sketch.call("cudaGraphLaunch_v10000", 1000, 1001, thread_key(process, 1))
    for number, (start, end) in enumerate(nodes):
        place = {"process": process, "correlation": launch, "stream": 14, "graph_node": 5 << 32 | number}
        sketch.operation(KERNEL, start, end, **place, name="node")
    launch = sketch.call("cudaMemcpyAsync_v3020", 1001, 1002, thread_key(process, 1))
    sketch.operation(MEMCPY, *copy, process=process, correlation=launch, bytes=8, copy_kind=2, src_kind=2, dst_kind=0)
    launch = sketch.call("cudaGraphLaunch_v10000", 1002, 1002, thread_key(process, 1))
    for number, (start, end) in enumerate(later):
        place = {"process": process, "correlation": launch, "stream": 7, "graph_node": 6 << 32 | number}
        sketch.operation(KERNEL, start, end, **place, name="node")
    return sketch.trace()


@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(begun_together([(1002, 1002), (1002, 1003)], (1002, 1003)), id="its first node takes no time"),
        pytest.param(
            begun_together([(1002, 1002), (1003, 1003)], (1002, 1002), (1003, 1004)), id="none of its nodes takes time"
        ),
    ],
)
def test_graphs_whose_nodes_take_no_time_change_nothing(trace: Trace) -> None:
    (steps,) = cut_anywhere(trace, [0, 1])
    assert without_tracing(steps, Costs()).rows.equals(steps.recorded.rows)


def test_roles_come_in_the_order_of_their_place() -> None:
    replays = pl.DataFrame({"role": ["verify", "draft", "verify"], "position": [1, 0, 1]})
    medians = role_medians(replays, np.array([10.0, 4.0, 20.0]))
    assert list(medians.items()) == [("draft", 4), ("verify", 15)]
