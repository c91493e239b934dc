"""What the profiler added to a recorded run: to each block and the gap before it, to each call and the time between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.intervals import begin_and_end, overlap_with
from bubblefinder.lookup import changes, kept, place_among, places
from bubblefinder.replay.changes import RemoveTracing
from bubblefinder.replay.graph_nodes import NODE_KINDS, graph_nodes
from bubblefinder.replay.host_calls import HostCalls, excess_behind, excess_of, host_of
from bubblefinder.replay.record import by_block
from bubblefinder.timeline.ledger import cover_of
from bubblefinder.timeline.model import IdleClass
from bubblefinder.timeline.ranges import function_edges

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.overhead.model import Costs
    from bubblefinder.replay.model import Model
    from bubblefinder.timeline.model import Timeline

    Floats = NDArray[np.float64]

_WHOLE: Final = 1.0


@dataclass(frozen=True, slots=True)
class Tracing:
    """Where tracing costs time in a recorded run, whatever it costs.

    Attributes:
        nodes: graph nodes of each block, one column a kind of `NODE_KINDS`.
        idle_ns: idle time inside each block.
        busy_ns: the rest of each block.
        replays: which blocks are graph replays.
        window_ns: time in the profiler's own windows in the idle that each block ended.
        calls: the API calls of all processes.
        place: where each call of the model lies among these, -1 where it doesn't.
        before: the model's call before each in its thread, -1 for the first.
        call_window_ns: time of each of the model's calls in such windows before its thread's next work came.
        segment_window_ns: the same of the time before each call.
        function_edges: how many ranges around Python functions began or ended in the time before each call.
    """

    nodes: Ints
    idle_ns: Ints
    busy_ns: Ints
    replays: Bools
    window_ns: Ints
    calls: HostCalls
    place: Ints
    before: Ints
    call_window_ns: Ints
    segment_window_ns: Ints
    function_edges: Ints


def tracing_of(timeline: Timeline, model: Model) -> Tracing:
    """Return where tracing costs time in a recorded run; it is looked for once."""
    return model.once(tracing_of, lambda: _traced(timeline, model))


def _traced(timeline: Timeline, model: Model) -> Tracing:
    idle = model.blocks["intra_ns"].fill_null(0).to_numpy()
    length = (model.blocks["end_ns"] - model.blocks["start_ns"]).to_numpy()
    calls = host_of(timeline, _span(model))
    thread = model.calls["thread"].to_numpy()
    follows = ~changes(thread)
    windows = _windows(timeline, model)
    call_window, segment_window = _windows_of_calls(model, windows, follows)
    return Tracing(
        nodes=_nodes_of(timeline, model),
        idle_ns=idle,
        busy_ns=length - idle,
        replays=(model.blocks["kind"] == "graph").to_numpy(),
        window_ns=_summed(windows, len(model.blocks)),
        calls=calls,
        place=place_among(calls.index, places(model.calls["call_index"])),
        before=np.where(follows, np.arange(len(thread)) - 1, -1),
        call_window_ns=call_window,
        segment_window_ns=segment_window,
        function_edges=_function_edges(timeline, model),
    )


def _span(model: Model) -> tuple[int, int] | None:
    """Return from when to when the model's calls lasted; null for one of the whole capture."""
    if not model.left_out or model.calls.is_empty():
        return None
    return int(model.calls["start_ns"].to_numpy().min()), int(model.calls["end_ns"].to_numpy().max())


def _function_edges(timeline: Timeline, model: Model) -> Ints:
    """Return how many function ranges began or ended in the time before each of the model's calls."""
    edges = function_edges(timeline.trace.nvtx)
    thread, starts = model.calls["thread"].to_numpy(), model.calls["start_ns"].to_numpy()
    passed = np.zeros(len(starts), np.int64)
    for rows in edges.partition_by("thread"):
        owner = rows["thread"][0]
        mine = thread == owner
        passed[mine] = np.searchsorted(rows["time_ns"].to_numpy(), starts[mine])
    return np.where(changes(thread), 0, np.diff(passed, prepend=0))


def _nodes_of(timeline: Timeline, model: Model) -> Ints:
    """Return how many graph nodes of each kind each block has."""
    numbered = model.blocks[["replay_index"]].with_row_index("block").drop_nulls()
    found = graph_nodes(timeline, numbered["replay_index"].to_numpy()).join(numbered, on="replay_index")
    both = found["block"].to_numpy().astype(np.int64) * len(NODE_KINDS) + found["node_kind"].to_numpy()
    return np.bincount(both, minlength=len(model.blocks) * len(NODE_KINDS)).reshape(-1, len(NODE_KINDS))


