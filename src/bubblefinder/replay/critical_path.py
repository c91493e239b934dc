"""What bounds a step: the chain of nodes that each came last, followed back from the end."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.replay.model import EdgeKind

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.replay.changes import EditedGraph

_HOST: Final = (EdgeKind.SEGMENT, EdgeKind.CALL, EdgeKind.LAUNCH, EdgeKind.HANDOVER)
_MOSTLY: Final = 0.5


class Bound(StrEnum):
    """What the time of the steps is made of, on the chain of nodes that decides it."""

    GPU = "GPU"
    """Work of the GPU, back to back: the host is ahead."""
    HOST = "host"
    """Work of the host: the GPU waits for it."""
    WAIT = "wait"
    """Both in turn, since the host waits for the GPU in every step."""


def bound_of(edited: EditedGraph, times: Ints, begin: int, end: int, steps: int) -> Bound:
    """Return what bounds the steps between two nodes.

    Args:
        edited: the lags that were replayed.
        times: when each node came.
        begin: first node of the first step.
        end: first node after the last.
        steps: how many steps there are between them.
    """
    spent, returns = _decisive(edited, times, begin, end)
    if returns > _MOSTLY * steps:
        return Bound.WAIT
    host = sum(spent[kind] for kind in _HOST)
    return Bound.HOST if host > _MOSTLY * spent.sum() else Bound.GPU


def _decisive(edited: EditedGraph, times: Ints, begin: int, end: int) -> tuple[Ints, int]:
    """Follow the decisive dependencies back; return the time on them by kind, and how many waits return on them."""
    edges = edited.model.edges
    tight = np.flatnonzero(edited.keep & (times[edges.source] + edited.lag == times[edges.target]))
    decisive = np.full(len(times), -1)
    decisive[edges.target[tight]] = tight
    spent, returns = np.zeros(len(EdgeKind), np.int64), 0
    source, kind = edges.source.tolist(), edges.kind.tolist()
    node, chosen = end, decisive.tolist()
    while node > begin and (edge := chosen[node]) >= 0:
        spent[kind[edge]] += edited.lag[edge]
        returns += kind[edge] == EdgeKind.AWAIT
        node = source[edge]
    return spent, returns
