"""The nodes of recorded graph replays, told apart by what tracing costs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.lookup import kept
from bubblefinder.trace.model import GRAPH, KERNEL, MEMCPY, MEMSET

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.timeline.model import Timeline

NODE_KINDS: Final = ("kernel_node", "branch_node", "dependent_node", "memset_node", "copy_node")
"""Kinds of nodes that differ in what tracing adds to them, named as in `overhead.model.Costs`."""
_MEMSET_BY_KERNEL_BYTES: Final = 16_384
"""From this size on a memset runs as a kernel and costs what kernels cost: docs/overhead.md."""
_TOLD_BY: Final = ("kind", "start_ns", "end_ns", "stream", "bytes", "replay_index")


def graph_nodes(timeline: Timeline, replays: Ints) -> pl.DataFrame:
    """Return replay_index and node_kind (position in `NODE_KINDS`) of the nodes of some replays."""
    operations = timeline.operations[[*_TOLD_BY]]
    wanted = np.zeros(len(timeline.replays) + 1, np.bool_)
    wanted[replays] = True
    asked = wanted[operations["replay_index"].fill_null(len(timeline.replays)).to_numpy()]
    nodes = kept(operations, asked & (operations["kind"].to_numpy() != GRAPH))
    return nodes.select_seq("replay_index", node_kind=_node_kinds(nodes))


def _node_kinds(nodes: pl.DataFrame) -> pl.Series:
    """Tell what kind of node each is: by its table, and by whether and where its predecessor still ran."""
    if nodes["replay_index"].is_sorted():
        return _kinds_by_replay(nodes)
    order = np.argsort(nodes["replay_index"].to_numpy(), kind="stable")
    kinds = np.empty(len(order), np.int8)
    kinds[order] = _kinds_by_replay(nodes[order]).to_numpy()
    return pl.Series(kinds)


def _kinds_by_replay(nodes: pl.DataFrame) -> pl.Series:
    """Tell the kinds of nodes that are sorted by replay."""
    first = (pl.col("replay_index") != pl.col("replay_index").shift(1)).fill_null(value=True)
    early = ~first & (pl.col("start_ns") < _reach_before(nodes))
    same_stream = first | (pl.col("stream") == pl.col("stream").shift(1))
    number = {name: pl.lit(position, pl.Int8) for position, name in enumerate(NODE_KINDS)}
    kind = (
        pl.when(pl.col("kind") == MEMCPY)
        .then(number["copy_node"])
        .when((pl.col("kind") == MEMSET) & (pl.col("bytes").fill_null(0) < _MEMSET_BY_KERNEL_BYTES))
        .then(number["memset_node"])
        .when(early & same_stream & (pl.col("kind") == KERNEL))
        .then(number["dependent_node"])
        .when(early)
        .then(number["branch_node"])
        .otherwise(number["kernel_node"])
    )
    return nodes.select(kind).to_series()


def _reach_before(nodes: pl.DataFrame) -> pl.Series:
    """Return the running maximum of end before each node of its replay; anything before the first.

    Each replay is laid beyond those before it, so that one running maximum serves them all.
    """
    ends = nodes["end_ns"].to_numpy()
    if not len(ends):
        return pl.Series(ends)
    beyond = nodes["replay_index"].rle_id().to_numpy().astype(np.int64) * (int(ends.max()) - int(ends.min()) + 1)
    reach = np.maximum.accumulate(ends + beyond)
    return pl.Series(np.append(reach[:1], reach[:-1]) - beyond)
