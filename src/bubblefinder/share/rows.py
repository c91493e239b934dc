"""Which rows of an export's tables belong to a part that was cut out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import polars as pl

from bubblefinder.share.tables import ENUMS
from bubblefinder.trace import schema
from bubblefinder.trace.frames import DOMAIN_NAMED
from bubblefinder.trace.schema import Column, Source, Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.trace.model import Trace

_NODES: Final = (Column("start", "start_ns"), Column("graphNodeId", "node"), Column("originalGraphNodeId", "original"))
_MEMORY: Final = Table("CUDA_GPU_MEMORY_USAGE_EVENTS", (Column("start", "start_ns"),), bulk=True)
_WHOLE: Final = (
    schema.GPUS, schema.CUDA_DEVICES, schema.CONTEXTS, Table("TARGET_INFO_CUDA_STREAM", ()), schema.SYSTEM,
    schema.SESSIONS, schema.ANALYSIS, schema.DIAGNOSTICS, Table("META_DATA_CAPTURE", ()), schema.EXPORT,
)  # fmt: skip


class Kept(NamedTuple):
    """Rows of a stored table that a slice holds under a name of its own; null instead of positions for every row."""

    stored: str
    name: str
    places: list[int] | None


def kept_rows(source: Source, part: Trace) -> Iterator[Kept]:
    """Yield what a part of an export, with `row` as there, holds of its tables, but for the strings: rows show them."""
    for table, rows in _events(source, part):
        stored = source.stored_name(table)
        if stored is not None and len(rows):
            yield Kept(stored, table.name, rows.unique().sort().to_list())
    for table in _WHOLE:
        stored = source.stored_name(table)
        if stored is not None:
            yield Kept(stored, stored if stored == table.older_name else table.name, None)
    for stored in sorted(source.tables):
        if stored.startswith(ENUMS):
            yield Kept(stored, stored, None)


def _events(source: Source, part: Trace) -> Iterator[tuple[Table, pl.Series]]:
    """Yield the tables that hold events, threads and processes, with the positions of the rows to keep."""
    for kind, table in enumerate(schema.OPERATIONS):
        yield table, part.operations.filter(pl.col("kind") == kind)["row"]
    for table in schema.OVERHEADS:
        yield table, part.overheads.filter(pl.col("table") == table.name)["row"]
    yield schema.CALLS, part.calls["row"]
    yield schema.SYNCS, part.syncs["row"]
    yield schema.EVENTS, part.events["row"]
    yield schema.OS_CALLS, part.os_calls["row"]
    yield schema.NVTX, pl.concat([part.nvtx["row"], _rows(source, schema.NVTX, pl.col("event_type") == DOMAIN_NAMED)])
    yield schema.SCHEDULE, _switches(source, part)
    chains = pl.col("callchain").is_in(part.frames["callchain"].unique().implode())
    yield schema.CALLCHAINS, _rows(source, schema.CALLCHAINS, chains)
    for table in (schema.GRAPH_NODES, schema.GRAPH_EVENTS):
        yield table, _nodes(source, part, table)
    yield _MEMORY, _rows(source, _MEMORY, _meanwhile(part))
    yield schema.THREAD_NAMES, _rows(source, schema.THREAD_NAMES, pl.col("thread").is_in(list(part.thread_names)))
    yield schema.PROCESSES, _processes(source, part)


def _rows(source: Source, table: Table, wanted: pl.Expr) -> pl.Series:
    return source.read(table).frame.filter(wanted)["row"]


def _meanwhile(part: Trace) -> pl.Expr:
    """Tell what began while the calls of the part ran."""
    calls = part.calls if part.calls.height else part.operations
    return pl.col("start_ns").is_between(pl.lit(calls["start_ns"].min()), pl.lit(calls["end_ns"].max()))


def _switches(source: Source, part: Trace) -> pl.Series:
    """Return the switches of each thread between which it was off its CPU, those back in included."""
    away = part.off_cpu.group_by("thread").agg(first=pl.col("start_ns").min(), last=pl.col("end_ns").max())
    switches = source.read(schema.SCHEDULE).frame.join(away, on="thread")
    return switches.filter(pl.col("start_ns").is_between("first", "last"))["row"]


def _nodes(source: Source, part: Trace, table: Table) -> pl.Series:
    """Return how the graph nodes that ran were made, their originals too, and those made meanwhile."""
    made = source.read(Table(table.name, _NODES, bulk=True)).frame
    used = part.operations["graph_node"].drop_nulls().unique()
    while len(added := _originals(made, used)):
        used = pl.concat([used, added])
    return made.filter(_meanwhile(part) | pl.col("node").is_in(used.implode()))["row"]


def _originals(made: pl.DataFrame, nodes: pl.Series) -> pl.Series:
    """Return the nodes, not among these, that these were copied from."""
    known = made.filter(pl.col("node").is_in(nodes.implode()))["original"].drop_nulls().unique()
    return known.filter(~known.is_in(nodes.implode()))


def _processes(source: Source, part: Trace) -> pl.Series:
    key = (pl.col("global_id") // (1 << 24)) & 0xFF_FFFF_FFFF
    return _rows(source, schema.PROCESSES, key.is_in([process.process for process in part.info.processes]))
