from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.web.store import StoredRun
from bubblefinder.web.trend import HEIGHT, WIDTH, Point, chart, words


def points(*numbers: float | None) -> list[Point]:
    return [Point(StoredRun(id=str(place), name="n"), number) for place, number in enumerate(numbers)]


def test_a_higher_value_is_drawn_higher_and_later_further_right() -> None:
    low, high = chart(points(1e6, 2e6)).dots
    assert high.y < low.y
    assert high.x > low.x
    assert all(0 < mark.x < WIDTH and 0 < mark.y < HEIGHT for mark in (low, high))


def test_the_axis_begins_at_zero_and_speaks_the_metrics_unit() -> None:
    ticks = [value for _, value in chart(points(1e6, 2e6)).ticks]
    said = [words("step.duration.p50", value) for value in ticks]
    assert said == ["0 ns", "500 us", "1.00 ms", "1.50 ms", "2.00 ms", "2.50 ms"]
    shares = [words("bubble.share.total", value) for _, value in chart(points(0.5)).ticks]
    assert shares == ["0.0 %", "20.0 %", "40.0 %", "60.0 %"]


@given(st.floats(min_value=1e-12, max_value=1e12))
def test_the_axis_reaches_above_the_highest_value_in_few_round_ticks(highest: float) -> None:
    drawn = chart(points(highest))
    assert 3 <= len(drawn.ticks) <= 6
    assert drawn.ticks[-1][0] < drawn.dots[0].y < drawn.ticks[0][0]


def test_an_unknown_value_is_a_hole_and_not_a_zero() -> None:
    drawn = chart(points(1.0, 2.0, None, 3.0, 4.0))
    assert len(drawn.dots) == 4
    assert [len(line.split()) for line in drawn.lines] == [2, 2]


def test_one_point_none_and_all_zero_can_be_drawn() -> None:
    assert len(chart(points(5.0)).dots) == 1
    assert chart([]).dots == []
    assert chart(points(None)).dots == []
    assert len(chart(points(0.0, 0.0)).lines) == 1


def test_unknown_is_a_dash() -> None:
    assert words("bubble.share.total", None) == words("step.duration.p50", None) == "–"
