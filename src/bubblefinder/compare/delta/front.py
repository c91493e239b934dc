"""By how much longer every node of a replay waits to begin, whatever it is: the tracer or the driver, not a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.compare.delta.align import NOBODY, aligned
from bubblefinder.compare.delta.pairing import paired

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.compare.delta.side import Nodes, Side

FEWEST: Final = 20
"""Nodes that must be there; a handful may have come to wait alike for one reason of their own."""
SMALLEST_NS: Final = 100
"""Three steps of the GPU's clock of 32 ns; the gaps of two processes agree on average within one."""
ALIKE: Final = 0.5
MOST: Final = 0.8
"""Of the nodes wait longer by the middle, give or take half of it; 95 % did where one process in six differed."""


def later_ns(base: Side, head: Side) -> float:
    """Return how much later each node begins on head than on base, negative if sooner; 0 if nodes differ in that.

    Two processes of one program, captured with their nodes, can differ by a third of a microsecond in front of every
    node, and by 8 % of the step, with kernels that take the same time and with steps that are alike untraced. Nodes
    that overlapped with the one before them don't count: losing that is a change of the program.
    """
    more = np.array([gap for pair in paired(base.roles, head.roles) for gap in _gaps(base, head, pair)])
    if len(more) < FEWEST:
        return 0.0
    middle = float(np.median(more))
    like = np.abs(more - middle) <= ALIKE * abs(middle)
    return middle if abs(middle) >= SMALLEST_NS and like.mean() >= MOST else 0.0


def nodes_waiting(side: Side) -> float:
    """Return how many nodes a step replays."""
    return float(sum(nodes.count.sum() for nodes in side.roles.values()))


def _gaps(base: Side, head: Side, pair: tuple[str | None, str | None]) -> Iterator[float]:
    """Yield by how much the gap in front of each node that both sides have is longer each time."""
    before, after = base.roles[pair[0]], head.roles[pair[1]]
    for k, j in aligned(before.names, after.names):
        if NOBODY in {k, j} or before.names[k] != after.names[j] or before.early_ns[k] > 0 or after.early_ns[j] > 0:
            continue
        yield _gap(after, j) - _gap(before, k)


def _gap(nodes: Nodes, k: int) -> float:
    return float(nodes.gap_ns[k] / nodes.count[k]) if nodes.count[k] else 0.0
