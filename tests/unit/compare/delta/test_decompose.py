"""The change in parts: every level sums to the nanosecond."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.compare.delta.decompose import LEFT_OUT, decomposed
from bubblefinder.compare.delta.side import side_of
from bubblefinder.compare.delta.tracer import Delay
from tests.unit.compare.delta.accounts import a_call, a_role, an_account, an_eager, an_idle
from tests.unit.compare.delta.parts import NO_DELAY

if TYPE_CHECKING:
    from bubblefinder.compare.delta.model import Delta
    from bubblefinder.report.account import Account


def delta(base: list[Account], head: list[Account], delay: Delay = NO_DELAY) -> Delta:
    sides = [side_of(side) for side in (base, head)]
    means = [{"busy": side.mean_ns / 3, "host_late": side.mean_ns * 2 / 3} for side in sides]
    return decomposed(0, sides[0], sides[1], (means[0], means[1]), delay)


def test_what_nodes_begin_later_by_is_a_part_of_its_own() -> None:
    base, head = (an_account([a_role([0, 1] * 15, gap_ns=[gap * 10] * 30)]) for gap in (200, 560))
    found = delta([base], [head], Delay((0.0,), (360.0,), tracers=True))
    assert [(part.kind, part.nodes, part.delta_ns) for part in found.parts] == [("node gaps", 30, 30 * 360)]
    assert found.residual_ns == 0


def test_nodes_that_say_the_same_are_one_part() -> None:
    found = delta([an_account([a_role([0, 1] * 5)])], [an_account([a_role([0, 1] * 5, us=9)])])
    assert [(part.name, part.nodes, part.delta_ns) for part in found.parts] == [("norm", 5, 5_000), ("qkv", 5, 5_000)]
    assert found.residual_ns == 0


def test_what_is_too_small_to_list_is_the_residual() -> None:
    base = an_account([a_role([0], us=1_000), a_role([1], role="draft", us=1)])
    head = an_account([a_role([0], us=2_000), a_role([1], role="draft", us=1.5)])
    found = delta([base], [head])
    assert len(found.parts) == 1
    assert found.residual_ns == 500


def test_captures_left_out_are_a_row_of_their_own() -> None:
    usual, other = an_account([a_role([0, 1])]), an_account([a_role([0, 1, 2, 3])])
    found = delta([usual], [usual, usual, other])
    assert [row.delta_ns for row in found.roles if row.name == LEFT_OUT] == [found.delta_ns]
    assert found.residual_ns == found.delta_ns


accounts = st.builds(
    lambda nodes, us, idle, eager: an_account(
        [a_role(nodes, us=us)],
        idle=[an_idle(value, place=f"range {number}") for number, value in enumerate(idle)],
        eager=[an_eager(number, value) for number, value in enumerate(eager)],
        calls=[a_call("host work", sum(idle), on="range 0")],
    ),
    nodes=st.lists(st.integers(0, 3), min_size=1, max_size=8),
    us=st.floats(1, 50),
    idle=st.lists(st.floats(0.001, 500), max_size=4),
    eager=st.lists(st.floats(0.001, 50), max_size=4),
)


@given(st.lists(accounts, min_size=1, max_size=3), st.lists(accounts, min_size=1, max_size=3))
def test_every_level_sums_to_the_change(base: list[Account], head: list[Account]) -> None:
    found = delta(base, head)
    assert found.delta_ns == found.head_ns - found.base_ns
    assert sum(part.delta_ns for part in found.parts) + found.residual_ns == found.delta_ns
    for rows in (found.classes, found.roles):
        assert sum(row.delta_ns for row in rows) == found.delta_ns
        assert sum(row.base_ns for row in rows) == found.base_ns
    assert found.base_ns == pytest.approx(sum(a.duration_ns / a.steps for a in base) / len(base), abs=1)
