"""What can be changed about a recorded run, each as an edit of its lags."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import one_of
from bubblefinder.lookup import NOWHERE, kept, places, taken
from bubblefinder.replay.model import EdgeKind
from bubblefinder.replay.record import by_block
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.launches import LAUNCHES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.replay.model import Model

    Floats = NDArray[np.float64]

ASYNC_COPY_NS: Final = 10_000
"""How long the call of an asynchronous copy takes where the capture has no example."""
GRAPH_LAUNCH_NS: Final = 30_000
"""How long a graph launch takes where the capture has no example."""
NODE_GAP_NS: Final = 1_000
"""Gap between the nodes of a graph where the capture has no example."""


@dataclass(slots=True)
class EditedGraph:
    """The lags of a model while changes are applied, and what has to be said of them."""

    model: Model
    lag: Ints
    keep: Bools
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, model: Model) -> EditedGraph:
        """Return the recorded run, unchanged."""
        return cls(model, model.edges.lag.copy(), np.ones(len(model.edges.lag), np.bool_))

    def edges(self, kind: EdgeKind, owners: Ints) -> Ints:
        """Return the dependencies of one kind that belong to some calls or blocks."""
        of_kind = self.model.of_kind[kind]
        return of_kind[_among(owners, self.model.edges.owner[of_kind])]

    def starts(self, edges: Ints) -> Ints:
        """Return those of some blocks' dependencies that their start waits for, not their end."""
        owner, target = (column[edges] for column in (self.model.edges.owner, self.model.edges.target))
        begins: Ints = edges[target == self.model.blocks["begin"].to_numpy()[owner]]
        return begins

    def cap(self, edges: Ints, most_ns: Ints | int) -> None:
        """Let dependencies take no longer than so much."""
        self.lag[edges] = np.minimum(self.lag[edges], most_ns)

    def take(self, edges: Ints, less_ns: Ints | Floats) -> None:
        """Take time off dependencies, by their owner; none of them becomes negative by it."""
        lag, less = self.lag[edges], np.rint(less_ns[self.model.edges.owner[edges]]).astype(np.int64)
        self.lag[edges] = np.maximum(lag - less, np.minimum(lag, 0))


@dataclass(frozen=True, slots=True)
class RemoveWaits:
    """Nobody waits at these sites: a copy to the host goes with its call, any other becomes asynchronous."""

    sites: frozenset[int]

    def apply(self, edited: EditedGraph) -> None:
        """Edit the lags."""
        model = edited.model
        mine = _among(np.array([*self.sites], np.int64), model.waits["site"].to_numpy())
        call, block = (places(model.waits[name])[mine] for name in ("call", "copy_block"))
        synchronises = model.waits["synchronises"].to_numpy()[mine]
        syncs, copies = call[synchronises], call[~synchronises]
        edited.keep[edited.edges(EdgeKind.AWAIT, call)] = False
        edited.lag[edited.edges(EdgeKind.CALL, syncs)] = 0
        edited.cap(edited.edges(EdgeKind.CALL, copies), _async_copy_ns(model))
        back = np.append(one_of(model.blocks["copy_kind"].to_numpy(), (2, 4)), False)[block]
        edited.lag[edited.edges(EdgeKind.CALL, call[back & ~synchronises])] = 0
        _drop_blocks(edited, block[back])


@dataclass(frozen=True, slots=True)
class RemovePauses:
    """Nothing holds these threads up at these times: the work before their next call is shorter by as long.

    Attributes:
        threads: the thread of each pause.
        starts: when each begins.
        ends: when each ends.
    """

    threads: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def apply(self, edited: EditedGraph) -> None:
        """Edit the lags."""
        pauses = pl.DataFrame({"thread": self.threads, "at": self.ends, "length": np.subtract(self.ends, self.starts)})
        calls = edited.model.calls.select("thread", at="start_ns").with_row_index("call").sort("at")
        ended = pauses.sort("at").join_asof(calls, on="at", by="thread", strategy="forward", check_sortedness=False)
        ended = ended.drop_nulls("call")
        less = np.zeros(len(calls), np.int64)
        np.add.at(less, ended["call"].to_numpy(), ended["length"].to_numpy())
        edited.take(edited.model.of_kind[EdgeKind.SEGMENT], less)


