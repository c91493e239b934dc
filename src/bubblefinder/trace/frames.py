"""The frames of a Trace from the tables of an export, before any string id is looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.lookup import column_of, joint_keys, order_of, repeated, where
from bubblefinder.trace import schema
from bubblefinder.trace.columns import FRAMES

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.trace.quality import Tally
    from bubblefinder.trace.schema import Source, Table

DOMAIN_NAMED: Final = 75
_RANGES: Final = (59, 60, 70, 71)
_UNSET: Final = (-1, 0xFFFF_FFFF)
_RAW_CUPTI_TYPE: Final = 65_536
_DEEPEST_FRAME: Final = 64
"""PyTorch's own functions between a Python call and CUDA's take up to thirty frames."""
_LATEST_NS: Final = 1 << 62
_AS_STORED: Final = ("start_ns", "end_ns", "device", "context", "stream", "thread")
_UPPER_HALF: Final = pl.col("graph_node") // (1 << 32) & 0xFFFF_FFFF

_OPERATION: Final = {
    name: pl.Int64 if name == "device" else getattr(pl, one.dtype)
    for name, one in FRAMES["operations"].items()
    if name != "gpu"
}
"""Operations before their device is told: its number has all the bits that were stored."""


def process_key(column: str) -> pl.Expr:
    """Return the process key of a column of globalPid or globalTid, see `model.process_of`."""
    return (pl.col(column) // (1 << 24) & 0xFF_FFFF_FFFF).alias("process")


def in_time_order(frame: pl.DataFrame, *, within: str | None = None) -> pl.DataFrame:
    """Sort by (start_ns, end_ns), open ends last, and lay each column out in one piece.

    The frame given is emptied on the way, times first, so that it never exists twice. A column of one value is kept as
    that value alone: neither it nor what is picked from it takes memory.

    Args:
        frame: with start_ns and end_ns.
        within: the column to sort by before these, if any.
    """
    if frame.is_empty():
        return frame
    ends = frame["end_ns"].fill_null(_LATEST_NS) if frame["end_ns"].null_count() else frame["end_ns"]
    times = [frame["start_ns"].to_numpy(), ends.to_numpy()]
    order = order_of(times if within is None or _is_constant(frame[within]) else [frame[within].to_numpy(), *times])
    names = frame.columns
    alike, laid = [], []
    for name in sorted(names, key=lambda name: name not in _AS_STORED):
        column = frame.drop_in_place(name)
        if name != "start_ns" and _is_constant(column):
            alike.append(pl.lit(column[0], dtype=column.dtype).alias(name))
        else:
            laid.append(_laid(column, order))
    ordered = pl.DataFrame(laid)
    return (ordered.with_columns_seq(alike) if alike else ordered)[names]


def _laid(column: pl.Series, order: Ints | None) -> pl.Series:
    """Return a column in one piece, in another order if one is given; where numpy can, the next one uses its memory."""
    if order is None:
        return column.rechunk()
    if column.has_nulls() or not column.dtype.is_numeric():
        return column[pl.Series(order)]
    return pl.Series(column.name, column.to_numpy()[order])


def _is_constant(column: pl.Series) -> bool:
    """Say whether all values are alike, and there are any."""
    nulls = column.null_count()
    return len(column) > 0 and (nulls == len(column) or (not nulls and column.min() == column.max()))


def read(source: Source, table: Table, tally: Tally) -> pl.DataFrame:
    """Read a table and count the rows that are missing and those whose values have the wrong type."""
    rows = source.read(table)
    tally.unusable[table.name] += rows.unusable
    tally.missing[table.name] += rows.missing
    return rows.frame


def timed(frame: pl.DataFrame, table: Table, tally: Tally, *, open_end: bool = False) -> pl.DataFrame:
    """Leave out and count the rows whose times are missing or impossible.

    Both zero means that the time could not be collected; a zero start alone is a clock that starts
    at zero. Times that no clock reaches are impossible too: differences of what is left can't overflow.
    """
    if _well_timed(frame["start_ns"], frame["end_ns"]):
        return frame
    start, end = pl.col("start_ns"), pl.col("end_ns")
    missing = start.is_null() if open_end else start.is_null() | end.is_null()
    beyond = (start < -_LATEST_NS) | (end > _LATEST_NS)
    invalid = (((start == 0) & (end == 0)) | (end < start) | beyond).fill_null(value=False)
    untimed, impossible = frame.select(missing.sum(), (invalid & ~missing).sum().alias("impossible")).row(0)
    tally.untimed[table.name] += untimed
    tally.invalid[table.name] += impossible
    return frame.filter(~missing & ~invalid) if untimed or impossible else frame


def _well_timed(starts: pl.Series, ends: pl.Series) -> bool:
    """Tell whether nothing is wrong with any of some times, as is usual."""
    if starts.null_count() or ends.null_count():
        return False
    start, end = starts.to_numpy(), ends.to_numpy()
    within = start.min(initial=0) >= -_LATEST_NS and end.max(initial=0) <= _LATEST_NS
    return within and not ((end < start) | ((start == 0) & (end == 0))).any()


def _none_if_zero(frame: pl.DataFrame, name: str) -> pl.Series:
    """Return a column with 0 as null: Nsight Systems writes either for "none"."""
    column = frame[name]
    present = column != 0
    return column if present.all() else column.zip_with(present, column.clear(len(column)))


def read_operations(source: Source, tally: Tally) -> pl.DataFrame:
    """Read kernels, copies, memsets and graph launches into one frame, `device` still as stored."""
    return pl.concat([_operations_of(kind, table, source, tally) for kind, table in enumerate(schema.OPERATIONS)])


def _operations_of(kind: int, table: Table, source: Source, tally: Tally) -> pl.DataFrame:
    """Read one table of operations into the common columns."""
    rows = timed(read(source, table, tally), table, tally)
    if rows.is_empty():
        return pl.DataFrame(schema=_OPERATION)
    derived = [pl.lit(kind, dtype=pl.UInt8).alias("kind"), process_key("global_id"), _none_if_zero(rows, "correlation")]
    if "graph_node" in rows.columns:
        rows = rows.with_columns(_none_if_zero(rows, "graph_node"))
        derived.append(_UPPER_HALF.alias("graph"))
    if "graph_id" in rows.columns:
        derived.append(pl.coalesce("graph", "graph_id").alias("graph"))
    if "short_name" in rows.columns:
        derived.append(pl.coalesce("name", "short_name").alias("name"))
    rows = rows.with_columns_seq(derived)
    absent = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in _OPERATION.items() if name not in rows.columns]
    return rows.with_columns_seq(absent)[[*_OPERATION]]


def read_calls(source: Source, tally: Tally) -> pl.DataFrame:
    """Read the runtime and driver API calls, each once."""
    rows = timed(read(source, schema.CALLS, tally), schema.CALLS, tally)
    nobody = rows["thread"].null_count()
    tally.without_thread += nobody
    rows = rows.drop_nulls("thread") if nobody else rows
    rows = rows.select(
        "row", "start_ns", "end_ns", process_key("thread"), "thread", _none_if_zero(rows, "correlation"),
        "name", "return_value", _none_if_zero(rows, "callchain"),
    )  # fmt: skip
    return _once(in_time_order(rows))


def _once(calls: pl.DataFrame) -> pl.DataFrame:
    """Leave out the rows that tell of a call again: those inside another of their thread with the same correlation id.

    A capture with call chains has two rows a call: that of the tool which walked the stack, with the chain, around
    CUPTI's own.
    """
    key = ["thread", "correlation"]
    keyed = joint_keys([calls], *key)
    rows = calls["correlation"].is_not_null() if keyed is None else repeated(keyed[0][0], keyed[1])
    if not rows.any():
        return calls
    ordered = calls.lazy().select(*key, "start_ns", "end_ns").with_row_index("position").filter(rows)
    reach = pl.col("end_ns").cum_max().shift(1).over(key)
    again = ordered.sort(*key, "start_ns", -pl.col("end_ns")).filter(pl.col("end_ns") <= reach)
    inner = again.select("position").collect()["position"]
    kept = np.ones(len(calls), np.bool_)
    kept[inner.to_numpy()] = False
    return calls.filter(pl.Series(kept))


def read_nvtx(source: Source, tally: Tally) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the NVTX ranges, and the rows that name a domain of a process."""
    rows = read(source, schema.NVTX, tally).with_columns(process_key("thread"))
    tally.nvtx_rows = rows.height
    domains = rows.pipe(where, pl.col("event_type") == DOMAIN_NAMED)
    ranges = timed(rows.pipe(where, pl.col("event_type").is_in(_RANGES)), schema.NVTX, tally, open_end=True)
    return in_time_order(ranges), domains


