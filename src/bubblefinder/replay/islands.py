"""Processes that wait for each other, and changes to the others' hosts that can be replayed at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from bubblefinder.intervals import one_of
from bubblefinder.replay.changes import ShortenHost
from bubblefinder.replay.model import EdgeKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bubblefinder.replay.model import Model
    from bubblefinder.timeline.rank import Rank

_Found = TypeVar("_Found")
_OF_CALLS = (EdgeKind.SEGMENT, EdgeKind.CALL, EdgeKind.AWAIT, EdgeKind.HANDOVER)


def islands_of(model: Model) -> dict[int, int]:
    """Return for each process the least of those that any dependency ties it to, at once or by way of others."""
    edges, calls = model.edges, one_of(model.edges.kind, _OF_CALLS)
    process = np.zeros(len(edges.owner), np.int64)
    process[calls] = model.calls["process"].to_numpy()[edges.owner[calls]]
    process[~calls] = model.blocks["process"].to_numpy()[edges.owner[~calls]]
    node, process = np.concatenate((edges.source, edges.target)), np.concatenate((process, process))
    order = np.argsort(node, kind="stable")
    node, process = node[order], process[order]
    tied = np.flatnonzero((node[1:] == node[:-1]) & (process[1:] != process[:-1]))
    island = {number: number for number in np.unique(process).tolist()}
    for one, other in {*zip(process[tied].tolist(), process[tied + 1].tolist(), strict=True)}:
        low, high = sorted((_root(island, one), _root(island, other)))
        island[high] = low
    return {number: _root(island, number) for number in island}


def _root(island: dict[int, int], process: int) -> int:
    while island[process] != process:
        process = island[process]
    return process


def replayed_at_once(
    model: Model,
    wanted: Mapping[Rank, Sequence[ShortenHost]],
    run: Callable[[ShortenHost, list[Rank]], Mapping[Rank, _Found]],
) -> dict[Rank, list[_Found]]:
    """Return what each of a rank's changes gives; ranks that nothing ties together share a replay.

    Args:
        model: the recorded run.
        wanted: the changes of each rank to its own threads, each to be tried without the others.
        run: replays a change and returns what it gives on these ranks.
    """
    island = islands_of(model)
    rounds: list[dict[int, tuple[Rank, ShortenHost]]] = []
    for rank, changes in wanted.items():
        for change in changes:
            free = (one for one in rounds if island.get(rank.process, rank.process) not in one)
            one = next(free, None)
            if one is None:
                rounds.append(one := {})
            one[island.get(rank.process, rank.process)] = (rank, change)
    found: dict[Rank, list[_Found]] = {rank: [] for rank in wanted}
    for one in rounds:
        ranks = [rank for rank, _ in one.values()]
        given = run(_together([change for _, change in one.values()]), ranks)
        for rank in ranks:
            found[rank].append(given[rank])
    return found


def _together(changes: Sequence[ShortenHost]) -> ShortenHost:
    """Return the changes of ranks that share no call as one."""
    calls, before, inside = (
        np.concatenate([getattr(change, name) for change in changes]) for name in ("calls", "before_ns", "inside_ns")
    )
    return ShortenHost(calls, before, inside)
