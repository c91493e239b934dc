"""The recurrence itself: when every node comes, given the lags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.replay.model import Model


_NEVER: Final = -(1 << 62)
"""Before any time: what a dependency that doesn't hold asks for."""


def replay(model: Model, lag: Ints, keep: Bools) -> Ints:
    """Return when each node comes.

    Args:
        model: the recorded run.
        lag: the lag of each dependency.
        keep: which dependencies hold; a node left without any keeps its recorded time.
    """
    held = np.zeros(len(model.recorded), np.bool_)
    held[model.edges.target[keep]] = True
    times: list[int] = np.where(held, _NEVER, model.recorded).tolist()
    for source, target, after in zip(*model.dependencies, np.where(keep, lag, _NEVER).tolist(), strict=True):
        time = times[source] + after
        if time > times[target]:  # noqa: PLR1730 - a call of max() here makes every replay a third longer
            times[target] = time
    return np.array(times, np.int64)
