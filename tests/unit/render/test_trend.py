"""A trend as text and as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.history import PastRun
from bubblefinder.compare.metrics import METRICS
from bubblefinder.compare.noise import Setting
from bubblefinder.compare.trend import Point, Trend, shifts
from bubblefinder.render.trend import html, sheet, text

if TYPE_CHECKING:
    from bubblefinder.compare.history import State

EVIL = "</title><script>alert(1)</script>"


def a_trend(*values: float, states: dict[int, State] | None = None) -> Trend:
    points = tuple(
        Point(
            PastRun(
                id=day + 1, added_at=f"2026-11-{day + 1:02}T03:00:00+00:00", label=EVIL, commit=f"c{day}",
                name=EVIL, state=(states or {}).get(day, "ok"), reason=None, steps=30, waiting=0.0, reach=0.0,
                facts={"driver": "580" if day < 4 else "590"},
            ),
            value,
        )
        for day, value in enumerate(values)
    )  # fmt: skip
    metric = METRICS["step.duration.p50"]
    return Trend(metric, (("rank", 0),), EVIL, points, tuple(shifts(metric, points, Setting(0.0, 7e6, 1))))


def test_the_step_is_told_where_it_is() -> None:
    lines = text(a_trend(*[7e6] * 4, *[7.7e6] * 4)).splitlines()
    assert lines[5] == (
        "  ····· worse since run 5 of 2026-11-05: 7.00 ms to 7.70 ms (+10.0 %), commits c3 to c4; "
        "with it driver: 580 to 590"
    )
    assert len(lines) == 10


def test_a_last_alarm_alone_is_called_undecided() -> None:
    said = text(a_trend(*[7e6] * 5, 9e6, states={5: "alarm"}))
    assert "It has not moved beyond its noise." in said
    assert "a second run like it would tell a step from an outlier" in said


def test_all_is_well_after_a_step_for_the_better_alone() -> None:
    assert sheet(a_trend(*[7e6] * 8)).level == "ok"
    assert sheet(a_trend(*[7.7e6] * 4, *[7e6] * 4)).level == "ok"
    assert sheet(a_trend(*[7e6] * 4, *[7.7e6] * 4)).level is None
    assert sheet(a_trend(*[7e6] * 4, *[7.7e6] * 4, states={7: "alarm"})).level == "fail"


@pytest.mark.parametrize("values", [[7e6], [7e6, 7e6], [7e6] * 4 + [7.7e6] * 4], ids=len)
def test_the_page_draws_every_run_and_is_safe(values: list[float]) -> None:
    page = html(a_trend(*values))
    assert page.count("<circle") == len(values)
    assert page.count('class="level"') == (2 if len(values) == 8 else 1)
    assert page.count("<script") == 1
