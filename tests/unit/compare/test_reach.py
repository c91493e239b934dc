"""By how much the host's noise alone may lengthen a step."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from bubblefinder.compare.diff import diff
from bubblefinder.compare.noise import Floors, Setting
from bubblefinder.compare.reach import reach_between, reach_of
from bubblefinder.report.model import Report  # noqa: TC001 - of a cached function
from tests.seeded import Seed, report, trace
from tests.unit.compare.builders import MS, a_report


@cache
def of(work_us: float, number: int = 1, pause_us: float = 0) -> Report:
    """A loop of 590 us on the GPU, whose host needs what it works and 0.1 ms for its calls."""
    return report(trace(Seed(work_us=work_us, pause_us=pause_us), number=number))


@pytest.mark.parametrize(("work_us", "least", "most"), [(100, 0.0, 0.0), (300, 0.0, 0.0), (480, 0.04, 0.1)])
def test_a_host_with_time_to_spare_reaches_nothing(work_us: float, least: float, most: float) -> None:
    assert least <= reach_of(of(work_us)) <= most


def test_no_more_than_a_host_differs_by() -> None:
    assert reach_of(of(2_000)) == pytest.approx(0.10, abs=0.002)
    assert reach_of(of(2_000), Floors(host=0.05)) == pytest.approx(0.05, abs=0.002)


def test_what_only_few_steps_take_is_no_part_of_it() -> None:
    assert reach_of(of(100, pause_us=9_000)) == 0.0


def test_a_report_without_accounts_reaches_nothing() -> None:
    assert reach_of(a_report()) == 0.0


def test_of_two_sides_the_one_with_more_time_counts() -> None:
    near, far = of(480), of(100)
    assert reach_between([near], [far], Floors()) == reach_between([far], [near], Floors()) == 0.0
    assert reach_between([near], [of(480, 2), far], Floors()) > 0.04


def test_it_adds_to_the_floor_of_a_step_and_never_passes_the_hosts() -> None:
    setting = Setting(waiting=0.0, step_ns=8.0 * MS, ranks=1)
    shares = [replace(setting, reach=reach).share for reach in (0.0, 0.04, 0.3)]
    assert shares == pytest.approx([0.01, 0.05, 0.10])
    assert [replace(setting, reach=reach).stall_ns for reach in (0.0, 0.04)] == pytest.approx([0.0, 0.8 * MS])


def test_the_headline_says_so() -> None:
    result = diff([of(480)], [of(480, 2)])
    assert result.verdict == "no change"
    assert "for steps whose host barely keeps up." in result.headline
