"""Which API call launched which operation, which calls left no record, and how far ahead the host ran."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import LONG_AGO, one_of
from bubblefinder.lookup import again, column_of, different, joint_keys, places, positions, repeated, taken, where
from bubblefinder.timeline.apis import CallRole, call_roles
from bubblefinder.trace.model import MEMCPY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.timeline.model import Timeline

LAUNCHES: Final = (CallRole.LAUNCH_KERNEL, CallRole.LAUNCH_GRAPH)
_SEVERAL: Final = re.compile(r"^cu(da)?Mem(cpy(3D)?Batch|Prefetch)")
_KEY: Final = ("process", "correlation")
QUEUED_NS: Final = 20_000
"""A copy behind other work for so long, whose call is still running when it starts, was waited for by that call. Calls
that don't wait take some microseconds."""
USUALLY: Final = 0.5
"""... and so do more than this share of the queued copies of its kind: a call may be slow once."""
_PAGEABLE: Final = 0
_HOST_TO: Final = (1, 3)
_TO_HOST: Final = (2, 4)


def classify_calls(calls: pl.DataFrame, names: Mapping[int, str], graph_nodes: pl.DataFrame) -> pl.DataFrame:
    """Add `api`, `role` and `captured` (issued while its thread was capturing a stream) to the calls."""
    used = different(calls["name"]).sort().to_list()
    known = call_roles({name: names[name] for name in used if name in names})
    lookup = pl.DataFrame(
        {
            "name": list(known),
            "api": [api for api, _ in known.values()],
            "role": [int(role) for _, role in known.values()],
        },
        schema={"name": calls.schema["name"], "api": pl.Categorical, "role": pl.UInt8},
    )
    named = calls.join(lookup, on="name", how="left", maintain_order="left").with_columns(
        pl.col("role").fill_null(int(CallRole.OTHER)),
    )
    return named.with_columns(captured=pl.Series(_captured(named, graph_nodes), dtype=pl.Boolean))


def _captured(calls: pl.DataFrame, graph_nodes: pl.DataFrame) -> Bools:
    """Tell captured launches by begin/end of stream capture and by the graph nodes created inside them."""
    role = calls["role"].to_numpy()
    depth = calls.select(
        (
            (pl.col("role") == CallRole.CAPTURE_BEGIN).cast(pl.Int32)
            - (pl.col("role") == CallRole.CAPTURE_END).cast(pl.Int32)
        )
        .cum_sum()
        .over("thread"),
    ).to_series()
    captured = (depth.to_numpy() > 0) if len(calls) else np.zeros(0, np.bool_)
    if graph_nodes.is_empty() or calls.is_empty():
        return captured
    made = calls[["thread", "start_ns", "end_ns"]].with_row_index("index")
    hits = (
        graph_nodes.sort("start_ns")
        .join_asof(made.sort("start_ns"), left_on="start_ns", right_on="start_ns", by="thread", check_sortedness=False)
        .pipe(where, pl.col("start_ns") <= pl.col("end_ns"))["index"]
        .unique()
        .to_numpy()
    )
    captured = captured.copy()
    captured[hits] = True
    return captured & np.isin(role, [int(r) for r in (*LAUNCHES, CallRole.COPY, CallRole.MEMSET)])


def repeated_correlations(calls: pl.DataFrame) -> pl.Series:
    """Return the correlation ids that several calls of one process share."""
    keyed = joint_keys([calls], *_KEY)
    if keyed is not None:
        return calls["correlation"].filter(repeated(keyed[0][0], keyed[1])).unique()
    known = calls.select(_KEY).filter(pl.col("correlation").is_not_null())
    twice = known.filter(known["correlation"].is_duplicated())
    return twice.filter(twice.is_duplicated())["correlation"].unique()


def _keys(runs: pl.DataFrame, calls: pl.DataFrame) -> list[str]:
    """Return what names a launch: joining by two columns takes far longer, and mostly there is but one process."""
    columns = [column_of(rows, "process") for rows in (runs, calls)]
    several = len({process for column in columns for process in different(column)}) > 1
    return list(_KEY) if several or any(column.null_count() for column in columns) else ["correlation"]


def find_launches(runs: pl.DataFrame, calls: pl.DataFrame, ambiguous: pl.Series) -> pl.Series:
    """Return, for every run of operations, the position in `calls` of its launch call (null if none).

    Joined on (process, correlation), since correlation ids are unique inside a process only. Of
    nested calls with one id the outermost counts; of `ambiguous` ids (several profiling sessions in
    one process) the last that began before the operation.
    """
    keyed = joint_keys([runs, calls], *_KEY) if ambiguous.is_empty() else None
    if keyed is not None:
        (wanted, there), size = keyed
        return positions(there, wanted, size).rename("call_index")
    return _joined(runs, calls, ambiguous)


