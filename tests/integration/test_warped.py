"""Regressions made in real captures: the first suspect is the change, among the 1,690 nodes of the real graph."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.diff import diff
from tests import samples
from tests.seeded import report
from tests.warped import longer, paused, renamed, reshaped

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.model import Report
    from bubblefinder.trace.model import Trace

GPU, TWIN, HOST, LONG = "nextn_after.node", "dspark_after.node", "nextn_before.node", "nextn_before.graph"
"""Bound by the GPU; another capture of the same graphs; bound by the host, and so over more steps."""
DOWN, SLOWER = "moe_down_kernel", 1.4
PREPARE = "prepare_batch"


def capture(name: str) -> Trace:
    return samples.analysis(name).trace


@cache
def analysed(name: str) -> Report:
    return report(capture(name))


CASES: list[tuple[str, str, Callable[[Trace], Trace], str, str | None]] = [
    (GPU, GPU, lambda t: longer(t, DOWN, SLOWER), "same kernel", DOWN),
    (GPU, TWIN, lambda t: longer(t, DOWN, SLOWER), "same kernel", DOWN),
    (GPU, GPU, lambda t: renamed(longer(t, DOWN, SLOWER), DOWN, "moe_down_v2"), "another kernel", DOWN),
    (GPU, TWIN, lambda t: renamed(longer(t, DOWN, SLOWER), DOWN, "moe_down_v2"), "another kernel", DOWN),
    (GPU, GPU, lambda t: reshaped(longer(t, DOWN, SLOWER), DOWN, "4x20"), "launch shape", DOWN),
    (GPU, TWIN, lambda t: reshaped(longer(t, DOWN, SLOWER), DOWN, "4x20"), "launch shape", DOWN),
    (HOST, HOST, lambda t: paused(t, PREPARE, 1_500), "host work", PREPARE),
    (LONG, LONG, lambda t: paused(t, PREPARE, 12_000, every=9, first=4), "pause", PREPARE),
]


@pytest.mark.parametrize(("base", "head", "change", "kind", "name"), CASES)
def test_the_change_is_the_first_suspect(
    base: str, head: str, change: Callable[[Trace], Trace], kind: str, name: str | None
) -> None:
    result = diff([analysed(base)], [report(change(capture(head)))])
    assert result.verdict == "regression"
    first = result.suspects[0]
    assert (first.kind, first.name) == (kind, name)
    (delta,) = result.deltas
    assert sum(part.delta_ns for part in delta.parts) + delta.residual_ns == delta.delta_ns
    assert abs(delta.residual_ns) <= 0.05 * abs(delta.delta_ns)


def test_two_captures_of_the_same_graphs_are_silent() -> None:
    for base, head in ((GPU, TWIN), (TWIN, GPU)):
        result = diff([analysed(base)], [analysed(head)])
        assert (result.verdict, result.suspects) == ("no change", [])
