"""What each replay of a lane looks like: the kind of its graph, what was launched before it, how the host worked.

A cadence is found in signatures, not in ids: a graph captured for another batch size has another id but looks alike.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import begin_and_end, classes_of
from bubblefinder.lookup import places, where
from bubblefinder.steps import thresholds
from bubblefinder.steps.lane import host_work_before
from bubblefinder.trace.model import KERNEL, MEMCPY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.lane import RankWork
    from bubblefinder.timeline.model import Timeline

KERNELS, OTHERS, TO_DEVICE, TO_HOST, ACROSS = 1, 2, 4, 8, 16
_COPY_TO_DEVICE: Final = 1
_COPY_TO_HOST: Final = 2


@dataclass(frozen=True, slots=True)
class Signatures:
    """One value a replay, in the lane's order.

    Attributes:
        kinds: class of the graph: by its nodes and their names where they were recorded, else by its usual length.
        sizes: nodes of the replay's graph, or its median length in ns.
        counted: sizes are nodes.
        layers: how often the kernels of its layers come in the replay's graph, 1 if none comes often, 0 where nodes
            weren't recorded.
        seams: what was launched eagerly since the replay before, as bits.
        ids: the graph's id.
        host_work: host time before the launch without waits, -1 where unknown.
        idle: time from the end of all earlier replays to the start, -1 for the first.
        whole: the first replay is recorded from its beginning.
    """

    kinds: Ints
    sizes: Ints
    counted: bool
    layers: Ints
    seams: Ints
    ids: Ints
    host_work: Ints
    idle: Ints
    whole: bool

    def at(self, kept: Bools) -> Signatures:
        """Return the signatures of some of the replays."""
        names = ("kinds", "sizes", "layers", "seams", "ids", "host_work", "idle")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})

    @property
    def ratio(self) -> float:
        """By how much graphs of one kind may differ in size."""
        return ratio_of(counted=self.counted)


def ratio_of(*, counted: bool) -> float:
    """Return by how much graphs of one kind may differ in nodes, or in length where nodes aren't counted."""
    return thresholds.NODES_RATIO if counted else thresholds.LENGTH_RATIO


def replay_signatures(timeline: Timeline, lane: RankWork) -> Signatures:
    """Return what the replays of a lane look like."""
    ids = places(lane.replays["graph"])
    sizes, counted = _sizes(lane)
    graphs = np.unique(ids, return_index=True)[1]
    kinds = classes_of(sizes[graphs], sizes, ratio_of(counted=counted))  # another batch size hardly changes the nodes
    layers = np.zeros_like(ids)
    if counted:
        contents = _contents(lane, ids)
        kinds, layers = _split_by_names(kinds, ids, contents), _layers(ids, contents)
    seams = _launched_before(timeline, lane)
    whole = not counted or int(lane.replays["nodes"][0]) >= int(sizes[0])
    return Signatures(kinds, sizes, counted, layers, seams, ids, host_work_before(timeline, lane), _idle(lane), whole)


def symbols(rows: Ints) -> Ints:
    """Number the different rows, in their order."""
    numbers = np.zeros(len(rows), np.int64)
    for column in rows.T:
        values, place = np.unique(column, return_inverse=True)
        numbers = np.unique(numbers * len(values) + place, return_inverse=True)[1]
    return numbers.astype(np.int64)


def _sizes(lane: RankWork) -> tuple[Ints, bool]:
    """Return the median size of each replay's graph and whether that is a count of nodes."""
    counted = not lane.replays["nodes"].null_count()
    size = pl.col("nodes") if counted else pl.col("end_ns") - pl.col("start_ns")
    medians = lane.replays.select_seq(size=size.median().over(pl.col("graph").fill_null(-1)))
    return medians["size"].round().cast(pl.Int64).to_numpy(), counted


def _contents(lane: RankWork, ids: Ints) -> dict[int, dict[int, int]]:
    """Return how often each name comes in the nodes of each graph."""
    replays, nodes = places(lane.replays["replay_index"]), places(lane.replays["nodes"])
    order = np.lexsort((replays, -nodes, ids))
    fullest = order[np.unique(ids[order], return_index=True)[1]]
    graph_of = dict(zip(replays[fullest].tolist(), ids[fullest].tolist(), strict=True))
    mine = lane.operations.pipe(where, pl.col("replay_index").is_in(list(graph_of)))
    contents: dict[int, dict[int, int]] = {}
    for replay, name, count in mine.group_by("replay_index", "name").len().iter_rows():
        contents.setdefault(graph_of[replay], {})[name] = count
    return contents


