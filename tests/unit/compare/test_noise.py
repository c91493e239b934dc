"""The line between a difference and noise."""

from __future__ import annotations

import numpy as np
import pytest

from bubblefinder.compare.metrics import NoiseSource
from bubblefinder.compare.noise import (
    Floors,
    Setting,
    line_between,
    quantile_t,
    regime,
    spread_of,
    threshold,
    waiting_of,
)
from tests.unit.compare.builders import MS, a_report

HOST = Setting(waiting=0.4, step_ns=8.0 * MS, ranks=1)
GPU = Setting(waiting=0.0, step_ns=8.0 * MS, ranks=1)


@pytest.mark.parametrize(("waiting", "floor"), [(0.0, 0.01), (0.05, 0.01), (0.10, 0.055), (0.15, 0.10), (0.9, 0.10)])
def test_the_floor_grows_from_one_regime_to_the_other(waiting: float, floor: float) -> None:
    assert Floors().at(waiting) == pytest.approx(floor)


def test_the_regime_follows_from_how_long_the_gpu_waits_for_launches() -> None:
    assert regime(waiting_of(a_report(host_late=0))) == "gpu"
    assert regime(waiting_of(a_report(host_late=3 * MS))) == "host"


def test_with_nothing_measured_the_threshold_is_the_floor() -> None:
    assert threshold(800_000.0, spread_of([1.0]), (1, 1), least=80_000.0) == pytest.approx(800_000)


def test_more_captures_that_agree_narrow_the_threshold_and_never_below_the_least() -> None:
    lines = [line_between(NoiseSource.STEP, [8.0 * MS] * n, [8.0 * MS] * n, HOST) for n in (1, 2, 3, 6)]
    assert lines == sorted(lines, reverse=True)
    assert lines[0] == pytest.approx(0.10 * 8 * MS)
    assert line_between(NoiseSource.STEP, [8.0 * MS] * 30, [8.0 * MS] * 30, GPU) == pytest.approx(0.01 * 8 * MS)


def test_captures_that_scatter_widen_the_threshold() -> None:
    calm = line_between(NoiseSource.STEP, [8e6, 8.05e6, 7.95e6], [8e6, 8.05e6, 7.95e6], HOST)
    wild = line_between(NoiseSource.STEP, [6.1e6, 8.2e6, 7.5e6], [8.1e6, 6.3e6, 7.7e6], HOST)
    assert wild > 2 * calm


def test_busy_time_is_held_to_the_gpus_noise_even_if_the_host_is_slow() -> None:
    assert HOST.floor(NoiseSource.GPU, 4.0 * MS) == pytest.approx(0.01 * 4 * MS)
    ranks_wait_for_each_other = Setting(waiting=0.4, step_ns=8.0 * MS, ranks=2)
    assert ranks_wait_for_each_other.floor(NoiseSource.GPU, 4.0 * MS) == pytest.approx(0.10 * 4 * MS)


def test_the_quantiles_of_student_approach_the_normal_one() -> None:
    values = [quantile_t(degrees) for degrees in (1, 2, 4, 10, 30, 200)]
    assert values == sorted(values, reverse=True)
    assert values[2] == pytest.approx(4.604)
    assert values[-1] == pytest.approx(2.6006, rel=1e-3)


@pytest.mark.parametrize(("captures", "deviation"), [((3, 3), 0.03), ((1, 5), 0.03), ((2, 2), 0.01)])
def test_captures_of_one_thing_rarely_raise_an_alarm(captures: tuple[int, int], deviation: float) -> None:
    noise = np.random.default_rng(7)
    alarms = 0
    for _ in range(1000):
        base, head = (8 * MS * (1 + deviation * noise.standard_normal(n)) for n in captures)
        alarms += abs(base.mean() - head.mean()) > line_between(NoiseSource.STEP, list(base), list(head), HOST)
    assert alarms < 40
