"""Kernels of a step: counts, times and the runs of small ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from bubblefinder.report.detail import kernels
from bubblefinder.trace.model import KERNEL
from tests.loops import Graph, Loop
from tests.unit.report.detail.analysed import Analysed, loop

if TYPE_CHECKING:
    from bubblefinder.report.charts import KernelRow


def rows(one: Analysed) -> list[KernelRow]:
    operations = kernels.decode_operations(one.timeline, one.steps, one.decode, one.rank)
    return kernels.kernel_rows(operations, len(one.decode), one.timeline.trace.names, lambda name: name[:3])


def test_counts_and_times_a_step_are_those_of_the_graphs() -> None:
    found = {(row.role, row.name): row for row in rows(loop())}
    attention = found["verify", "attn"]
    assert attention.per_step_count == 15
    assert attention.per_step_ns == pytest.approx(15 * 10_000, rel=0.02)
    assert attention.p50_ns == pytest.approx(10_000, rel=0.02)
    assert attention.category == "att"
    assert found["draft", "embed"].per_step_count == 1


def test_graph_mode_has_no_kernels_inside() -> None:
    assert [row for row in rows(loop(node_mode=False)) if row.role] == []


def test_runs_of_small_kernels_are_found_and_summed() -> None:
    small, big = "s", "B"
    made = Loop(jitter=0)
    for _ in range(6):
        made.step((Graph(6, (big, small, small, small, small, big, small, small), 10),))
    sizes = {big: 20_000, small: 2_000}
    trace = made.sketch.trace()
    one = Analysed(trace)
    operations = kernels.decode_operations(one.timeline, one.steps, one.decode, one.rank)
    names = one.timeline.trace.names
    lengths = [sizes.get(names.get(name, ""), 1_000) for name in operations["name"]]
    shrunk = operations.with_columns(end_ns=operations["start_ns"] + pl.Series(lengths))
    (run,) = kernels.kernel_runs(shrunk, len(one.decode), names)
    assert (run.first, run.last, run.kernels, run.per_step_count) == (small, small, 4, 1.0)
    assert run.per_step_busy_ns == 8_000
    assert run.per_step_gap_ns == 3 * 9_000


def test_overlap_counts_kernels_that_begin_before_the_one_before_ends() -> None:
    one = loop()
    operations = kernels.decode_operations(one.timeline, one.steps, one.decode, one.rank)
    assert kernels.overlap_share(operations) == 0
    inside = operations.filter((operations["kind"] == KERNEL) & operations["replay_index"].is_not_null())
    longer = inside.with_columns(end_ns=inside["end_ns"] + 2_000)
    assert kernels.overlap_share(longer) == 1
    assert kernels.overlap_share(inside.clear()) is None


def test_a_kernel_without_a_name_and_one_with_a_long_one() -> None:
    assert kernels.kernel_name(None, {}) == "unnamed"
    assert len(kernels.kernel_name(1, {1: "k" * 5000})) == kernels.NAME_LENGTH


def test_runs_that_last_the_same_come_in_the_order_of_the_step() -> None:
    """Else a slice, whose names are counted anew, could order them otherwise than the whole."""
    starts = [start + 10 * number for start in (0, 1_000, 2_000) for number in range(3)]
    work = pl.DataFrame(
        {
            "kind": [KERNEL] * 9,
            "start_ns": starts,
            "end_ns": [start + 5 for start in starts],
            "name": [3, 2, 1] * 3,
            "replay_index": [0, 0, 0, 1, 1, 1, 2, 2, 2],
            "role": ["draft"] * 3 + ["extend"] * 3 + ["after"] * 3,
        }
    )
    found = kernels.kernel_runs(work, 1, {1: "a", 2: "b", 3: "c"})
    assert [run.role for run in found] == ["draft", "extend", "after"]