def read_overheads(source: Source, tally: Tally) -> pl.DataFrame:
    """Read what the profiler says it cost itself; raw CUPTI types are shifted down to Nsight Systems' numbers."""
    kind = pl.col("overhead_type")
    parts = [
        timed(read(source, table, tally), table, tally).select(
            pl.lit(table.name).alias("table"), "row", "start_ns", "end_ns", process_key("thread"), "thread", "name_id",
            pl.when(kind >= _RAW_CUPTI_TYPE).then(kind // _RAW_CUPTI_TYPE).otherwise(kind).alias("overhead_type"),
        )
        for table in schema.OVERHEADS
    ]  # fmt: skip
    return in_time_order(pl.concat(parts))


def read_graph_nodes(source: Source, tally: Tally) -> pl.DataFrame:
    """Read when each graph node was made; before 2024 the table of graphs held them."""
    holds_nodes = "graphNodeId" in source.columns(schema.GRAPH_EVENTS)
    tables = [schema.GRAPH_NODES, *([schema.GRAPH_EVENTS] if holds_nodes else [])]
    parts = [read(source, table, tally)[["start_ns", "thread"]] for table in tables]
    return pl.concat(parts).drop_nulls("start_ns").sort("start_ns")


def read_syncs(source: Source, tally: Tally) -> pl.DataFrame:
    """Read the synchronisations as CUPTI saw them; ids that mean "none" become null."""
    rows = timed(read(source, schema.SYNCS, tally), schema.SYNCS, tally)
    unset = [
        pl.when(~pl.col(name).is_in(_UNSET)).then(pl.col(name)).alias(name)
        for name in ("stream", "event", "event_sync")
    ]
    ordered = in_time_order(rows.with_columns(unset))
    return ordered.select(
        "row", "start_ns", "end_ns", process_key("global_id"), "stream", _none_if_zero(ordered, "correlation"),
        "sync_type", "event", "event_sync",
    )  # fmt: skip


def read_events(source: Source, tally: Tally) -> pl.DataFrame:
    """Read the CUDA events that were recorded; a timestamp of 0 was not collected."""
    rows = read(source, schema.EVENTS, tally)
    return rows.select(
        "row", process_key("global_id"), "context", "stream", _none_if_zero(rows, "correlation"), "event", "event_sync",
        _none_if_zero(rows, "timestamp_ns"),
    )  # fmt: skip


def read_os_calls(source: Source, tally: Tally, calls: pl.DataFrame) -> pl.DataFrame:
    """Read the outermost operating system calls of threads that call CUDA; those inside another would count twice."""
    rows = read(source, schema.OS_CALLS, tally).pipe(where, pl.col("nesting").fill_null(0) == 0)
    theirs = timed(rows, schema.OS_CALLS, tally).pipe(where, of_threads(calls))
    return in_time_order(theirs)[["row", "start_ns", "end_ns", "thread", "name_id"]]


def of_threads(calls: pl.DataFrame) -> pl.Expr:
    """Tell the rows of threads that made any of these calls."""
    return pl.col("thread").is_in(column_of(calls, "thread").unique().implode())


def read_off_cpu(source: Source, tally: Tally, calls: pl.DataFrame) -> pl.DataFrame:
    """Read when the threads that call CUDA were off their CPUs: from each switch out to the next switch in."""
    switches = read(source, schema.SCHEDULE, tally)
    if switches.is_empty():
        return switches.rename({"scheduled": "end_ns"})[["row", "start_ns", "end_ns", "thread"]]
    switches = switches.filter(of_threads(calls))
    ordered = switches.drop_nulls(["start_ns", "scheduled"]).sort("thread", "start_ns", maintain_order=True)
    back = pl.col("scheduled").shift(-1).over("thread") != 0
    away = ordered.with_columns(end_ns=pl.when(back).then(pl.col("start_ns").shift(-1).over("thread")))
    return in_time_order(away.filter((pl.col("scheduled") == 0) & pl.col("end_ns").is_not_null())).select(
        "row", "start_ns", "end_ns", "thread"
    )


def read_callchains(source: Source, tally: Tally, calls: pl.DataFrame) -> pl.DataFrame:
    """Read the innermost frames of the call chains that calls refer to."""
    wanted = column_of(calls, "callchain").drop_nulls().unique()
    if wanted.is_empty():
        return schema.CALLCHAINS.empty()
    rows = read(source, schema.CALLCHAINS, tally)
    return rows.filter((pl.col("depth") < _DEEPEST_FRAME) & pl.col("callchain").is_in(wanted.implode())).sort(
        "callchain", "depth"
    )