@dataclass(frozen=True, slots=True)
class ReleaseQueue:
    """Nothing holds some queued work back: it follows the work before it as such work usually does.

    Attributes:
        operations: positions in `timeline.operations` of the work that came late.
    """

    operations: tuple[int, ...]

    def apply(self, edited: EditedGraph) -> None:
        """Edit the lags."""
        blocks = edited.model.blocks
        held = np.flatnonzero(blocks["op_index"].is_in(list(self.operations)).fill_null(value=False).to_numpy())
        for kind in (EdgeKind.QUEUE, EdgeKind.SEEN):
            mine = edited.starts(edited.edges(kind, held))
            edited.cap(mine, blocks["queued_ns"].to_numpy()[edited.model.edges.owner[mine]])


@dataclass(frozen=True, slots=True)
class HostSpeed:
    """The host works `factor` times as fast; waits stay what they are."""

    factor: float

    def apply(self, edited: EditedGraph) -> None:
        """Edit the lags."""
        for kind in (EdgeKind.SEGMENT, EdgeKind.CALL):
            host = edited.model.of_kind[kind]
            edited.lag[host] = np.floor(edited.lag[host] / self.factor).astype(np.int64)


NEVER_LATE: Final = HostSpeed(1e9)
"""A host whose work takes no time; the waits stay."""


@dataclass(frozen=True, slots=True, eq=False)
class ShortenHost:
    """Some of the host's own work is gone.

    Attributes:
        calls: positions of calls in the model, each once.
        before_ns: how much of what the thread does before each of them.
        inside_ns: how much of each.
    """

    calls: Ints
    before_ns: Ints
    inside_ns: Ints

    def apply(self, edited: EditedGraph) -> None:
        """Edit the lags."""
        less = np.zeros(len(edited.model.calls), np.int64)
        for kind, gone in ((EdgeKind.SEGMENT, self.before_ns), (EdgeKind.CALL, self.inside_ns)):
            less[self.calls] = gone
            edited.take(edited.model.of_kind[kind], less)


@dataclass(frozen=True, slots=True)
class FreeLaunches:
    """Launch calls take no time, and work starts as soon after them as the quickest launch of the capture."""

    def apply(self, edited: EditedGraph) -> None:
        """Edit the lags."""
        model = edited.model
        launches = model.calls["api_role"].is_in([int(role) for role in LAUNCHES]) & ~model.calls["waits"]
        edited.lag[edited.edges(EdgeKind.CALL, np.flatnonzero(launches.to_numpy()))] = 0
        latency = model.of_kind[EdgeKind.LAUNCH]
        if len(latency):
            edited.cap(latency, int(np.percentile(model.blocks["latency_ns"].to_numpy(), 5)))


@dataclass(frozen=True, slots=True)
class CaptureEager:
    """The launches of an eager phase become one graph replay."""

    role: str

    def apply(self, edited: EditedGraph) -> None:
        """Edit the lags."""
        heads, tails, blocks = edited.model.once(self, lambda: _launches_of(edited.model, self.role))
        edited.lag[edited.edges(EdgeKind.CALL, heads)] = _graph_launch_ns(edited)
        for kind in (EdgeKind.CALL, EdgeKind.SEGMENT):
            edited.lag[edited.edges(kind, tails)] = 0
        edited.keep[edited.edges(EdgeKind.LAUNCH, blocks[_chained(edited, blocks)])] = False
        edited.cap(edited.edges(EdgeKind.QUEUE, blocks), _node_gap_ns(edited))


@dataclass(frozen=True, slots=True)
class CloseGaps:
    """The idle inside graph replays shrinks by a share, as programmatic dependent launch may do: a bound."""

    share: float

    def apply(self, edited: EditedGraph) -> None:
        """Edit the lags."""
        idle = edited.model.blocks["intra_ns"].fill_null(0).to_numpy()
        _shorten(edited, np.floor(idle * self.share).astype(np.int64))
        edited.notes.append("a bound: no capture here shows how much of the gaps inside graphs can be closed")


