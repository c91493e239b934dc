"""Small kernels that follow each other again and again inside a replay: what fusing them could give at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.causes.thresholds import FEWEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints

    Floats = NDArray[np.float64]

_MOST: Final = 4
_TRIED: Final = 16
"""Pairs of names that are looked at, those with most to give first."""


@dataclass(frozen=True, slots=True)
class SpanKernels:
    """The kernels of some replays or eager phases, one value each, in order.

    Attributes:
        span: which of them each is in.
        stream: a number of its stream.
        starts: when it begins.
        ends: when it ends.
        name: position of its name in `names`.
        names: what kernels are called, as people read it, each once.
        spans: how many replays or phases these are.
    """

    span: Ints
    stream: Ints
    starts: Ints
    ends: Ints
    name: Ints
    names: Sequence[str]
    spans: int


@dataclass(frozen=True, slots=True)
class Tandem:
    """Two kernels that run one behind the other: how often in a span, and what fusing each time gives there at most."""

    first: str
    second: str
    count: float
    saved_ns: float


def find_tandems(kernels: SpanKernels, small_ns: int, node_ns: float) -> tuple[Tandem, ...]:
    """Return the tandems that come often in a span, those that could give most first; no kernel is in two of them.

    A fused kernel takes at least as long as the longer of the two, so that fusing saves at most the gap between them
    and the shorter one.

    Args:
        kernels: the kernels of some spans.
        small_ns: only kernels shorter than that, and less apart: what comes later waits for something else.
        node_ns: what the profiler adds to a kernel of its own, which isn't there to be saved.
    """
    order = np.lexsort((kernels.stream, kernels.span))
    span, stream, name = kernels.span[order], kernels.stream[order], kernels.name[order]
    starts, ends = kernels.starts[order], kernels.ends[order]
    lengths = ends - starts
    gap = np.maximum(starts[1:] - ends[:-1], 0)
    near = (span[1:] == span[:-1]) & (stream[1:] == stream[:-1])
    near &= (np.maximum(lengths[1:], lengths[:-1]) < small_ns) & (gap < small_ns)
    saved = np.maximum(gap + np.minimum(lengths[1:], lengths[:-1]) - node_ns, 0.0)[near]
    second = np.flatnonzero(near) + 1
    pairs = name[second - 1] * len(kernels.names) + name[second]
    found = _apart(second, saved, _often(pairs, saved, kernels), kernels)
    return tuple(sorted(found, key=lambda one: -one.saved_ns)[:_MOST])


def _often(pairs: Ints, saved: Floats, kernels: SpanKernels) -> Iterator[tuple[str, str, Bools]]:
    """Yield the pairs of names that come often and where each does, those that could give most first."""
    known, place, count = np.unique(pairs, return_inverse=True, return_counts=True)
    total = np.bincount(place, saved, minlength=len(known))
    names = [(kernels.names[pair // len(kernels.names)], kernels.names[pair % len(kernels.names)]) for pair in known]
    often = np.flatnonzero(count >= FEWEST * kernels.spans).tolist()
    for one in sorted(often, key=lambda one: (-total[one], names[one]))[:_TRIED]:
        yield *names[one], place == one


def _apart(
    second: Ints, saved: Floats, pairs: Iterator[tuple[str, str, Bools]], kernels: SpanKernels
) -> Iterator[Tandem]:
    """Yield the pairs, each kernel given to the first that wants it."""
    taken = np.zeros(len(kernels.name), np.bool_)
    for before, name, mine in pairs:
        free = mine & ~taken[second] & ~taken[second - 1]
        chosen = _every_other(second[free])
        if len(chosen) < FEWEST * kernels.spans:
            continue
        taken[chosen] = taken[chosen - 1] = True
        total = float(saved[mine & np.isin(second, chosen)].sum())
        yield Tandem(before, name, len(chosen) / kernels.spans, total / kernels.spans)


def _every_other(second: Ints) -> Ints:
    """Leave out what overlaps the pair before: of a run of one kernel every second pair stays."""
    run = np.cumsum(np.diff(second, prepend=-2) != 1)
    first = np.searchsorted(run, run)
    chosen: Ints = second[(np.arange(len(second)) - first) % 2 == 0]
    return chosen
