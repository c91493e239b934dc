"""What can be changed about a recorded run, each as an edit of its lags."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.replay.model import Lag
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
class Draft:
    """The lags of a model while changes are applied, and what has to be said of them."""

    model: Model
    lag: Ints
    keep: Bools
    notes: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, model: Model) -> Draft:
        """Return the recorded run, unchanged."""
        return cls(model, model.arcs.lag.copy(), np.ones(len(model.arcs.lag), np.bool_))

    def arcs(self, kind: Lag, owners: Ints) -> Bools:
        """Tell the dependencies of one kind that belong to some calls or blocks."""
        chosen: Bools = (self.model.arcs.kind == kind) & np.isin(self.model.arcs.owner, owners)
        return chosen


@dataclass(frozen=True, slots=True)
class RemoveWaits:
    """Nobody waits at these sites: a copy to the host goes, any other becomes asynchronous."""

    sites: frozenset[int]

    def apply(self, draft: Draft) -> None:
        """Edit the draft."""
        model = draft.model
        waits = model.waits.filter(pl.col("site").is_in(list(self.sites)))
        syncs, copies = (_calls(waits.filter(pl.col("synchronises") == which)) for which in (True, False))
        draft.keep &= ~draft.arcs(Lag.AWAIT, np.concatenate([syncs, copies]))
        draft.lag[draft.arcs(Lag.CALL, syncs)] = 0
        inside = draft.arcs(Lag.CALL, copies)
        draft.lag[inside] = np.minimum(draft.lag[inside], _async_copy_ns(model))
        reads = model.blocks["copy_kind"].gather(waits["copy_block"]).is_in([2, 4]).fill_null(value=False)
        _drop_blocks(draft, waits.filter(reads)["copy_block"].drop_nulls().cast(pl.Int64).to_numpy())


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

    def apply(self, draft: Draft) -> None:
        """Edit the draft."""
        pauses = pl.DataFrame({"thread": self.threads, "at": self.ends, "length": np.subtract(self.ends, self.starts)})
        calls = draft.model.calls.select("thread", at="start_ns").with_row_index("call").sort("at")
        ended = pauses.sort("at").join_asof(calls, on="at", by="thread", strategy="forward", check_sortedness=False)
        ended = ended.drop_nulls("call")
        less = np.zeros(len(calls), np.int64)
        np.add.at(less, ended["call"].to_numpy(), ended["length"].to_numpy())
        work = draft.model.arcs.kind == Lag.SEGMENT
        draft.lag[work] = np.maximum(draft.lag[work] - less[draft.model.arcs.owner[work]], 0)


@dataclass(frozen=True, slots=True)
class HostSpeed:
    """The host works `factor` times as fast; waits stay what they are."""

    factor: float

    def apply(self, draft: Draft) -> None:
        """Edit the draft."""
        host = np.isin(draft.model.arcs.kind, (Lag.SEGMENT, Lag.CALL))
        draft.lag[host] = np.floor(draft.lag[host] / self.factor).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class ShortenHost:
    """Some of the host's own work is gone.

    Attributes:
        before_ns: how much of what the thread does before each call of the model.
        inside_ns: how much of each call.
    """

    before_ns: Ints
    inside_ns: Ints

    def apply(self, draft: Draft) -> None:
        """Edit the draft."""
        for kind, less in ((Lag.SEGMENT, self.before_ns), (Lag.CALL, self.inside_ns)):
            chosen = draft.model.arcs.kind == kind
            draft.lag[chosen] = np.maximum(draft.lag[chosen] - less[draft.model.arcs.owner[chosen]], 0)


@dataclass(frozen=True, slots=True)
class FreeLaunches:
    """Launch calls take no time, and work starts as soon after them as the quickest launch of the capture."""

    def apply(self, draft: Draft) -> None:
        """Edit the draft."""
        model = draft.model
        launches = model.calls["api_role"].is_in([int(role) for role in LAUNCHES]) & ~model.calls["waits"]
        draft.lag[draft.arcs(Lag.CALL, np.flatnonzero(launches.to_numpy()))] = 0
        latency = model.arcs.kind == Lag.LAUNCH
        if latency.any():
            quickest = int(np.percentile(model.blocks["latency_ns"].to_numpy(), 5))
            draft.lag[latency] = np.minimum(draft.lag[latency], quickest)


@dataclass(frozen=True, slots=True)
class CaptureEager:
    """The launches of an eager phase become one graph replay."""

    role: str

    def apply(self, draft: Draft) -> None:
        """Edit the draft."""
        model = draft.model
        mine = model.blocks.with_row_index("block").filter(
            (pl.col("role") == self.role) & pl.col("replay_index").is_null()
        )
        launched = mine.filter(pl.col("call").is_not_null() & pl.col("phase").is_not_null())
        first = launched.select(pl.col("call").min().over("gpu", "process", "phase")).to_series()
        rest = launched.filter(pl.col("call") != first)
        heads = first.unique().cast(pl.Int64).to_numpy()
        tails, blocks = _calls(rest), rest["block"].cast(pl.Int64).to_numpy()
        draft.lag[draft.arcs(Lag.CALL, heads)] = _graph_launch_ns(draft)
        for kind in (Lag.CALL, Lag.SEGMENT):
            draft.lag[draft.arcs(kind, tails)] = 0
        draft.keep &= ~draft.arcs(Lag.LAUNCH, blocks[_chained(draft, blocks)])
        queued = draft.arcs(Lag.QUEUE, blocks)
        draft.lag[queued] = np.minimum(draft.lag[queued], _node_gap_ns(draft))


@dataclass(frozen=True, slots=True)
class CloseGaps:
    """The idle inside graph replays shrinks by a share, as programmatic dependent launch may do: a bound."""

    share: float

    def apply(self, draft: Draft) -> None:
        """Edit the draft."""
        idle = draft.model.blocks["intra_ns"].fill_null(0).to_numpy()
        _shorten(draft, np.floor(idle * self.share).astype(np.int64))
        draft.notes.append("a bound: no capture here shows how much of the gaps inside graphs can be closed")


@dataclass(frozen=True, slots=True)
class DropKernels:
    """The kernels whose name matches are gone, as fusion may do: a bound.

    Attributes:
        name: the pattern, for the notes.
        block_ns: how much time each block loses, see `kernel_time`.
    """

    name: str
    block_ns: tuple[int, ...]

    def apply(self, draft: Draft) -> None:
        """Edit the draft."""
        _shorten(draft, np.array(self.block_ns, np.int64))
        draft.notes.append(f"a bound: the kernels that match {self.name!r} are gone and nothing took over their work")


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

    def apply(self, draft: Draft) -> None:
        """Edit the draft."""
        _shorten(draft, np.rint(self.gaps_ns + self.inside_ns).astype(np.int64))
        for kind, added in ((Lag.CALL, self.call_ns), (Lag.SEGMENT, self.segment_ns)):
            _take(draft, draft.model.arcs.kind == kind, added)
        begins = draft.model.blocks["begin"].to_numpy()
        queued = np.isin(draft.model.arcs.kind, (Lag.QUEUE, Lag.SEEN))
        queued[queued] = draft.model.arcs.target[queued] == begins[draft.model.arcs.owner[queued]]
        _take(draft, queued, self.queue_ns)
        self._launch_sooner(draft)

    def _launch_sooner(self, draft: Draft) -> None:
        launched = np.flatnonzero(draft.model.arcs.kind == Lag.LAUNCH)
        block, lag = draft.model.arcs.owner[launched], draft.lag[launched]
        call = draft.model.blocks["call"].cast(pl.Int64).fill_null(-1).to_numpy()[block]
        floor = np.minimum(lag, self.least_latency_ns[block])
        sooner = np.maximum(floor, np.where(lag > 0, lag * self.kept[call], lag))
        draft.lag[launched] = np.rint(sooner).astype(np.int64)


Change = (
    RemoveWaits
    | RemovePauses
    | HostSpeed
    | ShortenHost
    | FreeLaunches
    | CaptureEager
    | CloseGaps
    | DropKernels
    | RemoveTracing
)


def draft_of(model: Model, changes: Iterable[Change]) -> Draft:
    """Return the model's lags with all the changes applied together."""
    draft = Draft.of(model)
    for change in changes:
        change.apply(draft)
    return draft


