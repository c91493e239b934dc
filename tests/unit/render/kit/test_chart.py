"""Dots, levels and ticks of any numbers lie inside the drawing and in their order."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.render.kit.chart import chart

NUMBERS = st.lists(st.none() | st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-9), max_size=20)


@given(NUMBERS, st.booleans())
def test_every_dot_lies_between_the_ticks_and_higher_means_more(values: list[float | None], zero: bool) -> None:
    drawn = chart(values, zero=zero)
    assert [dot.index for dot in drawn.dots] == [n for n, value in enumerate(values) if value is not None]
    assert all(drawn.left <= dot.x <= drawn.right and 0 <= dot.y <= drawn.height for dot in drawn.dots)
    assert all(drawn.ticks[-1][0] - 1e-6 <= dot.y <= drawn.ticks[0][0] + 1e-6 for dot in drawn.dots)
    assert all(low[0] > high[0] and low[1] < high[1] for low, high in pairwise(drawn.ticks))
    placed = sorted((value, -dot.y) for dot in drawn.dots if (value := values[dot.index]) is not None)
    assert [y for _, y in placed] == sorted(y for _, y in placed)


def test_levels_are_the_means_between_edges() -> None:
    drawn = chart([1.0, 1.0, None, 3.0, 5.0], [0, 3, 5])
    first, second = drawn.levels
    dots = {dot.index: dot for dot in drawn.dots}
    assert (first.x1, first.x2, first.y) == (dots[0].x, dots[1].x, dots[0].y)
    assert (second.x1, second.x2) == (dots[3].x, dots[4].x)
    assert abs(second.y - (dots[3].y + dots[4].y) / 2) < 1e-9


def test_the_axis_needs_not_reach_down_to_zero() -> None:
    assert chart([100.0, 101.0], zero=False).ticks[0][1] == 100
    assert chart([100.0, 101.0]).ticks[0][1] == 0
    assert chart([-5.0, 5.0]).ticks[0][1] < 0
