"""Nodes that all begin later by the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.compare.delta.decompose import decomposed
from bubblefinder.compare.delta.front import later_ns
from bubblefinder.compare.delta.side import side_of
from tests.unit.compare.delta.accounts import STEPS, a_role, an_account

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.compare.delta.side import Side

SAME = [200] * 30


def waiting(gaps_ns: Sequence[int], *, us: float = 8, early_us: float = 0) -> Side:
    """A replay whose nodes wait so long each."""
    nodes = range(len(gaps_ns))
    role = a_role(list(nodes), us=us, early_us=early_us, gap_ns=[gap * STEPS for gap in gaps_ns])
    return side_of([an_account([role], names=[f"kernel {n}" for n in nodes])])


def test_nodes_that_wait_longer_by_about_the_same() -> None:
    head = waiting([200 + 355 + jitter for jitter in range(-60, 60, 4)])
    assert later_ns(waiting(SAME), head) == pytest.approx(353)
    assert later_ns(head, waiting(SAME)) == pytest.approx(-353)


@pytest.mark.parametrize(
    "gaps",
    [SAME, [240] * 30, [200 + 90 * number for number in range(30)], [200] * 15 + [900] * 15],
    ids=["none", "less than the clock shows", "each by another time", "half of them"],
)
def test_nodes_that_do_not(gaps: list[int]) -> None:
    assert later_ns(waiting(SAME), waiting(gaps)) == 0


def test_a_handful_of_nodes_and_lost_overlap_are_the_programs_own() -> None:
    assert later_ns(waiting([200] * 5), waiting([600] * 5)) == 0
    assert later_ns(waiting(SAME, early_us=1), waiting([600] * 30)) == 0


@given(st.integers(100, 900), st.floats(1, 20), st.booleans())
def test_it_is_a_part_of_its_own_and_the_sum_stays(more: int, us: float, sooner: bool) -> None:
    sides = waiting(SAME), waiting([200 + more] * 30, us=us)
    base, head = sides[::-1] if sooner else sides
    found = decomposed(0, base, head, ({"busy": base.mean_ns}, {"busy": head.mean_ns}))
    assert sum(part.delta_ns for part in found.parts) + found.residual_ns == found.delta_ns
    gaps = [part for part in found.parts if part.kind == "node gaps"]
    assert [(part.nodes, part.delta_ns) for part in gaps] == [(30, (-30 if sooner else 30) * more)]