def kernel_time(
    operations: pl.DataFrame, blocks: pl.DataFrame, names: Mapping[int, str], pattern: str
) -> tuple[int, ...]:
    """Return how long the kernels whose name matches keep each block busy; overlaps among them count once."""
    wanted = [name for name, text in names.items() if re.search(pattern, text)]
    numbered = blocks.select("replay_index", "op_index").with_row_index("block")
    hit = (
        operations.with_row_index("op_index")
        .filter(pl.col("name").is_in(wanted))
        .select("op_index", "replay_index", "start_ns", "end_ns")
    )
    inside = hit.join(numbered.drop("op_index").drop_nulls(), on="replay_index")
    alone = hit.filter(pl.col("replay_index").is_null()).join(numbered.drop("replay_index"), on="op_index")
    lost = pl.concat([part.select("block", "start_ns", "end_ns") for part in (inside, alone)]).sort("block", "start_ns")
    reach = pl.col("end_ns").cum_max().shift(1).over("block").fill_null(0)
    once = lost.with_columns(length=(pl.col("end_ns") - pl.max_horizontal("start_ns", reach)).clip(lower_bound=0))
    total = np.zeros(len(blocks), np.int64)
    sums = once.group_by("block").agg(pl.col("length").sum())
    total[sums["block"].to_numpy()] = sums["length"].to_numpy()
    return tuple(total.tolist())


