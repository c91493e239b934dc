"""The tables of an export that are read, said once for SQLite, Parquet and Arrow alike.

Whether a file has a column is asked of the file itself, never guessed from its version; a column or
table that it lacks is null or empty. Integers come through as they are, nulls included. Text has a
reader of its own, because readers that guess a type from the first rows guess wrong on text that
begins with nulls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

Dtype: TypeAlias = type[pl.DataType]

KIND_TABLES: Final = (
    "CUPTI_ACTIVITY_KIND_KERNEL",
    "CUPTI_ACTIVITY_KIND_MEMCPY",
    "CUPTI_ACTIVITY_KIND_MEMSET",
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
)
CALLS_TABLE: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"

LONGEST_TEXT: Final = 4_096
"""Characters kept of any text in a capture. The longest symbols of CUTLASS have some 3,500; a name of megabytes is
damage or an attack, and would go through every stage and into every report."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column to read.

    Attributes:
        source: its name in the export.
        name: its name here.
        dtype: what it becomes; an integer that doesn't fit becomes null.
    """

    source: str
    name: str
    dtype: Dtype = pl.Int64

    @property
    def is_text(self) -> bool:
        """Say whether the column holds text rather than integers."""
        return self.dtype is pl.String


@dataclass(frozen=True, slots=True)
class Table:
    """One table to read.

    Attributes:
        name: its name in the export.
        columns: what is read of it.
        bulk: whether it may hold millions of rows.
        older_name: what older exporters call it.
    """

    name: str
    columns: tuple[Column, ...]
    bulk: bool = False
    older_name: str = ""

    @property
    def schema(self) -> dict[str, Dtype]:
        """Return the names and types of the columns as read, without `row`."""
        return {column.name: column.dtype for column in self.columns}

    def empty(self) -> pl.DataFrame:
        """Return the frame of a table without rows."""
        return pl.DataFrame(schema={"row": pl.UInt32, **self.schema})


@dataclass(frozen=True, slots=True)
class Rows:
    """What a table held.

    Attributes:
        frame: `row` (UInt32, 0-based position as stored) and the table's columns, in stored order.
        unusable: how many rows were left out because a value has the wrong type.
        missing: how many positions between the first and the last row hold no row.
    """

    frame: pl.DataFrame
    unusable: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True)
class Strings:
    """Texts by string id, and how many of those asked for hold something other than text."""

    texts: dict[int, str]
    not_text: int = 0


class StoredColumn(NamedTuple):
    """A column as the export has it: its name and its type in SQLite's words."""

    name: str
    sql_type: str


class Source(Protocol):
    """An opened export of whatever format."""

    format: str

    @property
    def tables(self) -> Collection[str]:
        """Return the names of the tables that the export has."""

    def columns(self, table: Table) -> Collection[str]:
        """Return the columns that this export's version of a table has."""

    def read(self, table: Table) -> Rows:
        """Read a table; an absent one is empty, an absent column null."""

    def strings(self, ids: Iterable[int]) -> Strings:
        """Read the texts of these string ids and of no others."""

    def stored_name(self, table: Table) -> str | None:
        """Return the name of the stored table that `table` is read from."""

    def layout(self, stored: str) -> Sequence[StoredColumn]:
        """Return the columns of a stored table in their order."""

    def records(
        self, stored: str, columns: Sequence[str], places: Sequence[int] | None = None
    ) -> Iterable[tuple[object, ...]]:
        """Return the values of some columns as stored, of the rows at these positions (ascending) or of all."""


def candidates(table: Table, tables: Iterable[str]) -> list[str]:
    """Return the stored tables that may be `table`, best first.

    Some exports number a table's version in its name: ``NVTX_EVENTS_V2``. The plain name comes
    first, then the highest number.
    """
    ranked = []
    for age, name in enumerate(filter(None, (table.name, table.older_name))):
        pattern = re.compile(rf"{name}(?:_V(\d{{1,3}}))?")
        found = ((match[0], int(match[1] or 1_000)) for match in map(pattern.fullmatch, tables) if match)
        ranked += [(age, -version, stored) for stored, version in found]
    return [stored for _, _, stored in sorted(ranked)]


