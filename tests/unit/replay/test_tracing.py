from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bubblefinder.overhead.model import Cost, Costs
from bubblefinder.replay.corrected import without_tracing
from tests.unit.replay.taxed import PROCESS, THREAD, US, Loop, Tax, decode, sums, traced

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace


def exactly(value: float) -> Cost:
    return Cost(value, value, value)


def costs_of(tax: Tax) -> Costs:
    return Costs(
        kernel_node=exactly(tax.node),
        gap_share=exactly(1.0),
        launch_call=exactly(5 * US),
        launch_node=exactly(0),
        launch_start=exactly(4 * US),
        copy_call=exactly(tax.call),
        other_call=exactly(tax.call),
    )


def median_step(trace: Trace) -> float:
    return float(np.median(decode(trace)[3]["duration_ns"].to_numpy()))


def both(tax: Tax, host_us: int, *, reads: bool) -> tuple[Trace, Trace]:
    return Loop(Tax(), host_us, reads).run(12), Loop(tax, host_us, reads).run(12)


@pytest.mark.parametrize(
    ("host_us", "reads"),
    [(100, False), (3000, False), (200, True), (3000, True)],
    ids=["gpu-bound", "host-bound", "reading", "reading and slow"],
)
def test_the_step_without_the_profiler_is_found_again(host_us: int, reads: bool) -> None:
    tax = Tax(node=400, launch_node=300)
    plain, taxed = both(tax, host_us, reads=reads)
    raw, wanted = median_step(taxed), median_step(plain)
    found = without_tracing(traced(taxed), costs_of(tax)).step_ns
    assert raw > 1.015 * wanted
    assert found == pytest.approx(wanted, rel=0.004)


def test_host_cost_behind_a_busy_gpu_is_not_subtracted() -> None:
    tax = Tax(launch_node=1_000)
    plain, taxed = both(tax, 100, reads=False)
    assert median_step(taxed) == median_step(plain)
    assert without_tracing(traced(taxed), costs_of(tax)).step_ns == pytest.approx(median_step(plain), rel=1e-4)


def test_gpu_cost_behind_a_slow_host_is_not_subtracted() -> None:
    tax = Tax(node=400)
    plain, taxed = both(tax, 3000, reads=False)
    assert median_step(taxed) == pytest.approx(median_step(plain), rel=0.01)
    assert without_tracing(traced(taxed), costs_of(tax)).step_ns == pytest.approx(median_step(plain), rel=0.01)


def test_the_cost_of_nodes_comes_out_of_the_gaps_inside_the_graphs() -> None:
    tax = Tax(node=400)
    plain, taxed = both(tax, 100, reads=False)
    rows, wanted = without_tracing(traced(taxed), costs_of(tax)).rows, decode(plain)[3]
    assert np.median(rows["intra_graph_ns"].to_numpy()) == pytest.approx(
        np.median(wanted["intra_graph_ns"].to_numpy()), rel=0.02
    )
    assert np.median(rows["busy_ns"].to_numpy()) == np.median(wanted["busy_ns"].to_numpy())


def test_a_cost_larger_than_the_gaps_is_unplaced_and_never_taken_from_kernels() -> None:
    taxed = Loop(Tax(), 100, reads=False).run(8)
    corrected = without_tracing(traced(taxed), Costs(kernel_node=exactly(5 * US)))
    gaps = decode(taxed)[3]["intra_graph_ns"].to_numpy()
    assert (corrected.rows["intra_graph_ns"] == 0).all()
    assert corrected.rows["busy_ns"].to_list() == decode(taxed)[3]["busy_ns"].to_list()
    nodes = 20 + 200 + 8
    assert corrected.unplaced_ns == pytest.approx(nodes * 5 * US - np.median(gaps), abs=2)


@pytest.mark.parametrize("reads", [True, False])
def test_negative_costs_lengthen_the_step(reads: bool) -> None:
    taxed = traced(Loop(Tax(), 100, reads).run(8))
    slower = without_tracing(taxed, Costs(kernel_node=exactly(300)), factor=-1)
    assert slower.step_ns > without_tracing(taxed, Costs()).step_ns
    assert sums(slower.rows)


def test_a_graph_capture_keeps_the_inside_unknown() -> None:
    taxed = traced(Loop(Tax(), 100, reads=True, node_mode=False).run(8))
    rows = without_tracing(taxed, Costs(replay=exactly(500), copy_call=exactly(900))).rows
    assert rows["intra_graph_ns"].null_count() == len(rows)
    assert sums(rows)


def test_the_profilers_own_windows_are_left_out() -> None:
    loop = Loop(Tax(), 3000, reads=True)
    gaps = decode(loop.run(8))[0].gaps
    wide = gaps.filter(gaps["end_ns"] - gaps["start_ns"] > 2000 * US)["start_ns"][3]
    at = {"process": PROCESS, "thread": THREAD, "name": "CUPTI Buffer flush", "table": "PROFILER_OVERHEAD"}
    loop.sketch.add("overheads", wide + 200 * US, wide + 900 * US, **at)
    rows = decode(loop.sketch.trace())[3]
    corrected = without_tracing(traced(loop.sketch.trace()), Costs()).rows
    assert rows["profiler_ns"].sum() == 700 * US
    assert corrected["profiler_ns"].sum() == 0
    assert int(rows["duration_ns"].sum()) - int(corrected["duration_ns"].sum()) == 700 * US
    assert sums(corrected)
