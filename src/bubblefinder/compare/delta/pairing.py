"""Which role of one side is which of the other."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bubblefinder.compare.delta.side import Nodes

ALIKE: Final = 0.5
"""Roles of other names are one if they share more than this of their kernels; so are a role and eager work."""


def paired(base: Mapping[str | None, Nodes], head: Mapping[str | None, Nodes]) -> list[tuple[str | None, str | None]]:
    """Return which role of head is which of base: by name, and what is left by the kernels it plays."""
    pairs = [(role, role) for role in base if role in head and alike(base[role], head[role]) > 0]
    for role, nodes in base.items():
        free = [other for other in head if other not in {pair[1] for pair in pairs}]
        if role in {pair[0] for pair in pairs} or not free:
            continue
        best = max(free, key=lambda other, nodes=nodes: alike(nodes, head[other]))  # type: ignore[misc]
        if alike(nodes, head[best]) > ALIKE:
            pairs.append((role, best))
    return pairs


def alike(one: Nodes, other: Nodes) -> float:
    """Return which share of the longer sequence's kernels both have."""
    common = (Counter(one.names) & Counter(other.names)).total()
    return common / max(len(one.names), len(other.names), 1)
