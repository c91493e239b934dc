"""Two sequences of node names laid side by side, with as few nodes exchanged, put in or left out as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

NOBODY: Final = -1
EXCHANGED: Final = 1.0
MISSING: Final = 0.75
"""A node put in or left out costs more than half of one exchanged: another kernel in the same place is an exchange."""
MOST_CELLS: Final = 50_000_000
"""Beyond so many pairs of nodes the k-th node of a name is laid beside the k-th of that name."""

_SIDE, _LEFT, _RIGHT = 0, 1, 2


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