def normalise(raw: pl.DataFrame, table: Table) -> Rows:
    """Give columns read under their own names their declared types.

    Unsigned 64-bit ids keep their bits, booleans become 0 and 1. A value that is not an integer
    where one belongs makes its row unusable.

    Args:
        raw: any of the table's columns under the names in `Column.name`, one row a stored row.
        table: what the columns should be.
    """
    stored = dict(raw.schema)
    row = pl.Series("row", np.arange(raw.height, dtype=np.uint32))
    frame = pl.DataFrame([row, *(_cast(raw, stored.get(column.name), column) for column in table.columns)])
    spoilt = pl.DataFrame([flags for column in table.columns if (flags := _spoilt(raw, frame, column)) is not None])
    if not spoilt.width:
        return Rows(frame)
    lost = spoilt.select(pl.any_horizontal(pl.all())).to_series()
    return Rows(frame.filter(~lost), int(lost.sum()))


def _cast(raw: pl.DataFrame, stored: pl.DataType | None, column: Column) -> pl.Series:
    """Return one column with its declared type, null where it can't be had."""
    if stored is not None and column.is_text and stored in {pl.String, pl.Categorical, pl.Enum}:
        return raw[column.name].cast(pl.String).str.slice(0, LONGEST_TEXT + 1)
    if stored == pl.UInt64 and column.dtype is pl.Int64:
        return raw[column.name].reinterpret(signed=True)
    if stored is not None and not column.is_text and (stored.is_integer() or stored in {pl.Boolean, pl.String}):
        return raw[column.name].cast(column.dtype, strict=False)
    return pl.Series(column.name, [None], column.dtype).new_from_index(0, raw.height)


def _spoilt(raw: pl.DataFrame, frame: pl.DataFrame, column: Column) -> pl.Series | None:
    """Return which values of an integer column were lost to their type, or None if none was."""
    if column.is_text or column.name not in raw.columns or raw.schema[column.name].is_integer():
        return None
    lost = raw[column.name].is_not_null() & frame[column.name].is_null()
    return lost if lost.any() else None


_TIMES = (Column("start", "start_ns"), Column("end", "end_ns"))
_PLACE = (
    Column("deviceId", "device"),
    Column("contextId", "context", pl.Int32),
    Column("streamId", "stream"),
    Column("correlationId", "correlation"),
    Column("globalPid", "global_id"),
)
_THREAD = Column("globalTid", "thread")
_NAME = Column("nameId", "name_id")
_NODE = Column("graphNodeId", "graph_node")
_BYTES = Column("bytes", "bytes")

KERNELS = Table(
    KIND_TABLES[0],
    (*_TIMES, *_PLACE, _NODE, Column("demangledName", "name", pl.Int32), Column("shortName", "short_name", pl.Int32)),
    bulk=True,
)
COPIES = Table(
    KIND_TABLES[1],
    (
        *_TIMES, *_PLACE, _NODE, _BYTES,
        Column("copyKind", "copy_kind", pl.Int8), Column("srcKind", "src_kind", pl.Int8),
        Column("dstKind", "dst_kind", pl.Int8),
    ),
    bulk=True,
)  # fmt: skip
MEMSETS = Table(KIND_TABLES[2], (*_TIMES, *_PLACE, _NODE, _BYTES, Column("memKind", "dst_kind", pl.Int8)), bulk=True)
GRAPHS = Table(
    KIND_TABLES[3],
    (*_TIMES, *_PLACE, Column("graphExecId", "graph"), Column("graphId", "graph_id")),
    bulk=True,
)
OPERATIONS = (KERNELS, COPIES, MEMSETS, GRAPHS)

