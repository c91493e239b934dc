"""Which role of one side is which of the other, and which node: as few as possible exchanged, put in or left out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from bubblefinder.compare.delta.side import Nodes

NOBODY: Final = -1
EXCHANGED: Final = 1.0
MISSING: Final = 0.75
"""A node put in or left out costs more than half of one exchanged: another kernel in the same place is an exchange."""
ALIKE: Final = 0.5
"""Roles of other names are one if they share more than this of their kernels; so are a role and eager work."""
MOST_CELLS: Final = 50_000_000
"""Beyond so many pairs of nodes the k-th node of a name is laid beside the k-th of that name."""

_SIDE, _LEFT, _RIGHT = 0, 1, 2


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


def aligned(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return pairs of positions in order, one of them -1 where the other side has no node there.

    Needleman and Wunsch's alignment (J. Mol. Biol. 48, 1970) of what is left between the common begin and end.
    """
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    left, right = before[start : len(before) - end], after[start : len(after) - end]
    inner = _by_cost(left, right) if len(left) * len(right) <= MOST_CELLS else _by_name(left, right)
    shifted = [(a + start if a >= 0 else a, b + start if b >= 0 else b) for a, b in inner]
    tail = [(len(before) - end + k, len(after) - end + k) for k in range(end)]
    return [*((k, k) for k in range(start)), *shifted, *tail]


def _common(before: Sequence[Hashable], after: Sequence[Hashable]) -> int:
    """Return how many nodes both begin with."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((k for k, (a, b) in pairs if a != b), min(len(before), len(after)))


def _by_cost(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[tuple[int, int]]:
    moves = _moves(before, after)
    pairs, i, j = list[tuple[int, int]](), len(before), len(after)
    while i or j:
        move = _LEFT if not j else _RIGHT if not i else int(moves[i, j])
        i, j = i - (move != _RIGHT), j - (move != _LEFT)
        pairs.append((NOBODY if move == _RIGHT else i, NOBODY if move == _LEFT else j))
    return pairs[::-1]


def _moves(before: Sequence[Hashable], after: Sequence[Hashable]) -> NDArray[np.int8]:
    """Return the last move of the cheapest alignment of each pair of beginnings, one diagonal after another."""
    ids: dict[Hashable, int] = {}
    left, right = (np.array([0, *(ids.setdefault(n, len(ids) + 1) for n in side)]) for side in (before, after))
    rows, columns = len(before), len(after)
    moves = np.zeros((rows + 1, columns + 1), np.int8)
    last = np.full(rows + 1, np.inf)
    older = last.copy()
    last[0] = 0.0
    for diagonal in range(1, rows + columns + 1):
        i = np.arange(max(0, diagonal - columns), min(rows, diagonal) + 1)
        j = diagonal - i
        above = np.maximum(i - 1, 0)
        side = np.where((i > 0) & (j > 0), older[above] + np.where(left[i] == right[j], 0.0, EXCHANGED), np.inf)
        leave = np.where(i > 0, last[above] + MISSING, np.inf)
        put = np.where(j > 0, last[i] + MISSING, np.inf)
        best = np.minimum(side, np.minimum(leave, put))
        moves[i, j] = np.where(side == best, _SIDE, np.where(leave == best, _LEFT, _RIGHT))
        older, last = last, np.full(rows + 1, np.inf)
        last[i] = best
    return moves


def _by_name(before: Sequence[Hashable], after: Sequence[Hashable]) -> list[tuple[int, int]]:
    places: dict[Hashable, list[int]] = {}
    for position, name in enumerate(after):
        places.setdefault(name, []).append(position)
    free = {name: iter(positions) for name, positions in places.items()}
    pairs = [(position, next(free.get(name, iter(())), NOBODY)) for position, name in enumerate(before)]
    taken = {b for _, b in pairs}
    return pairs + [(NOBODY, position) for position in range(len(after)) if position not in taken]