@dataclass(frozen=True, slots=True)
class DropKernels:
    """The kernels whose name matches are gone, as fusion may do: a bound.

    Attributes:
        name: the pattern, for the notes.
        block_ns: how much time each block loses, see `kernel_time`.
    """

    name: str
    block_ns: tuple[int, ...]

    def apply(self, edited: EditedGraph) -> None:
        """Edit the lags."""
        _shorten(edited, np.array(self.block_ns, np.int64))
        edited.notes.append(f"a bound: the kernels that match {self.name!r} are gone and nothing took over their work")


@dataclass(frozen=True, slots=True, eq=False)
class RemoveTracing:
    """The profiler's own time is taken away where it was paid; see `replay.tracing`. In ns, not rounded.

    Attributes:
        gaps_ns: idle time that tracing added inside each block.
        inside_ns: work that it added to each block.
        unplaced_ns: cost of each block that found no place.
        queue_ns: what it added before each block that was queued behind other work.
        call_ns: what it added to each call.
        segment_ns: what it added to the time before each call.
        kept: which part of each call is the program's own; what its call loses, its work starts earlier.
        least_latency_ns: how long after the begin of its call each block starts at the earliest.
        ends: the same at the highest and at the lowest that the costs may be; null if that isn't asked.
    """

    gaps_ns: Floats
    inside_ns: Floats
    unplaced_ns: Floats
    queue_ns: Floats
    call_ns: Floats
    segment_ns: Floats
    kept: Floats
    least_latency_ns: Floats
    ends: tuple[RemoveTracing, RemoveTracing] | None = None

    def apply(self, edited: EditedGraph) -> None:
        """Edit the lags."""
        _shorten(edited, np.rint(self.gaps_ns + self.inside_ns).astype(np.int64))
        for kind, added in ((EdgeKind.CALL, self.call_ns), (EdgeKind.SEGMENT, self.segment_ns)):
            edited.take(edited.model.of_kind[kind], added)
        for kind in (EdgeKind.QUEUE, EdgeKind.SEEN):
            edited.take(edited.starts(edited.model.of_kind[kind]), self.queue_ns)
        self._launch_sooner(edited)

    def _launch_sooner(self, edited: EditedGraph) -> None:
        launched = edited.model.of_kind[EdgeKind.LAUNCH]
        block, lag = edited.model.edges.owner[launched], edited.lag[launched]
        call = places(edited.model.blocks["call"])[block]
        floor = np.minimum(lag, self.least_latency_ns[block])
        sooner = np.maximum(floor, np.where(lag > 0, lag * self.kept[call], lag))
        edited.lag[launched] = np.rint(sooner).astype(np.int64)


Change = (
    RemoveWaits
    | RemovePauses
    | ReleaseQueue
    | HostSpeed
    | ShortenHost
    | FreeLaunches
    | CaptureEager
    | CloseGaps
    | DropKernels
    | RemoveTracing
)


def edit(model: Model, changes: Iterable[Change]) -> EditedGraph:
    """Return the model's lags with all the changes applied together."""
    edited = EditedGraph.of(model)
    for change in changes:
        change.apply(edited)
    return edited


def kernel_time(
    operations: pl.DataFrame, blocks: pl.DataFrame, names: Mapping[int, str], pattern: str
) -> tuple[int, ...]:
    """Return how long the kernels whose name matches keep each block busy; overlaps among them count once."""
    wanted = [name for name, text in names.items() if re.search(pattern, text)]
    hit = operations["name"].is_in(wanted).arg_true()
    lost = by_block(operations, blocks, taken(operations[["start_ns", "end_ns"]], hit), hit).sort("block", "start_ns")
    reach = pl.col("end_ns").cum_max().shift(1).over("block").fill_null(0)
    once = lost.with_columns(length=(pl.col("end_ns") - pl.max_horizontal("start_ns", reach)).clip(lower_bound=0))
    total = np.zeros(len(blocks), np.int64)
    sums = once.group_by("block").agg(pl.col("length").sum())
    total[sums["block"].to_numpy()] = sums["length"].to_numpy()
    return tuple(total.tolist())