def _calls(rows: pl.DataFrame) -> Ints:
    return rows["call"].drop_nulls().unique().cast(pl.Int64).to_numpy()


def _drop_blocks(draft: Draft, blocks: Ints) -> None:
    """Let blocks take no time: they begin when the work before them has ended, however late they are launched."""
    draft.keep &= ~draft.arcs(Lag.LAUNCH, blocks[_chained(draft, blocks)])
    for kind in (Lag.WORK, Lag.QUEUE):
        mine = draft.arcs(kind, blocks)
        draft.lag[mine] = np.minimum(draft.lag[mine], 0)


def _chained(draft: Draft, blocks: Ints) -> Bools:
    """Tell the blocks that have work before them: the others keep their launch, else nothing would tell their time."""
    behind = draft.model.arcs.owner[draft.keep & (draft.model.arcs.kind == Lag.QUEUE)]
    return np.isin(blocks, behind)


def _take(draft: Draft, chosen: Bools, added: Floats) -> None:
    """Take time off dependencies, by their owner; none of them becomes negative by it."""
    lag = draft.lag[chosen]
    draft.lag[chosen] = np.maximum(
        lag - np.rint(added[draft.model.arcs.owner[chosen]]).astype(np.int64), np.minimum(lag, 0)
    )


def _shorten(draft: Draft, less: Ints) -> None:
    """Take time from the insides of blocks, spread over the stretches between their collectives."""
    work = np.flatnonzero(draft.model.arcs.kind == Lag.WORK)
    owner = draft.model.arcs.owner[work]
    total = np.bincount(owner, weights=draft.lag[work], minlength=len(less))
    share = np.divide(less, total, out=np.zeros(len(less)), where=total > 0).clip(max=1)
    draft.lag[work] -= np.floor(draft.lag[work] * share[owner]).astype(np.int64)


def _async_copy_ns(model: Model) -> int:
    copies = model.calls.filter((pl.col("api_role") == CallRole.COPY) & ~pl.col("waits"))
    lengths = (copies["end_ns"] - copies["start_ns"]).to_numpy()
    return int(np.median(lengths)) if len(lengths) else ASYNC_COPY_NS


def _graph_launch_ns(draft: Draft) -> int:
    launches = draft.model.calls.filter(pl.col("api_role") == CallRole.LAUNCH_GRAPH)
    lengths = (launches["end_ns"] - launches["start_ns"]).to_numpy()
    if len(lengths):
        return int(np.median(lengths))
    draft.notes.append(f"no graph launch in the capture: {GRAPH_LAUNCH_NS / 1000:.0f} us assumed for one")
    return GRAPH_LAUNCH_NS


def _node_gap_ns(draft: Draft) -> int:
    inside = draft.model.blocks.filter(pl.col("intra_ns").is_not_null() & (pl.col("nodes") > 1))
    if len(inside):
        return int((inside["intra_ns"] / (inside["nodes"] - 1)).median() or 0)  # type: ignore[arg-type]
    draft.notes.append(f"no graph nodes in the capture: {NODE_GAP_NS / 1000:.0f} us assumed between two of them")
    return NODE_GAP_NS