def _joined(runs: pl.DataFrame, calls: pl.DataFrame, ambiguous: pl.Series) -> pl.Series:
    """Return the same by joins, whatever the ids are."""
    keyed = (
        calls[["start_ns", "end_ns", *_KEY]].with_row_index("call_index").filter(pl.col("correlation").is_not_null())
    )
    keys = _keys(runs, calls)
    if ambiguous.is_empty():
        launched = keyed.select("call_index", *keys)
        return runs.select(keys).join(launched, on=keys, how="left", maintain_order="left")["call_index"]
    first = keyed.unique(keys, keep="first", maintain_order=True).select("call_index", *keys)
    outermost = keyed.filter(
        (pl.col("start_ns") >= pl.col("end_ns").cum_max().shift(1).over(keys)).fill_null(value=True),
    )
    latest = (
        runs.select("start_ns", *keys)
        .with_row_index("position")
        .sort("start_ns")
        .join_asof(
            outermost.select("call_index", "start_ns", *keys).sort("start_ns"),
            on="start_ns",
            by=keys,
            check_sortedness=False,
        )
        .join(first, on=keys, how="left", suffix="_first")
        .sort("position")
    )
    return latest.select(pl.coalesce("call_index", "call_index_first")).to_series().rename("call_index")


def blocking_copies(operations: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """Tell the copies whose call blocked its thread.

    The call ends at or after the copy, and its name has no Async or the host side is pageable; or, whatever its name
    and memory, it was still running when the copy started that had been queued behind other work (a strided copy
    from pinned memory; a pageable upload that returns when its last part is staged), as calls of its kind usually are.
    Copies inside a graph block nobody, however long tracing its nodes makes the launch call.
    """
    called = pl.col("call_index").is_not_null() & pl.col("graph_node").is_null()
    at = operations.select(((pl.col("kind") == MEMCPY) & called).arg_true()).to_series()
    columns = operations[["start_ns", "end_ns", "copy_kind", "src_kind", "dst_kind", "call_index"]]
    copies = taken(columns, at).with_columns(op_index=at, reach=_reach(operations)[at])
    calling = calls.select("api", called_ns="start_ns", returned_ns="end_ns")
    copies = copies.hstack(taken(calling, copies["call_index"])).with_columns(pl.col("api").cast(pl.String))
    pageable = (
        (pl.col("copy_kind").is_in(_TO_HOST) & (pl.col("dst_kind") == _PAGEABLE))
        | (pl.col("copy_kind").is_in(_HOST_TO) & (pl.col("src_kind") == _PAGEABLE))
    ).fill_null(value=False)
    synchronous = ~pl.col("api").str.contains("Async", literal=True)
    named = (pl.col("returned_ns") >= pl.col("end_ns")) & (synchronous | pageable)
    ahead = pl.col("reach").clip(upper_bound="start_ns")
    waited = pl.when(ahead - pl.col("called_ns") >= QUEUED_NS).then(pl.col("returned_ns") >= pl.col("start_ns"))
    usually = waited.mean().over("api", "copy_kind", "src_kind", "dst_kind") > USUALLY
    blocked = copies.pipe(where, named | (waited & usually).fill_null(value=False))
    blocking = np.zeros(len(operations), np.bool_)
    blocking[blocked["op_index"].to_numpy()] = True
    return pl.Series("blocking", blocking)


def blocked_calls(timeline: Timeline) -> Bools:
    """Tell the calls whose copies blocked their thread."""
    blocked = np.zeros(len(timeline.calls) + 1, np.bool_)
    blocked[places(timeline.operations["call_index"].filter(timeline.operations["blocking"]))] = True
    return blocked[:-1]


def _reach(operations: pl.DataFrame) -> pl.Series:
    """Return when all operations before each on its GPU had ended; null for the first."""
    if len(different(column_of(operations, "gpu"))) <= 1:
        return operations["end_ns"].cum_max().shift(1)
    return operations.select(pl.col("end_ns").cum_max().shift(1).over("gpu")).to_series()


def expects_record(calls: pl.DataFrame) -> pl.Series:
    """Tell the launch calls that should have left GPU work: successful, not captured, doing device work.

    Copies and memsets are left out: an empty or host-to-host copy leaves no record, and the call
    doesn't say which it was. Batches of copies and prefetches of managed memory are not: they leave
    records from some collectors and none from others, and move much.
    """
    expected = one_of(calls["role"].to_numpy(), LAUNCHES)
    for api in calls["api"].unique():
        if api is not None and _SEVERAL.search(api):
            expected |= (calls["api"] == api).fill_null(value=False).to_numpy()
    failed = (calls["return_value"] != 0).fill_null(value=False).to_numpy()
    return pl.Series(expected & ~failed & ~calls["captured"].to_numpy())


def launch_leads(running_end: Ints, runs: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Return the launch lead of every call with GPU work, by its first operation on each GPU.

    Args:
        running_end: for each run the running maximum of end before it on its GPU, or LONG_AGO.
        runs: runs of operations with call_index, first and blocking, sorted by (gpu, start).
        calls: the API calls.

    Returns:
        call_index, op_index, gpu, lead_ns (null for the first operation of a GPU), blocking.
    """
    known = (
        runs.select("gpu", "call_index", "blocking", op_index=pl.col("first").cast(pl.UInt32))
        .with_columns(running=pl.Series(running_end))
        .pipe(where, pl.col("call_index").is_not_null())
    )
    alone = not again(known["call_index"].to_numpy(), len(calls))
    firsts = known if alone else known.unique(["gpu", "call_index"], keep="first", maintain_order=True)
    ended = calls["end_ns"][firsts["call_index"]]
    return firsts.select(
        "call_index",
        "op_index",
        "gpu",
        lead_ns=pl.when(pl.col("running") > LONG_AGO).then(pl.col("running") - ended),
        blocking="blocking",
    )
