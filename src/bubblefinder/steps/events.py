"""What a lane did, one value an event, in the order in which the host launched it: what steps are recognised by.

An event is a graph replay (or one pass of it, where a WHILE node ran its body several times), an operation outside any
replay, or a wait of a thread that launches. The order is that of the launch calls, since a copy of a host that runs
ahead may run at any time; where a call is unknown, the operation's start stands for it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import LONG_AGO, NEVER, different, distinct, last_before, median, one_of
from bubblefinder.lookup import NOWHERE, kept, order_of, place_among, previous, taken, where
from bubblefinder.steps import thresholds
from bubblefinder.steps.lane import eager_operations
from bubblefinder.timeline.apis import CallRole
from bubblefinder.trace.model import COPY_KINDS, KERNEL, MEMCPY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.lane import RankWork
    from bubblefinder.steps.signatures import Signatures
    from bubblefinder.timeline.model import Timeline

COMPUTE, REPLAY, UPLOAD, READ, OTHER, WAIT = range(6)
_MIGRATIONS: Final = [kind for kind, name in COPY_KINDS.items() if name.startswith("UVM")]
_COPIES: Final = {1: UPLOAD, 2: READ}
_COLUMNS: Final = (
    "launch_ns",
    "returned_ns",
    "thread",
    "start_ns",
    "end_ns",
    "what",
    "alike",
    "apart",
    "inside",
    "size",
    "layers",
)


@dataclass(frozen=True, eq=False)
class Events:
    """One value an event.

    Attributes:
        launch_ns: when its call began.
        thread: whose call it is; NOWHERE where unknown.
        start_ns: when its first operation began; of a wait, when it began.
        end_ns: when its last operation ended.
        what: COMPUTE (a kernel), REPLAY, UPLOAD, READ, OTHER (a memset or any other copy) or WAIT.
        exact: number of the very same thing: a graph, or a copy's direction and bytes; else the one of `alike`.
        alike: number of like things: graphs of one kind, kernels of one name, copies of one direction.
        host_ns: host time since its thread's event before and since any launch, without waits; -1 where unknown.
        inside: kernels of this name run inside graphs as well.
        size: bytes of a copy, 0 of anything else.
        layers: of a graph, see `Signatures`, 0 where its nodes weren't recorded, and of anything else.
    """

    launch_ns: Ints
    thread: Ints
    start_ns: Ints
    end_ns: Ints
    what: NDArray[np.int8]
    exact: Ints
    alike: Ints
    host_ns: Ints
    inside: Bools
    size: Ints
    layers: Ints

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.launch_ns)

    def at(self, chosen: Bools | slice) -> Events:
        """Return some of the events."""
        if not isinstance(chosen, slice) and chosen.all():
            return self
        return Events(*(getattr(self, one.name)[chosen] for one in fields(self)))

    def after(self, first: int) -> Events:
        """Return the events from a position on."""
        return self.at(slice(first, None)) if first else self

    @cached_property
    def links(self) -> Bools:
        """Return which events pass something between host and GPU: uploads, reads and waits."""
        return one_of(self.what, (UPLOAD, READ, WAIT))

    @cached_property
    def ahead(self) -> Bools:
        """Return which events ran beside work that was launched before them, but kernels and graphs.

        So do the copies by which a host that runs ahead prepares the step behind.
        """
        computes = self.what <= REPLAY
        reach = np.maximum.accumulate(np.where(computes, self.end_ns, LONG_AGO))
        return np.asarray(~computes & (self.start_ns < np.append(LONG_AGO, reach[:-1])), np.bool_)

    @cached_property
    def waits(self) -> Bools:
        """Return which events may give the host a result: reads and waits."""
        return np.asarray((self.what == READ) | (self.what == WAIT), np.bool_)


def lane_events(timeline: Timeline, lane: RankWork, signatures: Signatures | None) -> Events:
    """Return the events of a lane; `signatures` of its replays, null if it has none."""
    calls = timeline.calls.select("thread", "role", "process", launch_ns="start_ns", returned_ns="end_ns", call="name")
    parts = [_eager(lane), *([_replays(lane, signatures)] if signatures else [])]
    work = pl.concat(parts)
    launched = taken(calls[["launch_ns", "returned_ns", "thread"]], work["call_index"])
    work = work.hstack(launched).with_columns_seq(
        pl.col("launch_ns").fill_null(pl.col("start_ns")), pl.col("returned_ns", "thread").fill_null(NOWHERE)
    )
    events = pl.concat([work.select_seq(_COLUMNS), _waits(lane, calls, work)], rechunk=True)
    order = order_of([events[name].to_numpy() for name in ("launch_ns", "start_ns")])
    columns = {column.name: column.to_numpy() for column in (events if order is None else events[order])}
    returned_ns = columns.pop("returned_ns")
    alike = _numbered(columns.pop("alike"))
    numbers = {"alike": alike, "exact": _told_apart(alike, columns.pop("apart"))}
    host_ns = _host_work(columns["launch_ns"], returned_ns, columns["thread"], columns["what"] != WAIT)
    return Events(**columns | numbers, host_ns=host_ns)


def _numbered(keys: Ints) -> Ints:
    """Number the different keys, which are few, in their order."""
    low, width = int(keys.min()), int(keys.max()) - int(keys.min()) + 1
    if width <= len(keys):
        return place_among(different(keys - low, width), keys - low)
    return np.searchsorted(pl.Series(keys).unique().sort().to_numpy(), keys)


def _told_apart(alike: Ints, apart: Ints) -> Ints:
    """Return numbers for what is alike and not told apart, the same as for all that is alike where that is 0."""
    exact, rows = alike.copy(), np.flatnonzero(apart)
    if len(rows):
        number = _numbered(apart[rows])
        exact[rows] = _numbered(alike[rows] * (int(number.max()) + 1) + number) + int(alike.max()) + 1
    return exact


def _host_work(launched: Ints, returned: Ints, thread: Ints, launches: Bools) -> Ints:
    """Return the host's time before each event: since its thread's last, and since the last launch of any thread.

    A pause far longer than the usual ones is taken for no work: the collector's, or a wait for the next request.
    """
    latest = np.maximum.accumulate(np.where(launches, returned, LONG_AGO))
    before = np.concatenate(([LONG_AGO], latest[:-1]))
    own = np.append(returned, LONG_AGO)[previous(thread)]
    since = np.maximum(before, own)
    host = np.where((since == LONG_AGO) | (thread < 0), -1, np.maximum(launched - since, 0))
    worked = host[host >= thresholds.HOST_WORK_NS]
    longest = max(thresholds.LULL_NS, thresholds.LULL_RATIO * (median(worked) if len(worked) else 0.0))
    return np.where(host <= longest, host, 0)


def _eager(lane: RankWork) -> pl.DataFrame:
    """Return the operations outside any replay, without migrations of managed memory."""
    work = eager_operations(lane, pl.col("copy_kind").is_in(_MIGRATIONS).not_().fill_null(value=True))
    copy = pl.col("copy_kind").replace_strict(_COPIES, default=OTHER, return_dtype=pl.Int8)
    kind = pl.when(pl.col("kind") == KERNEL).then(COMPUTE).when(pl.col("kind") == MEMCPY).then(copy).otherwise(OTHER)
    size = pl.when(pl.col("kind") == MEMCPY).then(pl.col("bytes"))
    called = pl.col("name").cast(pl.Int64).fill_null(NOWHERE)
    direction = pl.col("copy_kind").cast(pl.Int64).fill_null(NOWHERE)
    other = (direction * 4 + pl.col("kind")) * 2 + pl.col("blocking").fill_null(value=False)
    replayed = pl.col("replay_index").is_not_null()
    in_graphs = lane.operations.select_seq(pl.col("name").filter(replayed).unique().drop_nulls()).to_series()
    return work.select_seq(
        "call_index",
        "start_ns",
        "end_ns",
        what=kind.cast(pl.Int8),
        alike=pl.when(pl.col("kind") == KERNEL).then(4 * called).otherwise(4 * other + 1),
        apart=size.fill_null(0),
        inside=pl.col("name").is_in(in_graphs.implode()).fill_null(value=False),
        size=size.fill_null(0),
        layers=pl.lit(0, pl.Int64),
    )


def _replays(lane: RankWork, signatures: Signatures) -> pl.DataFrame:
    """Return the replays, each pass of a WHILE body by itself."""
    whole = lane.replays.select_seq(
        "replay_index",
        "call_index",
        "start_ns",
        "end_ns",
        what=pl.lit(REPLAY, pl.Int8),
        alike=4 * pl.Series(signatures.kinds) + 2,
        apart=pl.Series(signatures.ids),
        inside=pl.lit(value=False),
        size=pl.lit(0, pl.Int64),
        layers=pl.Series(signatures.layers),
    )
    passes = lane.passes
    if passes.is_empty():
        return whole.drop("replay_index")
    single = whole.join(passes, on="replay_index", how="anti").drop("replay_index")
    split = passes.join(whole.drop("start_ns", "end_ns"), on="replay_index").drop("replay_index")
    first = pl.col("start_ns") == pl.col("start_ns").min().over("call_index")
    return pl.concat([single, split.with_columns(pl.when(first).then("call_index")).select(single.columns)])


def _waits(lane: RankWork, calls: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Return the waits of the threads that launched the lane's work."""
    mine = (pl.col("role") == CallRole.WAIT) & pl.col("thread").is_in(work["thread"].unique().implode())
    waits = calls.pipe(where, (pl.col("process") == lane.process) & mine)
    return waits.select_seq(
        "launch_ns", "returned_ns", "thread", start_ns="launch_ns", end_ns="returned_ns", what=pl.lit(WAIT, pl.Int8),
        alike=4 * pl.col("call").cast(pl.Int64).fill_null(NOWHERE) + 3, apart=pl.lit(0, pl.Int64),
        inside=pl.lit(value=False), size=pl.lit(0, pl.Int64), layers=pl.lit(0, pl.Int64),
    )  # fmt: skip


