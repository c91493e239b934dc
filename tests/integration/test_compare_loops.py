"""Loops whose truth is known because they are written launch by launch, from the trace to the verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.diff import diff
from bubblefinder.report.build import Options, analyze_trace
from tests.loops import DRAFT, EXTEND, VERIFY, Loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.report.model import Report
    from tests.loops import Graph

GRAPHS = (DRAFT, VERIFY, EXTEND)


def report(
    steps: int,
    graphs: Sequence[Graph] = GRAPHS,
    *,
    seed: int = 1,
    extra_us: float = 0,
    reads: int = 0,
    node: bool = True,
) -> Report:
    """What is said of a loop of so many steps, with more host work or more blocking reads in each."""
    loop = Loop(seed=seed, node_mode=node)
    for _ in range(steps):
        if extra_us:
            loop.spend(extra_us)
        loop.step(graphs)
        for _ in range(reads):
            loop.spend(100)
            loop.read(64)
    return analyze_trace(loop.sketch.trace(), Options())


@pytest.mark.parametrize("steps", [(20, 30), (30, 20), (60, 21)], ids=str)
def test_the_same_loop_over_more_or_fewer_steps_is_no_change(steps: tuple[int, int]) -> None:
    result = diff([report(steps[0])], [report(steps[1], seed=2)])
    assert result.verdict == "no change"
    assert [k for k in result.kernels if k.status != "same"] == []


@pytest.mark.parametrize("steps", [(30, 20), (20, 30)], ids=str)
def test_more_host_work_a_step_is_a_regression_over_any_number_of_steps(steps: tuple[int, int]) -> None:
    base, head = report(steps[0]), report(steps[1], seed=2, extra_us=300)
    assert diff([base], [head]).verdict == "regression"
    assert diff([head], [base]).verdict == "improvement"


def test_a_blocking_read_that_came_is_named() -> None:
    result = diff([report(30)], [report(30, seed=2, reads=2)])
    assert result.verdict == "regression"
    assert any(f.status in {"new", "worse"} and f.site.api == "cudaMemcpyAsync" for f in result.findings)
    waits = next(c for c in result.changes if c.metric == "waits.per_step")
    assert waits.delta == pytest.approx(2, abs=0.1)


def test_a_slower_kernel_and_a_new_one_explain_the_busy_time() -> None:
    slower = replace(VERIFY, kernels=(*VERIFY.kernels, *["surprise"] * 8), node_us=11)
    result = diff([report(30)], [report(30, (DRAFT, slower, EXTEND), seed=2)])
    statuses = {(k.role, k.name): k.status for k in result.kernels}
    assert statuses[("verify", "surprise")] == "new"
    assert statuses[("verify", "attn")] == "worse"
    assert not {name for role, name in statuses if role == "draft"}
    assert next(c for c in result.changes if c.metric == "step.busy.p50").status == "worse"
    assert any("nodes against 68" in warning for warning in result.warnings)


def test_capture_modes_that_can_not_be_compared_are_refused() -> None:
    assert diff([report(20)], [report(20, node=False)]).verdict == "incomparable"
