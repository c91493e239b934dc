"""The interval that the steps of one capture leave for their median."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.compare.bootstrap import _quantiles, interval


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=60), st.sampled_from([0.5, 0.95]))
def test_the_interval_lies_within_the_steps_and_repeats(samples: list[int], quantile: float) -> None:
    bounds = interval(samples, quantile)
    assert bounds is not None
    assert min(samples) <= bounds[0] <= bounds[1] <= max(samples)
    assert interval(samples, quantile) == bounds


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=30), st.sampled_from([0.05, 0.5, 0.9, 0.95]))
def test_its_percentiles_are_numpys_to_the_last_bit(samples: list[int], quantile: float) -> None:
    steps, drawn = np.array(samples), np.random.default_rng(6).choice(len(samples), size=(20, len(samples)))
    assert (_quantiles(steps, drawn, quantile) == np.quantile(steps[drawn], quantile, axis=1)).all()


def test_more_steps_than_sixteen_bits_count_are_ranked_too() -> None:
    steps = np.random.default_rng(6).permutation(40_000) + 10**9
    drawn = np.arange(40_000).reshape(4, -1)
    assert (_quantiles(steps, drawn, 0.95) == np.quantile(steps[drawn], 0.95, axis=1)).all()


@pytest.mark.parametrize("quantile", [0.5, 0.95, None])
def test_steps_that_are_all_alike_pin_it_down(quantile: float | None) -> None:
    assert interval([7_000_001] * 40, quantile) == (7_000_001.0, 7_000_001.0)


def test_one_step_has_no_interval() -> None:
    assert interval([5], 0.5) is None
    assert interval([], 0.5) is None


def test_the_interval_covers_the_true_median() -> None:
    noise = np.random.default_rng(3)
    covered = 0
    for _ in range(200):
        low, high = interval([int(v) for v in noise.normal(1e6, 1e4, 30)], 0.5) or (0, 0)
        covered += low <= 1e6 <= high
    assert covered >= 170


def test_slow_drift_widens_the_interval() -> None:
    noise = np.random.default_rng(4)
    independent = noise.normal(0, 1e4, 64)
    walk = np.repeat(noise.normal(0, 1e4, 16), 4)
    widths = [(b[1] - b[0]) for s in (independent, walk) if (b := interval([int(1e6 + v) for v in s], 0.5))]
    assert widths[1] > 1.2 * widths[0]


def test_long_captures_have_narrow_intervals_in_little_memory() -> None:
    noise = np.random.default_rng(5)
    samples = [int(v) for v in noise.normal(1e6, 1e4, 40_000)]
    short, long = interval(samples[:900], 0.5), interval(samples, 0.5)
    assert short is not None
    assert long is not None
    assert (long[1] - long[0]) < 0.4 * (short[1] - short[0])
