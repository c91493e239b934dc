"""Nodes in rows of which each waits for the one before it alone, so that a replay may sum along them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints


@dataclass(frozen=True, slots=True)
class Chains:
    """The nodes in rows of which each waits for the one before it alone, as a thread's calls do.

    All that a row waits for comes at its first node, so that only these have to be compared one by one, which are two
    in five; the rest are sums.

    Attributes:
        order: all nodes, row by row.
        row: the row of each node.
        start: where each node's row starts in `order`.
        first: the node that each row starts with.
        alone: the dependencies inside rows.
        joining: those of the rows' first nodes, in the order of these.
        source: the row that each of the joining ones comes from.
        target: the row that it leads to.
    """

    order: Ints
    row: Ints
    start: Ints
    first: Ints
    alone: Ints
    joining: Ints
    source: list[int]
    target: list[int]


def chains_of(nodes: int, source: Ints, target: Ints, keep: Bools) -> Chains:
    """Return the rows of a graph, whose dependencies inside rows are all kept.

    Args:
        nodes: how many there are, each after those that it depends on.
        source: the node that each dependency comes from.
        target: the node that depends, in ascending order.
        keep: which dependencies hold.
    """
    lone = np.flatnonzero(keep & (np.bincount(target, minlength=nodes)[target] == 1))
    alone = np.sort(lone[np.unique(source[lone], return_index=True)[1]])
    before = np.arange(nodes)
    before[target[alone]] = source[alone]
    while (earlier := before[before]).tobytes() != before.tobytes():
        before = earlier
    first, row = np.unique(before, return_inverse=True)
    order = np.argsort(row, kind="stable")
    start = np.searchsorted(row[order], row)
    joining = np.delete(np.arange(len(keep)), alone)
    ends = (row[column[joining]].tolist() for column in (source, target))
    return Chains(order, row, start, first, alone, joining, *ends)
