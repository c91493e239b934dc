"""Graph replays: what one graph launch did on one GPU, and what the capture recorded of graphs at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.lookup import NOWHERE, column_of, kept, nullable, taken, where
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.model import CaptureMode
from bubblefinder.trace.model import GRAPH, KERNEL

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints

_LAUNCH = ("process", "correlation")


def drop_doubled_graphs(operations: pl.DataFrame) -> pl.DataFrame:
    """Leave out GRAPH_TRACE rows whose launch has its nodes recorded too: the nodes tell more."""
    graphs = kept(operations, operations["kind"] == GRAPH).select_seq("kind", "row", *_LAUNCH)
    if graphs.is_empty():
        return operations
    nodes = operations[["graph_node", *_LAUNCH]].filter(pl.col("graph_node").is_not_null())
    doubled = graphs.join(nodes[[*_LAUNCH]].unique(), on=_LAUNCH, how="semi")[["kind", "row"]]
    if doubled.is_empty():
        return operations
    return operations.join(doubled, on=["kind", "row"], how="anti", maintain_order="left")


@dataclass(frozen=True, slots=True)
class LaunchRuns:
    """Neighbouring operations of one launch, so that a graph of 1,800 nodes is joined once.

    Attributes:
        of: for each operation the position of its run.
        runs: gpu, process, correlation, start_ns, end_ns (latest), graph, operations (how many), replayed
            (they belong to a replay), block (a GRAPH_TRACE row), first (position of the first operation).
    """

    of: Ints
    runs: pl.DataFrame


def launch_runs(operations: pl.DataFrame, repeated: pl.Series) -> LaunchRuns:
    """Return the runs of operations sorted by (gpu, start_ns).

    Operations without a correlation id are each a run, and so are those whose id is `repeated`, used for
    several launches: the time of each must tell which.
    """
    columns = operations.select(
        "gpu",
        "process",
        pl.col("correlation").fill_null(-1),
        replayed=(pl.col("kind") == GRAPH) | (pl.col("graph_node").is_not_null() & pl.col("correlation").is_not_null()),
        block=pl.col("kind") == GRAPH,
    )
    new = np.ones(len(operations), np.bool_)
    values = {name: columns[name].to_numpy() for name in columns.columns}
    new[1:] = values["correlation"][1:] == -1
    if len(repeated):
        new[1:] |= columns["correlation"].is_in(repeated.implode()).to_numpy()[1:]
    for column in values.values():
        new[1:] |= column[1:] != column[:-1]
    first = np.flatnonzero(new)
    counts = np.diff(np.append(first, len(operations)))
    ends = operations["end_ns"].to_numpy()
    runs = taken(operations[["gpu", "process", "correlation", "start_ns", "graph"]], first).with_columns(
        end_ns=pl.Series(np.maximum.reduceat(ends, first)) if len(first) else pl.Series([], dtype=pl.Int64),
        operations=pl.Series(counts),
        replayed=pl.Series(values["replayed"][first]),
        block=pl.Series(values["block"][first]),
        first=pl.Series(first),
    )
    return LaunchRuns(np.repeat(np.arange(len(first), dtype=np.int32), counts), runs)


def find_replays(runs: pl.DataFrame) -> tuple[pl.DataFrame, pl.Series]:
    """Return the replays, and for each run the position of its replay (null if it belongs to none).

    A replay is gpu, process, correlation, graph, start_ns, end_ns, nodes, call_index. `nodes` is null for
    one recorded as a GRAPH_TRACE row. Several rows of one launch on one GPU are one replay. Sorted by
    (gpu, start_ns).
    """
    key = ("gpu", "process", "correlation", "call_index", "single")
    replayed = runs.with_row_index("run").pipe(where, pl.col("replayed"))
    replayed = replayed.with_columns(single=pl.when(pl.col("correlation").is_null()).then("run"))
    replays = (
        replayed.group_by(key, maintain_order=True)
        .agg(
            graph=pl.col("graph").first(),
            start_ns=pl.col("start_ns").min(),
            end_ns=pl.col("end_ns").max(),
            nodes=pl.when(~pl.col("block").any()).then(pl.col("operations").sum()),
            runs=pl.col("run"),
        )
        .sort("gpu", "start_ns", "end_ns", maintain_order=True)
    )
    if replays.is_empty():
        return replays.drop("single", "runs"), pl.Series("replay_index", [None] * len(runs), pl.UInt32)
    index = np.full(len(runs), NOWHERE)
    index[replays["runs"].explode().to_numpy()] = np.repeat(np.arange(len(replays)), replays["runs"].list.len())
    return replays.drop("single", "runs"), nullable(index).rename("replay_index")


def capture_mode(operations: pl.DataFrame, calls: pl.DataFrame) -> CaptureMode:
    """Tell what was recorded of CUDA graphs, by the rows that are there.

    Copies and memsets of graphs in a capture without any kernel are no recorded work: the kernels are missing.

    Args:
        operations: of a whole capture; a part of one has the mode of the whole.
        calls: with role and captured.
    """
    nodes = column_of(operations, "graph_node").is_not_null().any()
    if (operations["kind"] == GRAPH).any():
        return CaptureMode.MIXED if nodes else CaptureMode.GRAPH
    if nodes:
        return CaptureMode.NODE if (operations["kind"] == KERNEL).any() else CaptureMode.UNSEEN
    launched = calls.filter(
        (pl.col("role") == CallRole.LAUNCH_GRAPH) & (pl.col("return_value").fill_null(0) == 0) & ~pl.col("captured")
    )
    return CaptureMode.NONE if launched.is_empty() else CaptureMode.UNSEEN
