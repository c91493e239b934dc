"""Numbering of the nodes of a run, and the dependencies gathered between them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.intervals import begin_and_end
from bubblefinder.replay.model import EdgeKind, Edges

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.intervals import Bools, Ints


@dataclass(frozen=True, slots=True)
class Spans:
    """Intervals of one sort, with the numbers of the nodes at which each begins and ends."""

    starts: Ints
    ends: Ints
    begin: Ints
    end: Ints

    def after(self, positions: Ints, times: Ints) -> tuple[Ints, Ints]:
        """Return the node of each interval that later times hang on, and the distance from it.

        That is its end; the begin of one that takes no time or lasts beyond the time.
        """
        whole = (self.ends[positions] <= times) & (self.ends[positions] > self.starts[positions])
        source = np.where(whole, self.end[positions], self.begin[positions])
        return source, times - np.where(whole, self.ends[positions], self.starts[positions])


@dataclass(slots=True)
class Nodes:
    """The nodes of calls, blocks and collectives, numbered in this order, and their dependencies."""

    calls: Spans
    blocks: Spans
    meets: Spans
    edges: list[tuple[Ints, Ints, Ints, Ints, Ints]] = field(default_factory=list)

    @classmethod
    def of(cls, calls: pl.DataFrame, blocks: pl.DataFrame, meets: pl.DataFrame) -> Nodes:
        """Number the nodes of three frames with start_ns and end_ns."""
        sorts: list[Spans] = []
        count = 0
        for rows in (calls, blocks, meets):
            starts, ends = begin_and_end(rows)
            numbers = np.arange(len(rows))
            sorts.append(Spans(starts, ends, count + numbers, count + len(rows) + numbers))
            count += 2 * len(rows)
        return cls(sorts[0], sorts[1], sorts[2])

    def add(self, kind: EdgeKind, source: Ints, target: Ints, lag: Ints, owner: Ints) -> None:
        """Take in dependencies of one kind."""
        self.edges.append((source, target, lag, np.full(len(source), int(kind)), owner))

    def ordered(self) -> tuple[Ints, Ints, Edges]:
        """Return the recorded times in an order that follows the dependencies, each node's place in it, and the edges.

        Dependencies that the recorded times contradict (the clocks of host and GPU differ by a few us) are left out.
        """
        sorts = (self.calls, self.blocks, self.meets)
        times = np.concatenate([part for spans in sorts for part in (spans.starts, spans.ends)])
        order = np.lexsort(
            (np.concatenate([part for rank, spans in enumerate(sorts) for part in _ranks(rank, spans)]), times)
        )
        place = np.empty(len(times), np.int64)
        place[order] = np.arange(len(times))
        source, target, lag, kind, owner = (np.concatenate(column) for column in zip(*self.edges, strict=True))
        source, target = place[source], place[target]
        keep: Bools = source < target
        by_target = np.flatnonzero(keep)[np.argsort(target[keep], kind="stable")]
        return times[order], place, Edges(*(column[by_target] for column in (source, target, lag, kind, owner)))


def _ranks(sort: int, spans: Spans) -> tuple[Ints, Ints]:
    """Return what comes first at one time: ends (of collectives first), begins, then ends of what took no time."""
    instant = spans.ends == spans.starts
    return np.full(len(spans.starts), 3 + sort), np.where(instant, 8 - sort, 2 - sort)
