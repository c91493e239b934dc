"""The mean of several captures' accounts."""

from __future__ import annotations

import pytest

from bubblefinder.compare.delta.side import side_of
from tests.unit.compare.delta.accounts import US, a_call, a_role, an_account, an_eager, an_idle


def test_captures_are_averaged() -> None:
    slow = an_account([a_role([0, 1], us=10)], idle=[an_idle(40)], eager=[an_eager(2, 4)], calls=[a_call("x", 4)])
    fast = an_account([a_role([0, 1], us=6)], idle=[an_idle(20)], calls=[a_call("x", 2)])
    side = side_of([slow, fast])
    assert side.mean_ns == pytest.approx(48 * US)
    assert side.roles["verify"].cost_ns.tolist() == [8 * US, 8 * US]
    assert [idle.ns for idle in side.idle.values()] == [30 * US]
    assert side.eager["gate"].cost_ns == 2 * US
    assert side.calls["x", None, False].p50_ns == 3 * US


def test_a_capture_that_replays_another_graph_is_only_in_the_mean() -> None:
    usual = an_account([a_role([0, 1])])
    other = an_account([a_role([0, 1, 2, 3])])
    side = side_of([usual, usual, other])
    assert side.roles["verify"].names == ("norm", "qkv")
    assert side.mean_ns == pytest.approx((16 + 16 + 32) / 3 * US)