CALLS = Table(
    CALLS_TABLE,
    (
        *_TIMES, _THREAD, Column("correlationId", "correlation"), Column("nameId", "name", pl.Int32),
        Column("returnValue", "return_value", pl.Int32), Column("callchainId", "callchain"),
    ),
    bulk=True,
)  # fmt: skip
NVTX = Table(
    "NVTX_EVENTS",
    (
        *_TIMES, _THREAD, Column("eventType", "event_type"), Column("domainId", "domain_id"),
        Column("textId", "text_id"), Column("text", "text", pl.String),
    ),
    bulk=True,
)  # fmt: skip
PROFILER_OVERHEAD = Table(
    "PROFILER_OVERHEAD", (*_TIMES, _THREAD, _NAME, Column("overheadType", "overhead_type", pl.Int32)), bulk=True
)
CUPTI_OVERHEAD = Table(
    "CUPTI_ACTIVITY_KIND_OVERHEAD",
    (*_TIMES, _THREAD, _NAME, Column("overheadType", "overhead_type", pl.Int32)),
    bulk=True,
)
OVERHEADS = (PROFILER_OVERHEAD, CUPTI_OVERHEAD)
GRAPH_NODES = Table("CUDA_GRAPH_NODE_EVENTS", (Column("start", "start_ns"), _THREAD, _NODE), bulk=True)
GRAPH_EVENTS = Table("CUDA_GRAPH_EVENTS", (Column("start", "start_ns"), _THREAD, _NODE), bulk=True)
SYNCS = Table(
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
    (
        *_TIMES, *_PLACE, Column("syncType", "sync_type", pl.Int32),
        Column("eventId", "event"), Column("eventSyncId", "event_sync"),
    ),
    bulk=True,
)  # fmt: skip
EVENTS = Table(
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
    (*_PLACE, Column("eventId", "event"), Column("eventSyncId", "event_sync"), Column("timestamp", "timestamp_ns")),
    bulk=True,
)
OS_CALLS = Table("OSRT_API", (*_TIMES, _THREAD, _NAME, Column("nestingLevel", "nesting")), bulk=True)
SCHEDULE = Table("SCHED_EVENTS", (Column("start", "start_ns"), _THREAD, Column("isSchedIn", "scheduled")), bulk=True)
CALLCHAINS = Table(
    "CUDA_CALLCHAINS",
    (Column("id", "callchain"), Column("symbol", "symbol_id"), Column("stackDepth", "depth", pl.Int32)),
    bulk=True,
)

THREAD_NAMES = Table("ThreadNames", (_NAME, _THREAD))
PROCESSES = Table("PROCESSES", (Column("globalPid", "global_id"), Column("name", "name", pl.String)))
GPUS = Table(
    "TARGET_INFO_GPU",
    (
        Column("id", "gpu"), Column("name", "name", pl.String), Column("uuid", "uuid", pl.String),
        Column("memoryBandwidth", "bandwidth"),
    ),
)  # fmt: skip
CUDA_DEVICES = Table(
    "TARGET_INFO_CUDA_DEVICE",
    (Column("gpuId", "gpu"), Column("cudaId", "device"), Column("pid", "pid"), Column("uuid", "uuid", pl.String)),
)
CONTEXTS = Table(
    "TARGET_INFO_CUDA_CONTEXT_INFO",
    (
        Column("hwId", "hw"), Column("vmId", "vm"), Column("processId", "pid"),
        Column("deviceId", "device"), Column("contextId", "context"),
    ),
    older_name="TARGET_INFO_CUDA_NULL_STREAM",
)  # fmt: skip
SYSTEM = Table("TARGET_INFO_SYSTEM_ENV", (Column("name", "name", pl.String), Column("value", "value", pl.String)))
SESSIONS = Table("TARGET_INFO_SESSION_START_TIME", (Column("utcEpochNs", "utc_ns"),))
ANALYSIS = Table("ANALYSIS_DETAILS", (Column("duration", "duration_ns"),))
DIAGNOSTICS = Table("DIAGNOSTIC_EVENT", (Column("severity", "severity"), Column("text", "text", pl.String)))
EXPORT = Table(
    "META_DATA_EXPORT",
    (Column("name", "name", pl.String), Column("value", "value", pl.String)),
    older_name="EXPORT_META_DATA",
)
STRING_IDS = "StringIds"
STRINGS = Table(STRING_IDS, (Column("id", "id"), Column("value", "value", pl.String)))
