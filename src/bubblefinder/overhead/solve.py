"""The factor on the costs that gives a known step."""

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
    miss = step_ns(0.0) - wanted_ns
    if abs(miss) < _CLOSE_NS:
        return 0.0
    near, far = 0.0, limit if miss > 0 else -limit
    if (step_ns(far) - wanted_ns) * miss > 0:
        return far
    for _ in range(_ROUNDS):
        middle = (near + far) / 2
        left = step_ns(middle) - wanted_ns
        if abs(left) < _CLOSE_NS:
            return middle
        near, far = (middle, far) if left * miss > 0 else (near, middle)
    return (near + far) / 2
