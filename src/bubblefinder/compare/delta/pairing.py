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
    """Return which role of head is which of base: by name, and what is left by the kernels it plays, likest first.

    Where the inside of replays is not in the capture all are alike: then those are one that take most nearly as long.
    """
    pairs = [(role, role) for role in base if role in head and alike(base[role], head[role]) > 0]
    named = {role for role, _ in pairs}
    found = [
        (alike(nodes, others), -abs(nodes.total_ns - others.total_ns), (role, other))
        for role, nodes in base.items()
        for other, others in head.items()
        if role not in named and other not in named
    ]
    for share, _, (role, other) in sorted(found, key=lambda one: one[:2], reverse=True):
        if share > ALIKE and not any(role == one or other == two for one, two in pairs):
            pairs.append((role, other))
    return pairs


def alike(one: Nodes, other: Nodes) -> float:
    """Return which share of the longer sequence's kernels both have."""
    common = (Counter(one.names) & Counter(other.names)).total()
    return common / max(len(one.names), len(other.names), 1)
