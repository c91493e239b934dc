"""The recorded run as a graph of events: each node comes a fixed lag after the latest of those it waits for.

Nodes are the begin and end of host calls, of blocks of GPU work, and of collectives inside blocks. A *block* is
one graph replay, with its recorded inside, or a single operation. For every node x that depends on others::

    x = max(source + lag)        over its dependencies

and a node without any keeps its recorded time. The lags are cut from the recording, so that replaying
it unchanged gives it back; a change edits lags, or takes dependencies away.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from bubblefinder.intervals import held_by, one_of
from bubblefinder.lookup import NOWHERE
from bubblefinder.replay.chains import chains_of
from bubblefinder.timeline.rank import Rank

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    import polars as pl

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.replay.chains import Chains

_Answer = TypeVar("_Answer")

_SIGMA: Final = 1.4826
"""Standard deviation over median absolute deviation, of a normal distribution."""


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
class TimedSteps:
    """The timed steps of one rank: their rows in `Model.windows`, and the nodes at which they begin and end."""

    rows: Ints
    begin: Ints
    end: Ints

    def __len__(self) -> int:
        """Return the number of steps."""
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Work:
    """The dependencies that are work of GPUs with timed steps, and the step that each lies in.

    Attributes:
        edges: positions in `Model.edges`.
        window: row in `Model.windows`.
        meets: windows on whose GPU ranks meet.
    """

    edges: Ints
    window: Ints
    meets: Bools


@dataclass(frozen=True, slots=True, eq=False)
class Host:
    """A host on which the run may be replayed, and the GPU beside it.

    Attributes:
        speed: how many times as fast as recorded it works.
        kernels: how many times as long as recorded the GPU's work takes.
        lag: the lags there otherwise, in ns; null for those of the recording.
    """

    speed: float = 1.0
    kernels: float = 1.0
    lag: Ints | None = None


@dataclass(frozen=True, eq=False)
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
            the first operation of the step and of the next), recorded_ns, occupied_ns (time with GPU work or
            inside a replay, or that may hold work without a record), alone_ns (how much of that was one stream's
            alone that mostly ran beside others, see `side_streams`).
        waits: one row a wait: call (position in `calls`), site, group, copy_block (position in
            `blocks`, null if none), synchronises.
        guesses: how many dependencies come from the order seen alone, since the capture doesn't show
            what the work or the wait depended on.
        left_out: how many decode steps, of all ranks, lie outside the part of the capture that is replayed.
        untraced: the hosts that the run may have without the profiler, where what that added can't be told.
        remembered: what was asked of it already, by the question, see `once`.
    """

    recorded: Ints
    edges: Edges
    calls: pl.DataFrame
    blocks: pl.DataFrame
    windows: pl.DataFrame
    waits: pl.DataFrame
    guesses: int
    left_out: int = 0
    untraced: tuple[Host, ...] = ()
    remembered: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, question: Hashable, answer: Callable[[], _Answer]) -> _Answer:
        """Return the answer to a question about this run, found when it is first asked."""
        if question not in self.remembered:
            self.remembered[question] = answer()
        found: _Answer = self.remembered[question]
        return found

    @cached_property
    def chains(self) -> Chains:
        """The nodes in rows, as a replay walks them."""
        return chains_of(
            len(self.recorded), self.edges.source, self.edges.target, np.ones(len(self.edges.lag), np.bool_)
        )

    @cached_property
    def of_kind(self) -> dict[EdgeKind, Ints]:
        """The positions in `edges` of the dependencies of each kind."""
        return {kind: np.flatnonzero(self.edges.kind == kind) for kind in EdgeKind}

    @cached_property
    def steps(self) -> dict[Rank, TimedSteps]:
        """The timed steps of each rank, in the order of `windows`."""
        columns = self.windows[["gpu", "process", "begin", "end"]].with_row_index("row")
        parts = columns.partition_by("gpu", "process", as_dict=True, maintain_order=True)
        return {
            Rank(int(gpu), int(process)): TimedSteps(*(mine[name].to_numpy() for name in ("row", "begin", "end")))
            for (gpu, process), mine in parts.items()
        }

    @cached_property
    def host_spread(self) -> float:
        """How much the host's work varies from step to step: a standard deviation over the median, by medians.

        The steadiest process counts, since the others may just wait for it.
        """
        host = np.flatnonzero(one_of(self.edges.kind, (EdgeKind.SEGMENT, EdgeKind.CALL)))
        process = self.calls["process"].to_numpy()[self.edges.owner[host]]
        of_process = dict(_grouped(process, host))
        spreads = []
        for rank, steps in self.steps.items():
            mine = of_process.get(rank.process, host[:0])
            step = np.searchsorted(np.append(steps.begin, steps.end[-1]), self.edges.target[mine], side="right") - 1
            inside = (step >= 0) & (step < len(steps))
            sums = np.bincount(step[inside], weights=self.edges.lag[mine][inside], minlength=len(steps))
            middle = float(np.median(sums))
            spreads.append(_SIGMA * float(np.median(np.abs(sums - middle))) / middle if middle else 0.0)
        return min(spreads, default=0.0)

    @cached_property
    def work(self) -> Work:
        """The work of the GPUs, and the step that it lies in."""
        work = np.flatnonzero(one_of(self.edges.kind, (EdgeKind.WORK, EdgeKind.MEET)))
        of_gpu = dict(_grouped(self.blocks["gpu"].to_numpy()[self.edges.owner[work]], work))
        started = self.blocks["start_ns"].to_numpy()
        edges, windows, meets = [work[:0]], [work[:0]], np.zeros(len(self.windows), np.bool_)
        for rank, steps in self.steps.items():
            mine = of_gpu.get(rank.gpu, work[:0])
            meets[steps.rows] = (self.edges.kind[mine] == EdgeKind.MEET).any()
            starts = started[self.edges.owner[mine]]
            step = held_by(starts, self.recorded[steps.begin], self.recorded[steps.end])
            inside = step != NOWHERE
            edges.append(mine[inside])
            windows.append(steps.rows[step[inside]].astype(np.int64))
        return Work(np.concatenate(edges), np.concatenate(windows), meets)

    def less_work(self, lag: Ints) -> Ints:
        """Return by how much less the GPU works in each window with other lags, in ns."""
        less = (self.edges.lag - lag)[self.work.edges]
        return np.bincount(self.work.window, weights=less, minlength=len(self.windows)).astype(np.int64)


def _grouped(keys: Ints, values: Ints) -> Iterator[tuple[int, Ints]]:
    """Yield each key and the values that have it, in their order."""
    order = np.argsort(keys, kind="stable")
    bounds = np.flatnonzero(np.diff(keys[order])) + 1
    for part in np.split(order, bounds) if len(keys) else ():
        yield int(keys[part[0]]), values[part]