def set_up_end(timeline: Timeline, events: Events) -> int:
    """Return the position of the first event behind the last stream capture, 0 if the program captures all along.

    What comes before the graphs exist is set-up: weights, warm-up, and the captures themselves.
    """
    captured = kept(timeline.calls, timeline.calls["role"] == CallRole.CAPTURE_END)["end_ns"].to_numpy()
    if not len(captured):
        return 0
    first = int(np.searchsorted(events.launch_ns, captured.max()))
    return first if len(events) - first >= thresholds.CAPTURES_LEFT * len(captured) else 0


def largest_uploads(events: Events, starts: Ints) -> Ints:
    """Return the size of the largest upload in each window, 0 where nothing is uploaded."""
    uploads = events.what == UPLOAD
    size = np.zeros(len(starts) + 1, np.int64)
    np.maximum.at(size, last_before(events.start_ns[uploads], starts) + 1, events.size[uploads])
    return size[1:]


def event_boundaries(events: Events, begins: Ints) -> Ints:
    """Return when each cycle begins on the GPU: at its first operation that doesn't run beside those of the one before.

    Copies that a host running ahead puts beside the work of the step before don't begin a step if anything else does.
    """
    works = np.where(events.ahead | (events.what == WAIT), NEVER, events.start_ns)
    first = np.minimum.reduceat(works, begins)
    anything = np.minimum.reduceat(np.where(events.what == WAIT, NEVER, events.start_ns), begins)
    found = np.where(first < NEVER, first, anything)
    return distinct(found[found < NEVER])
