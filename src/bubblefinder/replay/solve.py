"""The factor on the costs that gives a known step, by regula falsi (the Illinois variant)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_ROUNDS: Final = 40
_CLOSE_NS: Final = 1.0


def solve(step_ns: Callable[[float], float], wanted_ns: float, limit: float) -> float:
    """Return the factor at which `step_ns` gives `wanted_ns`, or the limit where that is out of reach.

    Args:
        step_ns: corrected step by factor; falls as the factor grows, and is the traced step at 0.
        wanted_ns: the untraced step. Above the traced step the factor is negative: tracing made the run faster.
        limit: largest factor, of either sign, that is believed.
    """
    near, far = 0.0, 0.0
    near_miss = step_ns(near) - wanted_ns
    if abs(near_miss) < _CLOSE_NS:
        return near
    far = limit if near_miss > 0 else -limit
    far_miss = step_ns(far) - wanted_ns
    if far_miss * near_miss > 0:
        return far
    for _ in range(_ROUNDS):
        middle = far - far_miss * (far - near) / (far_miss - near_miss)
        miss = step_ns(middle) - wanted_ns
        if abs(miss) < _CLOSE_NS:
            return middle
        if miss * far_miss < 0:
            near, near_miss = far, far_miss
        else:
            near_miss /= 2
        far, far_miss = middle, miss
    return far
