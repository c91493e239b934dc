"""The recorded run as a graph of events: each node comes a fixed lag after the latest of those it waits for.

Nodes are the begin and end of host calls, of blocks of GPU work, and of collectives inside blocks. A *block* is
one graph replay, with its recorded inside, or a single operation. For every node x that depends on others::

    x = max(source + lag)        over its dependencies

and a node without any keeps its recorded time. The lags are cut from the recording, so that replaying
it unchanged gives it back; a change edits lags, or takes dependencies away.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.intervals import Ints


class EdgeKind(IntEnum):
    """What a dependency stands for.

    `owner` is a position in `Model.calls` for SEGMENT, CALL, AWAIT and HANDOVER, in `Model.blocks` for the rest.
    """

    SEGMENT = 0
    """The thread's own work between two calls; owner: the later call."""
    CALL = 1
    """The time inside a call that isn't waiting."""
    AWAIT = 2
    """From the end of awaited GPU work to the return of the call that waits."""
    LAUNCH = 3
    """From the begin of a launch call to the earliest start of its work."""
    QUEUE = 4
    """From the end of the work before, in its stream or by an event, to the start of a block; to the end of one that
    began before it."""
    WORK = 5
    """The inside of a block."""
    MEET = 6
    """From the arrival of the last rank in a collective to its end."""
    HANDOVER = 7
    """From the end of another thread's wait to the next call of the thread it held up; owner: that call."""
    SEEN = 8
    """As QUEUE, but told by the order seen alone: the capture doesn't show that the work had to wait."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Dependencies, sorted by the node that depends: `target` comes at least `lag` after `source`."""

    source: Ints
    target: Ints
    lag: Ints
    kind: Ints
    owner: Ints


@dataclass(frozen=True, slots=True)
class Model:
    """A recorded run, ready to be replayed.

    Attributes:
        recorded: when each node was, in an order in which every node follows what it depends on.
        edges: the dependencies.
        calls: call_index (in `timeline.calls`), thread, process, api_role, start_ns, end_ns, waits
            (Boolean), begin and end (nodes of this graph).
        blocks: gpu, process, stream, kind, role, start_ns, end_ns, call (position in `calls`, null if
            unknown), op_index (first operation), replay_index, copy_kind, intra_ns (idle inside a
            replay, null where not measured), nodes (of the CUDA graph), begin and end (nodes of this one).
        windows: one row a closed decode step that can be timed: gpu, process, begin and end (nodes:
            the first operation of the step and of the next), recorded_ns, busy_ns (time with GPU work, or
            that may hold some without a record).
        waits: one row a wait: call (position in `calls`), site, group, copy_block (position in
            `blocks`, null if none), synchronises.
        guesses: how many dependencies come from the order seen alone, since the capture doesn't show
            what the work or the wait depended on.
        left_out: how many decode steps, of all ranks, lie outside the part of the capture that is replayed.
    """

    recorded: Ints
    edges: Edges
    calls: pl.DataFrame
    blocks: pl.DataFrame
    windows: pl.DataFrame
    waits: pl.DataFrame
    guesses: int
    left_out: int = 0
