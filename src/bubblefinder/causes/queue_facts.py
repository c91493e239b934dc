"""The facts of queues: what kept work waiting that the host had launched in time, while the GPU idled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.decode import RankSteps, call_rows, p50
from bubblefinder.causes.places import by_name
from bubblefinder.causes.step_parts import QueueFacts
from bubblefinder.causes.thresholds import FULL_QUEUE, QUEUE_NS
from bubblefinder.lookup import column_of, kept, taken
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.model import IdleClass
from bubblefinder.trace.model import MEMCPY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.intervals import Ints
    from bubblefinder.timeline.model import Timeline

_HOST_FUNCTION: Final = r"^cu(da)?(LaunchHostFunc|StreamAddCallback)"
_REASONS: Final = ("host function", "event wait", "copy")


def queue_facts(timeline: Timeline, lane: RankSteps) -> Iterator[QueueFacts]:
    """Yield what held queued work of a rank back, one record a reason and call.

    Between the launch of the work before a gap and of the work that ends it, the thread may have put something else
    into the queue: a host function, or an event that the stream waits for. Else a copy may have waited for its engine.
    """
    chosen = (lane.pieces.idle_class == IdleClass.QUEUED) & ~lane.pieces.charged & (lane.pieces.ns >= QUEUE_NS)
    if not chosen.any():
        return
    held = _held(timeline, lane.pieces.index[chosen])
    held = held.with_columns(start_ns=lane.pieces.starts[chosen], ns=lane.pieces.ns[chosen])
    held = kept(held, held["process"] == lane.process)
    for (reason, api), mine in held.partition_by("reason", "api", as_dict=True, maintain_order=True).items():
        windows = lane.windows(mine["start_ns"].to_numpy())
        idle = lane.per_step(windows, mine["ns"].to_numpy())
        count, affected = lane.per_step(windows, np.ones(len(mine))), idle > 0
        if affected.any():
            yield QueueFacts(
                gpu=lane.gpu,
                process=lane.process,
                reason=None if reason is None else str(reason),
                api=None if api is None else str(api),
                steps=lane.steps,
                steps_affected=int(affected.sum()),
                per_step_count=float(count[affected].mean()),
                idle_p50_ns=p50(idle[affected]),
                idle_share=lane.share(idle.sum()),
                nvtx=_range_of(timeline, mine),
                occurrences=int(count.sum()),
                pending=_pending(timeline, mine),
                ended_by=tuple(mine["ended"].unique(maintain_order=True)),
                evidence=call_rows(timeline, mine["holder"]),
            )


def _pending(timeline: Timeline, held: pl.DataFrame) -> float | None:
    """Return how many launches and host functions waited when the held work started, a median.

    None where the launch queue had room.
    """
    process = column_of(timeline.calls, "process")[timeline.leads["call_index"]]
    launched = timeline.leads.filter((process == held["process"][0]).fill_null(value=False))
    started = timeline.operations["start_ns"][launched["op_index"]].sort().to_numpy()
    returned = timeline.calls["start_ns"][launched["call_index"]].sort().to_numpy()
    until = timeline.operations["start_ns"][held["ended"]].to_numpy()
    waiting = np.searchsorted(returned, until) - np.searchsorted(started, until) + held["between"].to_numpy()
    middle = float(np.median(waiting))
    return middle if middle >= FULL_QUEUE else None


def _range_of(timeline: Timeline, held: pl.DataFrame) -> str | None:
    """Return the innermost range in which most of the held work was launched; None where most was in none."""
    calls = taken(timeline.calls[["thread", "start_ns"]], held["launch"])
    texts = timeline.ranges.texts_at(calls["thread"].to_numpy(), calls["start_ns"].to_numpy())
    most, _ = by_name(texts, held["ns"])[0]
    return most


def _held(timeline: Timeline, piece_index: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pl.DataFrame:
    """Return for each piece the process, the reason and the call that held the work back, `holder` its position."""
    gaps = taken(
        timeline.gaps[["before_index", "after_index", "call_index"]],
        timeline.pieces["gap_index"][pl.Series(piece_index, dtype=pl.UInt32)],
    )
    ended = timeline.calls.select("process", "thread", until="start_ns")[gaps["call_index"]]
    before = timeline.operations["call_index"][gaps["before_index"]]
    since = timeline.calls["start_ns"][before]
    copies = timeline.operations["kind"][gaps["after_index"]] == MEMCPY
    points = ended.with_columns(since=since, copy=copies, holder=gaps["call_index"]).with_row_index("point")
    holders = _holders(timeline)
    held = points.sort("until").join_asof(holders, left_on="until", right_on="at", by="thread", check_sortedness=False)
    inside = (pl.col("at") > pl.col("since")).fill_null(value=False)
    api = timeline.calls["api"]
    return held.sort("point").select(
        "process",
        between=pl.Series(_between(holders, since, ended["until"])),
        ended=gaps["after_index"].cast(pl.Int64),
        launch=gaps["call_index"],
        reason=pl.when(inside).then("kind").when("copy").then(pl.lit(_REASONS[2])),
        api=pl.when(inside).then("held_by").when("copy").then(api[points["holder"]].cast(pl.String)),
        holder=pl.when(inside).then("call").otherwise("holder"),
    )


def _between(holders: pl.DataFrame, since: pl.Series, until: pl.Series) -> Ints:
    """Return how many calls that hold a queue were made between two moments each."""
    made = holders["at"].to_numpy()
    first, last = (np.searchsorted(made, moments.fill_null(0).to_numpy()) for moments in (since, until))
    between: Ints = np.maximum(last - first, 0).astype(np.int64)
    return between


def _holders(timeline: Timeline) -> pl.DataFrame:
    """Return the calls that put something into a queue which later work waits for."""
    apis = timeline.calls["api"].unique().cast(pl.String).drop_nulls()
    queued = pl.col("api").is_in(apis.filter(apis.str.contains(_HOST_FUNCTION)).to_list())
    index = timeline.calls.select(queued | (pl.col("role") == CallRole.STREAM_WAIT)).to_series().arg_true()
    calls = timeline.calls.select("thread", "role", at="start_ns", held_by="api")[index]
    calls = calls.with_columns(pl.col("held_by").cast(pl.String), call=index)
    host, event = pl.col("held_by").str.contains(_HOST_FUNCTION), pl.col("role") == CallRole.STREAM_WAIT
    kind = pl.when(host).then(pl.lit(_REASONS[0])).when(event).then(pl.lit(_REASONS[1]))
    placed = calls.with_columns(kind=kind).filter(pl.col("kind").is_not_null())
    return placed[["thread", "at", "held_by", "kind", "call"]].sort("at")
