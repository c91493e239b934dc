"""What bounds a step: the chain of moments that each came last, followed back from the end."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.replay.model import Lag

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.replay.changes import Draft

_HOST: Final = (Lag.SEGMENT, Lag.CALL, Lag.LAUNCH, Lag.HANDOVER)
_MOSTLY: Final = 0.5


class Bound(StrEnum):
    """What the time of the steps is made of, on the chain of moments that decides it."""

    GPU = "GPU"
    """Work of the GPU, back to back: the host is ahead."""
    HOST = "host"
    """Work of the host: the GPU waits for it."""
    WAIT = "wait"
    """Both in turn, since the host waits for the GPU in every step."""


def bound_of(draft: Draft, times: Ints, begin: int, end: int, steps: int) -> Bound:
    """Return what bounds the steps between two moments.

    Args:
        draft: the lags that were replayed.
        times: when each moment came.
        begin: first moment of the first step.
        end: first moment after the last.
        steps: how many steps there are between them.
    """
    spent, returns = _decisive(draft, times, begin, end)
    if returns > _MOSTLY * steps:
        return Bound.WAIT
    host = sum(spent[kind] for kind in _HOST)
    return Bound.HOST if host > _MOSTLY * spent.sum() else Bound.GPU


def _decisive(draft: Draft, times: Ints, begin: int, end: int) -> tuple[Ints, int]:
    """Follow the decisive dependencies back; return the time on them by kind, and how many waits return on them."""
    arcs = draft.model.arcs
    tight = np.flatnonzero(draft.keep & (times[arcs.source] + draft.lag == times[arcs.target]))
    decisive = np.full(len(times), -1)
    decisive[arcs.target[tight]] = tight
    spent, returns = np.zeros(len(Lag), np.int64), 0
    source, kind = arcs.source.tolist(), arcs.kind.tolist()
    moment, chosen = end, decisive.tolist()
    while moment > begin and (arc := chosen[moment]) >= 0:
        spent[kind[arc]] += draft.lag[arc]
        returns += kind[arc] == Lag.AWAIT
        moment = source[arc]
    return spent, returns
