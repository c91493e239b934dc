from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.render.kit.chart import Chart
from bubblefinder.web.shelf import StoredRun
from bubblefinder.web.trend import Move, Point, chart, commits, moves, words


def points(*numbers: float | None, waiting: float | None = None) -> list[Point]:
    return [Point(StoredRun(id=str(place), name="n"), number, waiting) for place, number in enumerate(numbers)]


def test_a_higher_value_is_drawn_higher_and_later_further_right() -> None:
    low, high = chart(points(1e6, 2e6)).dots
    assert high.y < low.y
    assert high.x > low.x
    assert all(0 < mark.x < Chart.width and 0 < mark.y < Chart.height for mark in (low, high))


def test_the_axis_speaks_the_metrics_unit_and_fits_the_data() -> None:
    ticks = [tick for _, tick in chart(points(7.0e6, 7.4e6)).ticks]
    assert (ticks[0], ticks[-1] > 7.4e6) == (7.0e6, True)
    assert words(ticks[1], "step.duration.p50") == "7.10 ms"
    assert words(chart(points(0.5, 0.4)).ticks[0][1], "bubble.share.total") == "40.0 %"


def test_noise_of_a_thousandth_is_drawn_flat() -> None:
    low, high = chart(points(7.000e6, 7.007e6)).dots
    assert 0 < low.y - high.y < Chart.height / 8


def test_a_move_beyond_the_noise_is_marked_and_noise_is_not() -> None:
    steady = points(*(7e6 + number % 3 * 1e3 for number in range(12)), waiting=0.0)
    assert moves(steady, "step.duration.p50") == []
    slower = points(*(7e6 + number % 3 * 1e3 for number in range(8)), *[7.6e6] * 6, waiting=0.0)
    (move,) = moves(slower, "step.duration.p50")
    assert (move.at, move.is_worse) == (8, True)
    assert round(move.after / move.before, 2) == 1.09
    drawn = chart(slower, [move])
    assert [level.x1 for level in drawn.levels] == [drawn.dots[0].x, drawn.dots[8].x]
    faster = points(*[7.6e6] * 6, *[7e6] * 6, waiting=0.0)
    assert [one.is_worse for one in moves(faster, "step.duration.p50")] == [False]
    host_bound = points(*[7e6] * 6, *[7.4e6] * 6, waiting=0.3)
    assert len(moves(points(*[7e6] * 6, *[7.4e6] * 6, waiting=0.0), "step.duration.p50")) == 1
    unknown = points(*[7e6] * 6, *[7.4e6] * 6)
    assert len(moves(host_bound, "step.duration.p50")) == len(moves(unknown, "step.duration.p50"))
    assert moves(points(None, None), "step.duration.p50") == moves([], "step.duration.p50") == []


def test_commits_under_the_axis_never_overlap() -> None:
    runs = [Point(StoredRun(id=str(n), name="n", commit=f"{n:08x}"), 7e6) for n in range(150)]
    shown = sorted(commits(runs, chart(runs), [Move(40, 1.0, 2.0, is_worse=True)]))
    assert len(shown) > 5
    assert f"{40:08x}" in {commit for _, commit in shown}
    assert all(later - earlier >= 70 for (earlier, _), (later, _) in pairwise(shown))


@given(st.floats(min_value=1e-12, max_value=1e12))
def test_the_axis_reaches_above_the_highest_value_in_few_round_ticks(highest: float) -> None:
    drawn = chart(points(highest))
    assert 3 <= len(drawn.ticks) <= 7
    assert drawn.ticks[-1][0] < drawn.dots[0].y <= drawn.ticks[0][0]


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
    assert words(None, "bubble.share.total") == words(None, "step.duration.p50") == "–"
