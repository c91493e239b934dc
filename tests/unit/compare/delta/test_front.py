"""Nodes that all begin later by the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.compare.delta.front import brought_forward, held_back, later_ns, overlap_changed
from bubblefinder.compare.delta.side import side_of
from tests.unit.compare.delta.accounts import STEPS, a_role, an_account

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.compare.delta.side import Side

SAME = [200] * 30


def waiting(gaps_ns: Sequence[int], *, us: float = 8, early_us: float = 0, names: int = 30) -> Side:
    """A replay whose nodes wait so long each."""
    nodes = [number % names for number in range(len(gaps_ns))]
    role = a_role(nodes, us=us, early_us=early_us, gap_ns=[gap * STEPS for gap in gaps_ns])
    return side_of([an_account([role], names=[f"kernel {n}" for n in range(names)])])


@pytest.mark.parametrize("more", [60, 355, 900])
def test_nodes_that_wait_longer_by_about_the_same(more: int) -> None:
    head = waiting([200 + more + jitter for jitter in range(-40, 50, 3)])
    assert later_ns(waiting(SAME), head) == pytest.approx(more + 3.5)
    assert later_ns(head, waiting(SAME)) == pytest.approx(-more - 3.5)


@pytest.mark.parametrize(
    "gaps",
    [
        SAME,
        [200 + jitter for jitter in range(-57, 63, 4)],
        [200 + 90 * number**2 for number in range(30)],
        [200] * 15 + [900] * 15,
    ],
    ids=["none", "the clock's steps", "each by another time", "half of them"],
)
def test_nodes_that_do_not(gaps: list[int]) -> None:
    assert later_ns(waiting(SAME), waiting(gaps)) == 0


def test_a_handful_of_nodes_and_what_one_kernel_does_are_the_programs_own() -> None:
    assert later_ns(waiting([200] * 5), waiting([600] * 5)) == 0
    assert later_ns(waiting(SAME, names=3), waiting([600] * 30, names=3)) == 0


def test_an_overlap_counts_as_beginning_sooner() -> None:
    early, late = waiting([0] * 30, early_us=0.1, us=1), waiting(SAME, us=1)
    assert later_ns(early, late) == 300
    assert overlap_changed(early, late, 50)
    assert not overlap_changed(early, late, 300)
    assert not overlap_changed(late, late, 0)


def test_overlap_that_no_tracer_undoes_is_the_programs() -> None:
    early, late = waiting([0] * 30, early_us=1), waiting(SAME)
    assert later_ns(early, late) == later_ns(late, early) == 0


@pytest.mark.parametrize(("gap", "later"), [(50, 450), (200, 0), (700, 0)])
def test_short_overlap_that_went_is_the_programs_too_where_no_tracer_delays_for_so_long(gap: int, later: int) -> None:
    early, late = waiting([0] * 30, early_us=0.4, us=2), waiting([gap] * 30, us=2)
    assert (later_ns(early, late), later_ns(late, early)) == (later, -later)


@given(st.integers(0, 900), st.floats(1, 20))
def test_a_side_brought_forward_has_that_much_less_and_no_gap_below_nothing(ns: int, us: float) -> None:
    side = waiting(SAME, us=us)
    forward, held = brought_forward(side, ns), held_back(side, ns)
    assert held == {"verify": min(ns, 200) * 30}
    before, after = side.roles["verify"], forward.roles["verify"]
    assert before.cost_ns.sum() - after.cost_ns.sum() == pytest.approx(held["verify"])
    assert after.gap_ns.min() >= 0
