"""The ledger written straight from its definition, one moment at a time: slow, plain, and nobody's relative.

It shares no code with the product, so that the two can be wrong only apart.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bubblefinder.trace.model import Trace

    Row = dict[str, Any]
    Ordered = tuple[list[int], dict[int, list[Row]]]

GRAPH_ROW = 3
LAUNCHES = re.compile(
    r"cu(da)?(LaunchKernel|LaunchKernelExC|LaunchCooperativeKernel|GraphLaunch|MemcpyBatchAsync|MemPrefetchAsync)"
    r"(_ptsz)?(_v\d+)?"
)
PROFILER = re.compile(r"CUDA profiling|CUPTI:? Buffer flush", re.IGNORECASE)


def ledger(trace: Trace, gpu: int) -> Counter[str]:
    """Nanoseconds of one GPU by class, `busy` among them; classes without time are absent."""
    mine = [row for row in trace.operations.rows(named=True) if row["gpu"] == gpu]
    operations = [row for row in mine if row["end_ns"] > row["start_ns"]]
    calls = [row | {"api": trace.names[row["name"]]} for row in trace.calls.rows(named=True)]
    launch = {(call["process"], call["correlation"]): call for call in calls}
    for operation in operations:
        operation["call"] = launch.get((operation["process"], operation["correlation"]))
    first, last = min(o["start_ns"] for o in operations), max(o["end_ns"] for o in operations)
    replays = replay_spans(mine)
    processes = {row["process"] for row in mine}
    profiler = [
        (row["start_ns"], row["end_ns"])
        for row in trace.overheads.rows(named=True)
        if row["process"] in processes and PROFILER.match(row["name"])
    ]
    lost = [call for call in lost_launches(trace, calls) if call["process"] in processes]
    edges = {first, last, *(time for o in operations for time in (o["start_ns"], o["end_ns"]))}
    edges |= {time for window in profiler for time in window}
    edges |= {time for call in calls for time in (call["start_ns"], call["end_ns"])}
    edges |= {time for span in replays for time in span}
    busy, flushes, inside = Spans((o["start_ns"], o["end_ns"]) for o in operations), Spans(profiler), Spans(replays)
    ending, beginning = by(operations, "end_ns"), by(operations, "start_ns")
    found: Counter[str] = Counter()
    for start, end in pairwise(sorted(time for time in edges if first <= time <= last)):
        if busy.cover(start):
            found["busy"] += end - start
        elif flushes.cover(start):
            found["profiler"] += end - start
        elif inside.cover(start):
            found["intra_graph"] += end - start
        else:
            found[part_of_gap(ending, beginning, lost, start)] += end - start
    return found


class Spans:
    """Intervals by their start: only those that begin no earlier than the longest is long can hold a moment."""

    def __init__(self, intervals: Iterable[tuple[int, int]]) -> None:
        self._all = sorted(intervals)
        self._longest = max((end - start for start, end in self._all), default=0)

    def cover(self, time: int) -> bool:
        low, high = bisect_left(self._all, (time - self._longest,)), bisect_left(self._all, (time + 1,))
        return any(start <= time < end for start, end in self._all[low:high])


def by(operations: list[Row], side: str) -> Ordered:
    """The times at which operations begin or end, in order, and which do at each."""
    found: dict[int, list[Row]] = {}
    for operation in operations:
        found.setdefault(operation[side], []).append(operation)
    return sorted(found), found


def replay_spans(operations: list[Row]) -> list[tuple[int, int]]:
    """[first start, last end) of everything that one graph launch did on the device."""
    replays: dict[Any, list[Row]] = {}
    for number, operation in enumerate(operations):
        if operation["kind"] == GRAPH_ROW or operation["graph_node"] is not None:
            lonely = number if operation["correlation"] is None else None
            replays.setdefault((operation["process"], operation["correlation"], lonely), []).append(operation)
    return [(min(o["start_ns"] for o in replay), max(o["end_ns"] for o in replay)) for replay in replays.values()]


def lost_launches(trace: Trace, calls: list[Row]) -> list[Row]:
    """Launch calls that succeeded outside of stream capture and have no record on any device."""
    recorded = {(o["process"], o["correlation"]) for o in trace.operations.rows(named=True)}
    return [
        call
        for call in calls
        if LAUNCHES.fullmatch(call["api"])
        and call["return_value"] == 0
        and (call["process"], call["correlation"]) not in recorded
        and not in_capture(calls, call)
    ]


def in_capture(calls: list[Row], call: Row) -> bool:
    depth = 0
    for other in calls:
        if other is call:
            return depth > 0
        if other["thread"] == call["thread"]:
            depth += other["api"].startswith("cudaStreamBeginCapture")
            depth -= other["api"].startswith("cudaStreamEndCapture")
    raise AssertionError("the call is not one of the calls")


def part_of_gap(ending: Ordered, beginning: Ordered, lost: list[Row], time: int) -> str:
    """What an idle moment outside of replays and profiling is, by the launch of the operation that ends its gap."""
    (ends, ended), (starts, started) = ending, beginning
    before = [o["call"] for o in ended[ends[bisect_right(ends, time) - 1]] if o["call"]]
    after = [o["call"] for o in started[starts[bisect_right(starts, time)]] if o["call"]]
    if not after:
        return "unattributed"
    launch = min(after, key=lambda call: call["start_ns"])
    if before and any(taints(call, min(before, key=lambda b: b["start_ns"]), launch, time) for call in lost):
        return "unrecorded"
    if time < launch["start_ns"]:
        return "host_late"
    return "launching" if time < launch["end_ns"] else "queued"


def taints(lost: Row, before: Row, after: Row, time: int) -> bool:
    """Whether a launch without record may have had the GPU busy at a moment between these two launches' work."""
    order: bool = before["start_ns"] < lost["start_ns"] < after["start_ns"] and lost["start_ns"] <= time
    return order and len({before["thread"], lost["thread"], after["thread"]}) == 1
