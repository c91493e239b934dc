"""Since when a metric moved."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.compare.history import add
from bubblefinder.compare.store import open_store
from bubblefinder.compare.trend import breaks, trend
from bubblefinder.errors import UsageError
from bubblefinder.render.trend import verdicts
from tests.unit.compare.builders import MS, US, a_report, with_trace
from tests.unit.render.test_trend import a_trend

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from sqlite_utils import Database

START = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_store(tmp_path / "history.sqlite", create=True) as opened:
        yield opened


def fill(database: Database, lates: list[int], *, driver_at: int | None = None) -> None:
    for day, late in enumerate(lates):
        report = a_report(seed=day, host_late=late)
        if driver_at is not None and day >= driver_at:
            report = with_trace(report, driver_version="590.1")
        report = replace(report, run=replace(report.run, label="nightly", commit=f"c{day}"))
        add(database, report, now=START + timedelta(days=day))


def test_a_step_is_found_with_what_changed_along(database: Database) -> None:
    fill(database, [50 * US] * 6 + [600 * US] * 5, driver_at=6)
    found = trend(database, "step.duration.p50")
    assert [shift.at for shift in found.shifts] == [6]
    assert found.shifts[0].changed == ("driver: 580.1 to 590.1",)
    assert found.shifts[0].after > found.shifts[0].before
    assert found.points[6].run.state == "alarm"


def test_there_and_back_are_two_steps(database: Database) -> None:
    fill(database, [50 * US] * 5 + [600 * US] * 4 + [50 * US] * 5)
    assert [shift.at for shift in trend(database, "step.host_late.p50").shifts] == [5, 9]


def test_a_quiet_metric_has_not_moved(database: Database) -> None:
    fill(database, [50 * US] * 12)
    assert trend(database, "step.duration.p50").shifts == ()


def test_one_slow_run_is_no_step(database: Database) -> None:
    fill(database, [50 * US] * 5 + [3 * MS] + [50 * US] * 5)
    assert trend(database, "step.duration.p50").shifts == ()


def test_what_to_draw_is_asked_for_if_it_is_not_clear(database: Database) -> None:
    with pytest.raises(UsageError, match="holds no runs"):
        trend(database, "step.duration.p50")
    fill(database, [50 * US])
    add(database, a_report())
    for metric, label, where, said in (
        ("step.speed", "nightly", {}, "no metric"),
        ("step.duration.p50", None, {}, "several labels"),
        ("step.duration.p50", "weekly", {}, "no runs labelled"),
        ("step.duration.p50", "nightly", {"rank": "3"}, "no run has"),
    ):
        with pytest.raises(UsageError, match=said):
            trend(database, metric, label, where)


def test_noise_alone_rarely_breaks() -> None:
    noise = np.random.default_rng(5)
    broken = sum(bool(breaks(list(noise.normal(7e6, 7e4, 20)))) for _ in range(100))
    assert broken <= 5


@given(left=st.integers(3, 12), right=st.integers(3, 12), height=st.floats(0.05, 2.0), seed=st.integers(0, 20))
def test_a_clear_step_is_found_where_it_is(left: int, right: int, height: float, seed: int) -> None:
    noise = np.random.default_rng(seed)
    level = np.r_[np.ones(left), np.full(right, 1 + height)]
    found = a_trend(*(7e6 * level * (1 + 0.001 * noise.standard_normal(left + right)))).shifts
    assert [shift.at for shift in found] == [left]


def test_runs_of_other_definitions_are_left_out_and_counted(database: Database) -> None:
    fill(database, [50 * US] * 4)
    for day in range(4, 8):
        report = replace(a_report(seed=day, busy=9 * MS), definitions=2)
        add(database, replace(report, run=replace(report.run, label="nightly")), now=START + timedelta(days=day))
    found = trend(database, "step.duration.p50")
    assert (len(found.points), found.left_out, found.shifts) == (4, 4, ())
    late = replace(a_report(seed=9), definitions=1)
    add(database, replace(late, run=replace(late.run, label="nightly")), now=START + timedelta(days=9))
    assert [point.run.id for point in trend(database, "step.duration.p50").points] == [5, 6, 7, 8]
    assert "4 runs of older definitions left out" in " ".join(verdicts(found))
