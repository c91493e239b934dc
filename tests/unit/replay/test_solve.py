from __future__ import annotations

import pytest

from bubblefinder.replay.solve import solve


def step(factor: float) -> float:
    return max(7_000.0 - 300.0 * factor, 6_000.0)


@pytest.mark.parametrize(("wanted", "factor"), [(7_000, 0.0), (6_700, 1.0), (6_400, 2.0), (7_300, -1.0)])
def test_the_factor_that_gives_the_step(wanted: float, factor: float) -> None:
    assert solve(step, wanted, limit=2.5) == pytest.approx(factor, abs=0.01)


def test_a_step_out_of_reach_gives_the_limit() -> None:
    assert solve(step, 5_000, limit=2.5) == 2.5
    assert solve(step, 9_000, limit=2.5) == -2.5
