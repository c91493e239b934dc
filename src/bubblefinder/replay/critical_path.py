"""What bounds a step: the chain of nodes that each came last, followed back from the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.replay.bound import Bound
from bubblefinder.replay.model import EdgeKind

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.replay.changes import EditedGraph
    from bubblefinder.replay.model import TimedSteps

_HOST: Final = (EdgeKind.SEGMENT, EdgeKind.CALL, EdgeKind.LAUNCH, EdgeKind.HANDOVER)
_MOSTLY: Final = 0.5


@dataclass(frozen=True, slots=True)
class Decisive:
    """For each node the dependency that came last, -1 for none; and source, kind and lag of every dependency."""

    chosen: list[int]
    source: list[int]
    kind: list[int]
    lag: list[int]


def decisive_edges(edited: EditedGraph, times: Ints) -> Decisive:
    """Return the dependency that decided when each node came.

    Args:
        edited: the lags that were replayed.
        times: when each node came.
    """
    edges = edited.model.edges
    tight = np.flatnonzero(edited.keep & (times[edges.source] + edited.lag == times[edges.target]))
    chosen = np.full(len(times), -1)
    chosen[edges.target[tight]] = tight
    return Decisive(*(column.tolist() for column in (chosen, edges.source, edges.kind, edited.lag)))


def bound_of(decisive: Decisive, steps: TimedSteps) -> Bound:
    """Return what bounds the steps of a rank."""
    spent, returns = _followed(decisive, int(steps.begin[0]), int(steps.end[-1]))
    if returns > _MOSTLY * len(steps):
        return Bound.WAIT
    host = sum(spent[kind] for kind in _HOST)
    return Bound.HOST if host > _MOSTLY * sum(spent) else Bound.GPU


def _followed(decisive: Decisive, begin: int, end: int) -> tuple[list[int], int]:
    """Follow the decisive dependencies back; return the time on them by kind, and how many waits return on them."""
    spent, returns, node = [0] * len(EdgeKind), 0, end
    while node > begin and (edge := decisive.chosen[node]) >= 0:
        kind = decisive.kind[edge]
        spent[kind] += decisive.lag[edge]
        returns += kind == EdgeKind.AWAIT
        node = decisive.source[edge]
    return spent, returns
