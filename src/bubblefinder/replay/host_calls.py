"""The API calls of all host threads, and what the profiler added to each and behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.intervals import begin_and_end, one_of, outermost
from bubblefinder.lookup import NOWHERE, column_of, kept, places, previous
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.launches import blocked_calls

if TYPE_CHECKING:
    import polars as pl
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
class HostCalls:
    """The outermost API calls of all processes with GPU work, by start.

    Attributes:
        index: position in the timeline's calls.
        starts: when each began.
        ends: when it returned.
        following: when the next call of its thread began, its own end where there is none.
        thread: a small number for its thread.
        role: its `CallRole`.
        nodes: graph nodes it launched on the GPU, -1 where unknown or none.
        held: whether GPU work held it up, so that it could not return before.
    """

    index: Ints
    starts: Ints
    ends: Ints
    following: Ints
    thread: Ints
    role: Ints
    nodes: Ints
    held: Bools


def host_of(timeline: Timeline, span: tuple[int, int] | None = None) -> HostCalls:
    """Return the calls of every process that used a GPU, or those that began between two times, both included."""
    used = [process for device in timeline.devices for process in device.processes]
    calls = timeline.calls[["process", "thread", "start_ns", "end_ns", "role"]].with_row_index("call_index")
    chosen = np.isin(calls["process"].to_numpy(), used)
    if span:
        chosen &= calls["start_ns"].is_between(*span).to_numpy()
    for api in _PROFILERS_OWN:
        chosen &= ~(timeline.calls["api"] == api).fill_null(value=False).to_numpy()
    calls = kept(calls, chosen)
    calls = kept(calls, outermost(calls["thread"].to_numpy(), *begin_and_end(calls))).sort(
        "start_ns", maintain_order=True
    )
    starts, ends = begin_and_end(calls)
    index, role = places(calls["call_index"]), calls["role"].to_numpy().astype(np.int64)
    thread = np.unique(calls["thread"].to_numpy(), return_inverse=True)[1]
    before = previous(thread)
    following = ends.copy()
    following[before[before != NOWHERE]] = starts[before != NOWHERE]
    waited = (role == CallRole.WAIT) & (ends - starts > _AT_ONCE_NS) & _work_ended(timeline, calls)
    return HostCalls(
        index=index,
        starts=starts,
        ends=ends,
        following=following,
        thread=thread,
        role=role,
        nodes=_nodes(timeline)[index],
        held=blocked_calls(timeline)[index] | waited,
    )


def _nodes(timeline: Timeline) -> Ints:
    """Return how many graph nodes each call launched on all GPUs, -1 where unknown or none."""
    call, nodes = (places(timeline.replays[name]) for name in ("call_index", "nodes"))
    known = (call != NOWHERE) & (nodes != NOWHERE)
    counted = np.full(len(timeline.calls), -1)
    counted[call[call != NOWHERE]] = 0
    np.add.at(counted, call[known], nodes[known])
    return counted


def _work_ended(timeline: Timeline, calls: pl.DataFrame) -> Bools:
    """Tell during which calls some GPU work of their process ended."""
    ended = np.zeros(len(calls), np.bool_)
    for rows in calls.with_row_index("place").partition_by("process"):
        process = rows["process"][0]
        gpus = [device.gpu for device in timeline.devices if process in device.processes]
        starts, ends = begin_and_end(rows)
        times = timeline.operations["end_ns"].filter(column_of(timeline.operations, "gpu").is_in(gpus)).to_numpy()
        times = np.sort(times[(times >= starts.min()) & (times <= ends.max())])
        reached = [np.searchsorted(times, moments, side="right") for moments in (starts, ends)]
        ended[rows["place"].to_numpy()] = reached[1] > reached[0]
    return ended


def excess_of(host: HostCalls, costs: Costs, factor: float) -> Floats:
    """Return how much of each call is the profiler's: never less than nothing, never more than the call.

    A graph launch is compared with what the costs say it takes untraced; any other call has its fixed cost. A call that
    GPU work held up has none: it ends when that work ends.
    """
    length = (host.ends - host.starts).astype(float)
    added = np.full(len(length), costs.other_call.value, dtype=float)
    added[host.role == CallRole.LAUNCH_KERNEL] = costs.kernel_call.value
    added[one_of(host.role, (CallRole.COPY, CallRole.MEMSET))] = costs.copy_call.value
    added *= factor
    launches = host.role == CallRole.LAUNCH_GRAPH
    added[launches] = 0.0
    if costs.launch_call and costs.launch_node:
        known = launches & ((host.nodes > 0) | (costs.launch_node.value == 0))
        untraced = costs.launch_call.value + costs.launch_node.value * np.maximum(host.nodes, 0)
        added[known] = (factor * np.maximum(length - untraced, 0.0))[known]
    added[host.held] = 0.0
    within: Floats = np.clip(added, 0.0, length)
    return within


def excess_behind(host: HostCalls, costs: Costs, factor: float) -> Floats:
    """Return how much of the time behind each call, until the next of its thread, is the profiler's."""
    behind: Floats = np.clip(factor * costs.around_call.value, 0.0, host.following - host.ends)
    return np.where(host.held, 0.0, behind)
