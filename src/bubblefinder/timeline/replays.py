"""Graph replays: what one graph launch did on one GPU, and what the capture recorded of graphs at all."""

from __future__ import annotations

import polars as pl

from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.model import CaptureMode
from bubblefinder.trace.model import GRAPH

_LAUNCH = ("process", "correlation")


def drop_doubled_graphs(operations: pl.DataFrame) -> pl.DataFrame:
    """Leave out GRAPH_TRACE rows whose launch has its nodes recorded too: the nodes tell more."""
    graphs = operations.filter(pl.col("kind") == GRAPH)
    nodes = operations.filter(pl.col("graph_node").is_not_null())
    if graphs.is_empty() or nodes.is_empty():
        return operations
    doubled = graphs.join(nodes.select(_LAUNCH).unique(), on=_LAUNCH, how="semi").select("kind", "row")
    return operations.join(doubled, on=["kind", "row"], how="anti", maintain_order="left")


def in_replay() -> pl.Expr:
    """Tell the operations that belong to a replay: a GRAPH_TRACE row, or a graph node with a launch."""
    node = pl.col("graph_node").is_not_null() & pl.col("correlation").is_not_null()
    return (pl.col("kind") == GRAPH) | node


def find_replays(operations: pl.DataFrame) -> pl.DataFrame:
    """Return one row a replay: gpu, process, correlation, graph, start_ns, end_ns, nodes, call_index.

    `nodes` is null for a replay recorded as one GRAPH_TRACE row. Several rows of one launch on one
    GPU are one replay. Sorted by (gpu, start_ns).
    """
    grouped = (
        operations.filter(in_replay())
        .group_by(
            "gpu",
            *_LAUNCH,
            "call_index",
            pl.when(pl.col("correlation").is_null()).then("row").alias("_single"),
            maintain_order=True,
        )
        .agg(
            graph=pl.col("graph").first(),
            start_ns=pl.col("start_ns").min(),
            end_ns=pl.col("end_ns").max(),
            nodes=pl.when((pl.col("kind") != GRAPH).all()).then(pl.len().cast(pl.Int64)),
        )
    )
    return grouped.drop("_single").sort("gpu", "start_ns", "end_ns", maintain_order=True)


def replay_indices(operations: pl.DataFrame, replays: pl.DataFrame) -> pl.Series:
    """Return, for every operation, the position of its replay (null if it belongs to none)."""
    keyed = replays.select("gpu", *_LAUNCH, "call_index").with_row_index("replay_index")
    joined = operations.select("gpu", *_LAUNCH, "call_index", "kind", "graph_node").join(
        keyed,
        on=["gpu", *_LAUNCH, "call_index"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return joined.select(pl.when(in_replay()).then("replay_index").alias("replay_index")).to_series()


def capture_mode(operations: pl.DataFrame, calls: pl.DataFrame) -> CaptureMode:
    """Tell what was recorded of CUDA graphs, by the rows that are there."""
    graphs = bool((operations["kind"] == GRAPH).any())
    nodes = operations["graph_node"].is_not_null().any()
    if graphs or nodes:
        return CaptureMode.MIXED if graphs and nodes else CaptureMode.GRAPH if graphs else CaptureMode.NODE
    launched = calls.filter(
        (pl.col("role") == CallRole.LAUNCH_GRAPH) & (pl.col("return_value").fill_null(0) == 0) & ~pl.col("captured")
    )
    return CaptureMode.NONE if launched.is_empty() else CaptureMode.UNSEEN


def select_window(operations: pl.DataFrame, origin_ns: int, window: tuple[int, int] | None) -> pl.DataFrame:
    """Return the operations that start inside the window (nanoseconds from the capture's start, `origin_ns`)."""
    if window is None:
        return operations
    start, end = (origin_ns + bound for bound in window)
    return operations.filter(pl.col("start_ns").is_between(start, end, closed="left"))