def _drop_blocks(edited: EditedGraph, blocks: Ints) -> None:
    """Let blocks take no time: they begin when the work before them has ended, however late they are launched."""
    edited.keep[edited.edges(EdgeKind.LAUNCH, blocks[_chained(edited, blocks)])] = False
    for kind in (EdgeKind.WORK, EdgeKind.QUEUE):
        edited.cap(edited.edges(kind, blocks), 0)


def _chained(edited: EditedGraph, blocks: Ints) -> Bools:
    """Tell the blocks that have work before them: the others keep their launch, else nothing would tell their time."""
    queued = edited.model.of_kind[EdgeKind.QUEUE]
    return _among(edited.model.edges.owner[queued[edited.keep[queued]]], blocks)


def _among(few: Ints, values: Ints) -> Bools:
    """Tell which values are among a few: np.isin, for numbers that count calls, blocks or sites from 0."""
    found = np.zeros(1 + max(values.max(initial=NOWHERE), few.max(initial=NOWHERE)) - NOWHERE, np.bool_)
    found[few - NOWHERE] = True
    chosen: Bools = found[values - NOWHERE]
    return chosen


def _shorten(edited: EditedGraph, less: Ints) -> None:
    """Take time from the insides of blocks, spread over the stretches between their collectives."""
    work = edited.model.of_kind[EdgeKind.WORK]
    owner = edited.model.edges.owner[work]
    total = np.bincount(owner, weights=edited.lag[work], minlength=len(less))
    share = np.divide(less, total, out=np.zeros(len(less)), where=total > 0).clip(max=1)
    edited.lag[work] -= np.floor(edited.lag[work] * share[owner]).astype(np.int64)


def _launches_of(model: Model, role: str) -> tuple[Ints, Ints, Ints]:
    """Return the first launch call of each run of an eager phase, the calls behind it, and the blocks of these."""
    named = model.blocks[["gpu", "process", "role", "phase", "replay_index", "call"]].with_row_index("block")
    mine = kept(named, (named["role"] == role) & named["replay_index"].is_null())
    launched = kept(mine, mine["call"].is_not_null() & mine["phase"].is_not_null())
    first = launched.select_seq(pl.col("call").min().over("gpu", "process", "phase")).to_series()
    rest = kept(launched, launched["call"] != first)
    return places(first.unique()), places(rest["call"]), places(rest["block"])


def _async_copy_ns(model: Model) -> int:
    calls = model.calls
    copies = (calls["api_role"].to_numpy() == CallRole.COPY) & ~calls["waits"].to_numpy()
    lengths = (calls["end_ns"] - calls["start_ns"]).to_numpy()[copies]
    return int(np.median(lengths)) if len(lengths) else ASYNC_COPY_NS


def _graph_launch_ns(edited: EditedGraph) -> int:
    launches = kept(edited.model.calls, edited.model.calls["api_role"] == CallRole.LAUNCH_GRAPH)
    lengths = (launches["end_ns"] - launches["start_ns"]).to_numpy()
    if len(lengths):
        return int(np.median(lengths))
    edited.notes.append(f"no graph launch in the capture: {GRAPH_LAUNCH_NS / 1000:.0f} us assumed for one")
    return GRAPH_LAUNCH_NS


def _node_gap_ns(edited: EditedGraph) -> int:
    columns = edited.model.blocks[["intra_ns", "nodes"]]
    inside = kept(columns, columns["intra_ns"].is_not_null() & (columns["nodes"] > 1))
    if len(inside):
        return int((inside["intra_ns"] / (inside["nodes"] - 1)).median() or 0)  # type: ignore[arg-type]
    edited.notes.append(f"no graph nodes in the capture: {NODE_GAP_NS / 1000:.0f} us assumed between two of them")
    return NODE_GAP_NS
