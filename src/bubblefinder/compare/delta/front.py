"""By how much longer every node of a replay waits to begin, whatever it is: the tracer or the driver, not a kernel."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bubblefinder.compare.delta.align import NOBODY, aligned, paired

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.compare.delta.side import Nodes, Side

FEWEST: Final = 20
FEWEST_NAMES: Final = 4
"""Nodes, and kernels of different names among them, that must be there: what one kernel does is its own."""
MOST: Final = 0.8
"""Of the nodes, and of the names, begin later, all by about as much."""
ABOUT: Final = 0.5
CLOCK_NS: Final = 64
"""About as much: this share of the middle more or less, or two steps of the GPU's clock, by which the gaps of two
processes of one program differ. So a middle of 30 ns is told from nothing, by its sign, and half the nodes from all."""
SEEN_NS: Final = 500
"""The most that tracing was seen to move the begin of a node between two captures: from 0.17 us sooner than untraced,
where the GPU then runs ahead of what it does alone, to 0.3 us later; see docs/overhead.md."""
OVERLAPS: Final = 0.05
"""A node runs beside the one before it if it does so for this share of its time: below lie the clock's steps."""
LOST: Final = 0.2
"""Of that overlap less than this is left where it was lost."""


class _Both(NamedTuple):
    """The nodes that two roles have in common: their names, and their positions on either side."""

    names: list[str]
    base: NDArray[np.intp]
    head: NDArray[np.intp]


def later_ns(base: Side, head: Side) -> float:
    """Return how much later each node begins on head than on base, negative if sooner; 0 if nodes differ in that.

    A node begins where the one before it ends: a gap behind that is later, an overlap sooner. Two processes of one
    program, captured with their nodes, can differ by a third of a microsecond in front of every node, and by 8 % of the
    step, with kernels that take the same time and with steps that are alike untraced. The middle of all nodes says
    by how much; what single kernels do besides is a change of the program, and so it is if half of them overlapped with
    the one before them for longer than any tracer makes them wait, and no longer do; or at all, where they begin later
    by more than any tracer makes them.
    """
    pairs = [(base.roles[role], head.roles[other]) for role, other in paired(base.roles, head.roles)]
    both = [_in_common(*pair) for pair in pairs]
    names = [name for one in both for name in one.names]
    if len(names) < FEWEST or len(set(names)) < FEWEST_NAMES:
        return 0.0
    more = np.concatenate(
        [_front(after, k.head) - _front(before, k.base) for (before, after), k in zip(pairs, both, strict=True)]
    )
    middle = float(np.median(more))
    least = SEEN_NS if abs(middle) <= SEEN_NS else CLOCK_NS
    unlike = sum(np.count_nonzero(overlap(*pair, k.base, k.head, least)) for pair, k in zip(pairs, both, strict=True))
    kernels, which = np.unique(names, return_inverse=True)
    by_name = np.array([np.median(more[which == number]) for number in range(len(kernels))])
    alike = all(_alike(values, middle) >= MOST for values in (more, by_name))
    return middle if alike and 2 * unlike <= len(names) else 0.0


def _alike(more: NDArray[np.float64], middle: float) -> float:
    about = np.abs(more - middle) <= max(ABOUT * abs(middle), CLOCK_NS)
    return float((about & (more * middle > 0)).mean())


def overlap_changed(base: Side, head: Side, least_ns: float) -> bool:
    """Tell whether some node of both sides ran beside the one before it, for longer than this, on one of them alone."""
    pairs = [(base.roles[role], head.roles[other]) for role, other in paired(base.roles, head.roles)]
    return any(overlap(*pair, *_in_common(*pair)[1:], least_ns).any() for pair in pairs)


def overlap(base: Nodes, head: Nodes, k: NDArray[np.intp], j: NDArray[np.intp], least_ns: float) -> NDArray[np.int8]:
    """Return -1 for each node that no longer begins before the one before it ends, 1 for one that does now, else 0.

    The nodes of a role are at positions k on base and j on head; an overlap is longer than `least_ns` a node.
    """
    before, after = base.early_ns[k], head.early_ns[j]
    lost = (before > np.maximum(OVERLAPS * base.ran_ns[k], least_ns * base.count[k])) & (after < LOST * before)
    gained = (after > np.maximum(OVERLAPS * head.ran_ns[j], least_ns * head.count[j])) & (before < LOST * after)
    return gained.astype(np.int8) - lost.astype(np.int8)


def held_back(side: Side, ns: float) -> dict[str | None, float]:
    """Return by role what a step takes longer because every node begins so much later.

    No node is held back for longer than the GPU waits for it: one that overlaps with another ends when it would.
    """
    return {role: float(_held(nodes, ns).sum()) for role, nodes in side.roles.items()}


def brought_forward(side: Side, ns: float) -> Side:
    """Return a side as if every node began so much sooner."""
    roles = {
        role: replace(nodes, cost_ns=nodes.cost_ns - _held(nodes, ns), gap_ns=nodes.gap_ns - _held(nodes, ns))
        for role, nodes in side.roles.items()
    }
    return replace(side, roles=roles) if ns else side


def _held(nodes: Nodes, ns: float) -> NDArray[np.float64]:
    return np.minimum(ns * nodes.count, nodes.gap_ns)


def _in_common(before: Nodes, after: Nodes) -> _Both:
    places = [
        (k, j)
        for k, j in aligned(before.names, after.names)
        if NOBODY not in {k, j} and before.names[k] == after.names[j] and before.count[k] and after.count[j]
    ]
    base, head = (np.array([place[side] for place in places], np.intp) for side in (0, 1))
    return _Both([before.names[k] for k, _ in places], base, head)


def _front(nodes: Nodes, k: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return how long after the end of the one before it each node begins, each time."""
    front: NDArray[np.float64] = (nodes.gap_ns[k] - nodes.early_ns[k]) / nodes.count[k]
    return front