def _layers(ids: Ints, contents: dict[int, dict[int, int]]) -> Ints:
    """Return how often the kernels of its layers come in each replay's graph, 1 if none comes often."""
    graphs, place = np.unique(ids, return_inverse=True)
    often = ([n for n in contents.get(graph, {}).values() if n >= thresholds.LAYERS] for graph in graphs.tolist())
    return np.array([int(np.median(counts)) if counts else 1 for counts in often], np.int64)[place]


def _split_by_names(kinds: Ints, ids: Ints, contents: dict[int, dict[int, int]]) -> Ints:
    """Tell apart graphs of one size whose nodes have hardly a name in common."""
    models: list[tuple[int, dict[int, int]]] = []
    kind_of: dict[int, int] = {}
    for first in np.sort(np.unique(ids, return_index=True)[1]).tolist():
        size, content = int(kinds[first]), contents.get(int(ids[first]), {})
        alike = (n for n, (other, model) in enumerate(models) if other == size and _alike(content, model))
        number = next(alike, len(models))
        if number == len(models):
            models.append((size, content))
        kind_of[int(ids[first])] = number
    graphs, place = np.unique(ids, return_inverse=True)
    return np.array([kind_of[graph] for graph in graphs.tolist()], np.int64)[place]


def _alike(one: dict[int, int], other: dict[int, int]) -> bool:
    """Compare how often each name occurs, as the cosine between the counts."""
    product = sum(count * other.get(name, 0) for name, count in one.items())
    squares = [sum(count * count for count in content.values()) for content in (one, other)]
    return not all(squares) or product >= thresholds.STRANGERS * float(np.sqrt(squares[0]) * np.sqrt(squares[1]))


def _launched_before(timeline: Timeline, lane: RankWork) -> Ints:
    """Return what was launched eagerly between each replay and the one before, as bits: kernels, copies by direction.

    In the order of the launch calls: a copy of a host that runs ahead may run at any time. Where most launch calls
    of replays are unknown, in the order of the GPU.
    """
    launched = lane.operations[["kind", "copy_kind", "start_ns", "call_index", "replay_index"]]
    eager = launched.pipe(where, pl.col("replay_index").is_null())
    begun = timeline.calls["start_ns"]
    launches, times = begun[lane.replays["call_index"]], eager["start_ns"]
    if 2 * launches.null_count() > len(launches):
        launches = lane.replays["start_ns"]
    else:
        launches = launches.forward_fill().backward_fill()
        times = begun[eager["call_index"]].fill_null(times)
    order = launches.arg_sort().to_numpy()
    bits = np.zeros(len(order) + 1, np.int64)
    seam = np.searchsorted(launches.to_numpy()[order], times.to_numpy(), side="left")
    for bit, mine in _kinds_of(eager):
        bits[seam[mine]] |= bit
    found = np.zeros(len(order), np.int64)
    found[order] = bits[:-1]
    return found


def _kinds_of(eager: pl.DataFrame) -> Iterator[tuple[int, Bools]]:
    """Yield for each bit which operations set it."""
    kind, direction = eager["kind"].to_numpy(), eager["copy_kind"].fill_null(0).to_numpy()
    copies = kind == MEMCPY
    yield KERNELS, kind == KERNEL
    yield OTHERS, ~copies & (kind != KERNEL)
    for bit, one in ((TO_DEVICE, _COPY_TO_DEVICE), (TO_HOST, _COPY_TO_HOST)):
        yield bit, copies & (direction == one)
    yield ACROSS, copies & (direction != _COPY_TO_DEVICE) & (direction != _COPY_TO_HOST)


def _idle(lane: RankWork) -> Ints:
    starts, ends = begin_and_end(lane.replays)
    idle = np.full(len(starts), -1, np.int64)
    idle[1:] = np.maximum(starts[1:] - np.maximum.accumulate(ends)[:-1], 0)
    return idle
