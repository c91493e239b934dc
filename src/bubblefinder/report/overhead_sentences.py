"""What the profiler added, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubblefinder.units import NS_PER_US, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.overhead.model import Overhead

_SHARES = (("intra_graph", "inside graphs"), ("inter_graph", "outside graphs"))
_COSTS = (
    ("kernel_node_ns", "a kernel node"),
    ("memset_node_ns", "a memset node"),
    ("replay_ns", "a graph replay"),
    ("eager_operation_ns", "an eager launch on the GPU"),
    ("kernel_call_ns", "a launch call on the host"),
)


def overhead_sentences(overhead: Overhead) -> Iterator[str]:
    """Say what the profiler added, within what range, what is idle without it, and what has no explanation."""
    if overhead.message:
        yield overhead.message
    if overhead.method == "none":
        return
    low, high = (duration(limit) for limit in overhead.range_ns or (None, None))
    if low != high:
        yield f"The step without the profiler lies between {low} and {high}."
    yield from _shares(overhead)
    yield from _costs(overhead)
    if overhead.unexplained_ns and abs(overhead.unexplained_ns) >= NS_PER_US:
        yield f"{duration(overhead.unexplained_ns)} a step has no place in the model: read it as unexplained."


def _shares(overhead: Overhead) -> Iterator[str]:
    ratios, ranges = overhead.corrected_bubble_share, overhead.corrected_bubble_share_range
    if ratios is None:
        return
    told = [
        f"{label} {_within(getattr(ratios, name), *map(share, spread))}"
        for name, label in _SHARES
        if (spread := ranges.get(name))
    ]
    if told:
        yield f"Idle without the profiler: {', '.join(told)}."


def _within(value: float | None, low: str, high: str) -> str:
    if value is None:
        return f"anywhere in {low} to {high}"
    return share(value) if low == high else f"{share(value)} ({low} to {high})"


def _costs(overhead: Overhead) -> Iterator[str]:
    told = [
        f"{label} {duration(cost['value'])} ({duration(cost['low'])} to {duration(cost['high'])})"
        for name, label in _COSTS
        if isinstance(cost := overhead.parameters.get(name), dict)
    ]
    if told:
        yield f"Costs used, with their range: {', '.join(told)}."
