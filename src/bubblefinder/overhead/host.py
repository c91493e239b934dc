"""The host threads of a lane: their API calls, and what the profiler added to each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.model import on_gpu

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.overhead.model import Costs
    from bubblefinder.timeline.model import Timeline

    Floats = NDArray[np.float64]


_PROFILERS_OWN: Final = ("cuKernelGetName", "cuKernelGetAttribute")
"""Nsight Systems itself makes these in the launching thread, once a kernel launch."""

_AT_ONCE_NS: Final = 20_000
"""A wait shorter than this found its work done: traced, such a call takes a few microseconds."""


@dataclass(frozen=True, slots=True)
class Host:
    """The outermost API calls of the processes on one GPU, by start.

    Attributes:
        index: position in the timeline's calls.
        starts: when each began.
        ends: when it returned.
        following: when the next call of its thread began, its own end where there is none.
        thread: a small number for its thread.
        role: its `CallRole`.
        nodes: graph nodes it launched on the GPU, -1 where unknown or none.
        held: whether GPU work held it up, so that it could not return before.
        settled: whether it found all submitted work done, and so can't return before that work either.
    """

    index: Ints
    starts: Ints
    ends: Ints
    following: Ints
    thread: Ints
    role: Ints
    nodes: Ints
    held: Bools
    settled: Bools


def host_of(timeline: Timeline, gpu: int) -> Host:
    """Return the calls of every process that used the GPU."""
    device = next(one for one in timeline.devices if one.gpu == gpu)
    operations = on_gpu(timeline.operations.select("gpu", "end_ns", "blocking", "call_index"), gpu)
    reach = pl.col("end_ns").cum_max().shift(1).over("thread")
    calls = (
        timeline.calls.with_row_index("call_index")
        .filter(pl.col("process").is_in(device.processes))
        .filter(~pl.col("api").cast(pl.String).is_in(_PROFILERS_OWN).fill_null(value=False))
        .filter((pl.col("start_ns") >= reach).fill_null(value=True))
        .sort("start_ns", maintain_order=True)
    )
    nodes = timeline.replays.filter(pl.col("gpu") == gpu).group_by("call_index").agg(nodes=pl.col("nodes").sum())
    counted = calls.join(nodes, on="call_index", how="left", maintain_order="left")
    starts, ends = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    waits = calls["role"].to_numpy() == CallRole.WAIT
    held = _blocked(operations, calls) | (waits & (ends - starts > _AT_ONCE_NS) & _work_ended(operations, starts, ends))
    following = calls.select(pl.col("start_ns").shift(-1).over("thread").fill_null(pl.col("end_ns"))).to_series()
    whole = ~calls["api"].cast(pl.String).str.contains("Event", literal=True).fill_null(value=True).to_numpy()
    return Host(
        index=calls["call_index"].to_numpy().astype(np.int64),
        starts=starts,
        ends=ends,
        following=following.to_numpy(),
        thread=calls["thread"].rank("dense").to_numpy().astype(np.int64),
        role=calls["role"].to_numpy().astype(np.int64),
        nodes=counted["nodes"].fill_null(-1).to_numpy().astype(np.int64),
        held=held,
        settled=waits & whole & ~held,
    )


def _blocked(operations: pl.DataFrame, calls: pl.DataFrame) -> Bools:
    """Tell the copies that blocked their thread."""
    copies = operations["call_index"].filter(operations["blocking"]).drop_nulls().unique()
    return calls["call_index"].is_in(copies.implode()).to_numpy()


def _work_ended(operations: pl.DataFrame, starts: Ints, ends: Ints) -> Bools:
    """Tell during which intervals some GPU work ended."""
    times = np.sort(operations["end_ns"].to_numpy())
    return np.searchsorted(times, ends, side="right") > np.searchsorted(times, starts, side="right")


def excess_of(host: Host, costs: Costs, factor: float) -> Floats:
    """Return how much of each call is the profiler's: never less than nothing, never more than the call.

    A graph launch is compared with what the costs say it takes untraced; any other call has its fixed cost. A call that
    GPU work held up has none: it ends when that work ends.
    """
    length = (host.ends - host.starts).astype(float)
    added = np.full(len(length), costs.other_call.value, dtype=float)
    added[host.role == CallRole.LAUNCH_KERNEL] = costs.kernel_call.value
    added[np.isin(host.role, (CallRole.COPY, CallRole.MEMSET))] = costs.copy_call.value
    added *= factor
    launches = host.role == CallRole.LAUNCH_GRAPH
    added[launches] = 0.0
    if costs.launch_call and costs.launch_node:
        known = launches & (host.nodes > 0)
        untraced = costs.launch_call.value + costs.launch_node.value * host.nodes
        added[known] = (factor * np.maximum(length - untraced, 0.0))[known]
    added[host.held] = 0.0
    within: Floats = np.clip(added, 0.0, length)
    return within


def excess_behind(host: Host, costs: Costs, factor: float) -> Floats:
    """Return how much of the time behind each call, until the next of its thread, is the profiler's."""
    behind: Floats = np.clip(factor * costs.around_call.value, 0.0, host.following - host.ends)
    return np.where(host.held, 0.0, behind)