def _windows(timeline: Timeline, model: Model) -> pl.DataFrame:
    """Return block, start_ns and end_ns of the profiler's windows in the idle that each block ended."""
    pieces = kept(timeline.pieces, timeline.pieces["idle_class"] == int(IdleClass.PROFILER))
    ending = timeline.gaps["after_index"][pieces["gap_index"]]
    return by_block(timeline.operations, model.blocks, pieces[["start_ns", "end_ns"]], ending)


def _summed(rows: pl.DataFrame, count: int) -> Ints:
    lengths = (rows["end_ns"] - rows["start_ns"]).to_numpy()
    return np.bincount(rows["block"].to_numpy(), weights=lengths, minlength=count).astype(np.int64)


def _windows_of_calls(model: Model, windows: pl.DataFrame, follows: Bools) -> tuple[Ints, Ints]:
    """Return how much of the calls, and of the time before each, lies in windows that their own launches ended."""
    inside, before = (np.zeros(len(model.calls), np.int64) for _ in range(2))
    call = model.blocks["call"][windows["block"]]
    owned = windows.with_columns(thread=model.calls["thread"][call]).drop_nulls("thread")
    starts, ends = begin_and_end(model.calls)
    free = np.concatenate((starts[:1], ends[:-1]))
    for (thread,), rows in owned.partition_by("thread", as_dict=True).items():
        cover = cover_of(rows.sort("start_ns"))
        mine = (model.calls["thread"] == thread).to_numpy()
        inside[mine] = overlap_with(starts[mine], ends[mine], cover)
        later = mine & follows
        before[later] = overlap_with(free[later], starts[later], cover)
    return inside, before


def remove_tracing(tracing: Tracing, costs: Costs, factor: float = _WHOLE) -> RemoveTracing:
    """Return the change that takes `factor` times the costs away; nothing is taken from where there isn't enough."""
    scaled = costs.scaled(factor)
    total = tracing.nodes @ np.array([getattr(scaled, name).value for name in NODE_KINDS])
    wanted = total * scaled.gap_share.value
    gaps = np.minimum(wanted, tracing.idle_ns)
    inside = np.minimum(total - wanted, tracing.busy_ns)
    excess = excess_of(tracing.calls, costs, factor)
    behind = excess_behind(tracing.calls, costs, factor)
    own = _at(excess, tracing.place)
    return RemoveTracing(
        gaps_ns=gaps,
        inside_ns=inside,
        unplaced_ns=total - gaps - inside,
        queue_ns=np.where(tracing.replays, scaled.replay.value, scaled.eager_operation.value) + tracing.window_ns,
        call_ns=own + tracing.call_window_ns,
        segment_ns=_between(tracing, excess + behind, own)
        + tracing.segment_window_ns
        + tracing.function_edges * scaled.function_range.value / 2,
        kept=_kept(tracing, own),
        least_latency_ns=np.where(tracing.replays, scaled.launch_start.value, 0.0),
    )


def _at(values: Floats, places: Ints) -> Floats:
    """Return the value of each call, 0 where it isn't among those."""
    return np.where(places >= 0, values[places], 0.0) if len(values) else np.zeros(len(places))


def _between(tracing: Tracing, lost: Floats, own: Floats) -> Floats:
    """Return what the time before each of the model's calls lost: behind the call before, and in those left out."""
    before = _lost_before(tracing.calls.thread, lost)
    mine, earlier = _at(before, tracing.place), tracing.before
    known = (earlier >= 0) & (tracing.place >= 0) & (tracing.place[earlier] >= 0)
    return np.where(known, mine - mine[earlier] - own[earlier], 0.0)


def _lost_before(thread: Ints, lost: Floats) -> Floats:
    """Return how much the earlier calls of its thread lost, for each call."""
    order = np.argsort(thread, kind="stable")
    total = np.cumsum(lost[order]) - lost[order]
    first = np.flatnonzero(changes(thread[order]))
    result = np.empty(len(order))
    result[order] = total - np.repeat(total[first], np.diff(first, append=len(order)))
    return result


def _kept(tracing: Tracing, own: Floats) -> Floats:
    """Return which part of each of the model's calls is the program's own."""
    length = _at((tracing.calls.ends - tracing.calls.starts).astype(float), tracing.place)
    return 1.0 - np.divide(own, length, out=np.zeros(len(own)), where=length > 0)
