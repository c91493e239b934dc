"""Predictions in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.replay.bound import Bound
from bubblefinder.units import duration, share

if TYPE_CHECKING:
    from bubblefinder.replay.doubt import Estimate

BOUNDS: Final = {
    Bound.GPU: "the GPU's own work bounds the step",
    Bound.HOST: "the host's own work bounds the step",
    Bound.WAIT: "host and GPU take turns, since the host waits for the GPU in every step",
}
NOTHING: Final = 0.002
"""A gain below this share of the step is said to be none."""


def sentence(estimate: Estimate, *, why: bool = True) -> str:
    """Return in one or two sentences what a change gives: the step then, or the range of the gain alone, and why."""
    then = estimate.value
    if then is None:
        low, high = estimate.gain_range_ns
        if high < NOTHING * estimate.then.now_ns:
            return f"Almost nothing to gain: {duration(high)} of the step at most."
        gain = f"between {duration(low)} and {duration(high)}"
        return f"The step loses {gain}{f': {doubt_words(estimate.doubt.profilers_ns)}' if why else ''}."
    bound, step = f"Then {BOUNDS[then.bound]}.", f"{duration(then.step_ns)}{_ends(estimate.step_range_ns)}"
    most = estimate.gain_range_ns[1]
    if then.recoverable_ns < NOTHING * then.now_ns:
        sure = f" for sure, and up to {duration(most)} on another host" if most >= NOTHING * then.now_ns else ""
        return f"Almost nothing to gain{sure}: the step stays at {step}. {bound}"
    part = share(then.recoverable_ns / then.now_ns)
    gain = f"{duration(then.recoverable_ns)} ({part}{_ends(estimate.gain_range_ns, '; {} on any one host')})"
    return f"The step goes from {duration(then.now_ns)} to {step}, {gain} less. {bound}"


def doubt_words(profilers_ns: int | None) -> str:
    """Return why there is no value: how much of the step may be the profiler's, as far as that is known."""
    most = f"up to {duration(profilers_ns)}" if profilers_ns else "part"
    return f"{most} of the traced step may be the profiler's own time"


def _ends(ends: tuple[int, int], said: str = " ({} between runs)") -> str:
    """Return a range in words, where it is wider than the digits shown."""
    low, high = (duration(end) for end in ends)
    return "" if low == high else said.format(f"{low} to {high}")


def tokens_per_second(step_ns: int, accept_length: float) -> float:
    """Return tokens a second for one sequence: the accept length over the step."""
    return accept_length / (step_ns / 1e9)
