from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.economics.speculation import Point, as_document, parse_point, sweep, verdict
from bubblefinder.errors import UsageError

SWEEP = ("3:4:3.11:1.51", "4:5:3.37:1.45", "5:6:3.45:1.55")


def test_the_sweep_picks_4_5_and_shows_why_5_6_loses() -> None:
    found = sweep([parse_point(text) for text in SWEEP])
    assert found.best is not None
    assert (found.best.steps, found.best.tokens) == (4, 5)
    first, second = found.deeper
    assert first.pays
    assert not second.pays
    assert [depth.step_ms for depth in found.depths] == pytest.approx([4.70, 4.89, 5.35], abs=0.005)
    assert second.cost == pytest.approx(0.094, abs=0.001)
    assert second.break_even == pytest.approx(3.69, abs=0.005)
    assert second.deep.accept == 3.45
    assert (first.sure, second.sure) == (None, None)


def test_runs_of_one_depth_show_its_noise() -> None:
    found = sweep([parse_point(text) for text in (*SWEEP, "4:5:3.35:1.49")])
    assert found.depths[1].runs == 2
    assert found.depths[1].spread_ms == pytest.approx(0.04)
    assert [one.sure for one in found.deeper] == [False, True]


def test_a_round_of_2_26_plain_steps_gives_1_73_where_2_34_were_measured() -> None:
    against = verdict(3.90, 9.72, 22.76, 2.26)
    assert against.predicted == pytest.approx(1.73, abs=0.005)
    assert against.measured == pytest.approx(2.34, abs=0.005)
    assert against.unexplained == pytest.approx(0.62, abs=0.005)
    assert against.fallback_ms == pytest.approx(51, abs=0.5)


def test_what_is_not_known_is_null() -> None:
    against = verdict(3.90, 9.72, None, None)
    assert (against.predicted, against.measured, against.unexplained, against.fallback_ms) == (None, None, None, None)


@pytest.mark.parametrize(("accept", "fell"), [(1.00, True), (1.02, True), (1.03, False)])
def test_an_accept_length_of_one_is_a_silent_fallback(accept: float, fell: bool) -> None:
    assert Point(steps=3, tokens=4, accept=accept, tpot_ms=1.0).fell_back is fell
    assert not Point(steps=0, tokens=1, accept=1.0, tpot_ms=1.0).fell_back


@pytest.mark.parametrize(
    "text", ["", "3:4:3.11", "a:4:3:1", "3:4:5:1", "3:4:0.5:1", "3:4:3:0", "3:0:1:1", "-1:4:3:1", "3:4:nan:1"]
)
def test_points_that_are_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_point(text)


@given(
    accepts=st.lists(st.floats(1.0, 8.0), min_size=2, max_size=6),
    tpot=st.floats(0.1, 100.0),
)
def test_deeper_pays_exactly_where_a_token_gets_cheaper(accepts: list[float], tpot: float) -> None:
    points = [
        Point(steps=n, tokens=n + 8, accept=accept, tpot_ms=tpot * (1 + 0.1 * ((n * 7) % 3)))
        for n, accept in enumerate(accepts)
    ]
    for one in sweep(points).deeper:
        assert one.pays == (one.deep.accept > one.break_even)
        if abs(one.deep.tpot_ms - one.shallow.tpot_ms) > 1e-9 * tpot:
            assert one.pays == (one.deep.tpot_ms < one.shallow.tpot_ms)


def test_the_document() -> None:
    document = as_document(sweep([parse_point(text) for text in SWEEP]), None)
    assert document["best"] == "4/5"
    assert [line["pays"] for line in document["break_even"]] == [True, False]
    assert len(document["points"]) == 3
    assert document["speedup"] is None
