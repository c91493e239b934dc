"""The recurrence itself: when every node comes, given the lags."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.replay.chains import chains_of

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.replay.chains import Chains
    from bubblefinder.replay.model import Edges, Model


_NEVER: Final = -(1 << 62)
"""Before any time: what a dependency that doesn't hold asks for."""


def replay(model: Model, lag: Ints, keep: Bools) -> Ints:
    """Return when each node comes.

    Args:
        model: the recorded run.
        lag: the lag of each dependency.
        keep: which dependencies hold; a node left without any keeps its recorded time.
    """
    edges, nodes = model.edges, len(model.recorded)
    chains = model.chains if keep[model.chains.alone].all() else chains_of(nodes, edges.source, edges.target, keep)
    after_first = _after_first(chains, edges, lag)
    held = np.zeros(nodes, np.bool_)
    held[edges.target[keep]] = True
    times: list[int] = np.where(held, _NEVER, model.recorded)[chains.first].tolist()
    after = np.where(keep, lag, _NEVER)[chains.joining] + after_first[edges.source[chains.joining]]
    for source, target, least in zip(chains.source, chains.target, after.tolist(), strict=True):
        time = times[source] + least
        if time > times[target]:  # noqa: PLR1730 - a call of max() here makes every replay a third longer
            times[target] = time
    return np.array(times, np.int64)[chains.row] + after_first


def _after_first(chains: Chains, edges: Edges, lag: Ints) -> Ints:
    """Return how long after the first of its row each node comes."""
    step = np.zeros(len(chains.row), np.int64)
    step[edges.target[chains.alone]] = lag[chains.alone]
    sums = np.cumsum(step[chains.order])
    found = np.empty_like(step)
    found[chains.order] = sums
    return found - sums[chains.start]
