"""The recurrence itself: when every node comes, given the lags."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.replay.model import Model


def replay(model: Model, lag: Ints, keep: Bools) -> Ints:
    """Return when each node comes.

    Args:
        model: the recorded run.
        lag: the lag of each dependency.
        keep: which dependencies hold; a node left without any keeps its recorded time.
    """
    times: list[int] = model.recorded.tolist()
    source: list[int] = model.edges.source[keep].tolist()
    lags: list[int] = lag[keep].tolist()
    previous = -1
    for position, target in enumerate(model.edges.target[keep].tolist()):
        time = times[source[position]] + lags[position]
        if target != previous or time > times[target]:
            times[target] = time
            previous = target
    return np.array(times, np.int64)
