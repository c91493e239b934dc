"""Writes SQLite exports as the generations of Nsight Systems do, so that a test can hold any capture it likes.

`write` takes rows by table; `export` takes a whole Trace, so that loading what it wrote must give the
same Trace again.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from bubblefinder.trace.model import GRAPH, KERNEL, MEMCPY, MEMSET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from bubblefinder.trace.model import Trace

    Row = Mapping[str, Any]

GENERATIONS = ("none", "3.0", "3.7", "3.11", "3.20", "3.28")
NO_EVENT = 0xFFFF_FFFF

# A column is `name`, with `!` in front if it can't be null, `@` the first generation that has it, `~` the first
# that has it no more, `:` a type other than INTEGER. The same goes for tables.
TABLES = {
    "StringIds": "!id !value:TEXT",
    "EXPORT_META_DATA@3.0~3.7": "!name:TEXT value:TEXT",
    "ANALYSIS_DETAILS": "!globalVid !duration !startTime !stopTime",
    "PROCESSES@3.0": "globalPid pid name:TEXT",
    "ThreadNames": "!nameId priority globalTid",
    "TARGET_INFO_GPU": "!vmId !id name:TEXT busLocation:TEXT uuid:TEXT smCount cuDevice",
    "TARGET_INFO_CUDA_DEVICE@3.20": "gpuId !cudaId !pid uuid:TEXT@3.28 numMultiprocessors@3.28",
    "TARGET_INFO_SYSTEM_ENV": "globalVid !devStateName:TEXT !name:TEXT !nameEnum !value:TEXT",
    "DIAGNOSTIC_EVENT@3.11": "!timestamp !timestampType !source !severity !text:TEXT globalPid",
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "!start !end !deviceId !contextId greenContextId@3.7 !streamId correlationId globalPid !demangledName"
        " !shortName mangledName@3.0 launchType cacheConfig !registersPerThread !gridX !gridY !gridZ !blockX !blockY"
        " !blockZ !staticSharedMemory !dynamicSharedMemory !localMemoryPerThread !localMemoryTotal !gridId"
        " sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig@3.0 qmdBulkReleaseDone@3.28 graphId@3.28"
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "!start !end !deviceId !contextId greenContextId@3.7 !streamId correlationId globalPid !bytes !copyKind"
        " srcId~3.0 deprecatedSrcId@3.0 srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId"
        " migrationCause graphNodeId virtualAddress copyCount@3.20"
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "!start !end !deviceId !contextId greenContextId@3.7 !streamId correlationId globalPid !value !bytes"
        " graphNodeId memKind"
    ),
    "CUPTI_ACTIVITY_KIND_GRAPH_TRACE@3.11": (
        "!start !end !deviceId !contextId greenContextId !streamId correlationId globalPid !graphId !graphExecId"
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("!start !end !eventClass globalTid correlationId !nameId !returnValue callchainId"),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        "!start !end !deviceId !contextId greenContextId@3.7 !streamId correlationId globalPid deprecatedSyncType@3.20"
        " !syncType !eventId eventSyncId@3.20"
    ),
    "CUPTI_ACTIVITY_KIND_CUDA_EVENT": (
        "!deviceId !contextId greenContextId@3.7 !streamId correlationId globalPid !eventId timestamp@3.28"
        " eventSyncId@3.20"
    ),
    "CUPTI_ACTIVITY_KIND_OVERHEAD@3.28": "!start !end !eventClass globalTid correlationId nameId !overheadType",
    "PROFILER_OVERHEAD": "!start !end globalTid !nameId !returnValue~3.28 !overheadType@3.28",
    "CUDA_GRAPH_EVENTS~3.11": "!start !end !eventClass globalTid !nameId !graphNodeId originalGraphNodeId",
    "CUDA_GRAPH_NODE_EVENTS@3.11": "!start !end !eventClass globalTid !nameId !graphNodeId originalGraphNodeId",
    "CUDA_CALLCHAINS": "!id !symbol !module unresolved originalIP !stackDepth",
    "OSRT_API": "!start !end !eventClass globalTid !nameId !returnValue nestingLevel !callchainId",
    "SCHED_EVENTS": "!start !cpu !isSchedIn globalTid",
    "NVTX_EVENTS": (
        "!start end !eventType rangeId category color text:TEXT globalTid endGlobalTid textId domainId uint64Value"
        " int64Value doubleValue:REAL jsonTextId jsonText:TEXT binaryData:TEXT@3.20 eventId@3.28"
    ),
    "META_DATA_CAPTURE@3.7": "!name:TEXT value:TEXT",
    "META_DATA_EXPORT@3.7": "!name:TEXT value:TEXT",
}


class Spec(NamedTuple):
    name: str
    required: bool
    sql_type: str


def _known(text: str, schema: str) -> str | None:
    """The bare name of a table or column if the generation has it."""
    text, _, until = text.partition("~")
    name, _, since = text.partition("@")
    at = GENERATIONS.index(schema)
    first, last = (GENERATIONS.index(v) if v else limit for v, limit in ((since, 0), (until, len(GENERATIONS))))
    return name if first <= at < last else None


def tables(schema: str) -> dict[str, list[Spec]]:
    """The tables of a generation and their columns, in file order."""
    return {
        name: [
            Spec(column.lstrip("!"), column.startswith("!"), kind)
            for word in columns.split()
            for part, kind in [_typed(word)]
            if (column := _known(part, schema))
        ]
        for table, columns in TABLES.items()
        if (name := _known(table, schema))
    }


def _typed(word: str) -> tuple[str, str]:
    name, colon, rest = word.partition(":")
    if not colon:
        return word, "INTEGER"
    cut = min((rest.index(mark) for mark in "@~" if mark in rest), default=len(rest))
    return name + rest[cut:], rest[:cut]


def write(path: Path, rows: Mapping[str, Sequence[Row]], *, schema: str = "3.28", lazy: bool = True) -> Path:
    """Write an export. A value that the generation has no column for is an error; a required one not given is 0.

    Like `nsys export`, it leaves out tables without rows unless `lazy` is false.
    """
    known = tables(schema)
    if strangers := rows.keys() - known.keys():
        raise ValueError(f"schema {schema} has no table {', '.join(sorted(strangers))}")
    with closing(sqlite3.connect(path)) as db, db:
        for table, columns in known.items():
            if rows.get(table) or not lazy:
                create(db, table, columns)
                insert(db, table, columns, rows.get(table, ()))
    return path


def create(db: sqlite3.Connection, table: str, columns: list[Spec]) -> None:
    described = (f'"{c.name}" {c.sql_type}{" NOT NULL" if c.required else ""}' for c in columns)
    key = ", PRIMARY KEY (id)" if table == "StringIds" else ""
    db.execute(f'CREATE TABLE "{table}" ({", ".join(described)}{key})')


def insert(db: sqlite3.Connection, table: str, columns: list[Spec], rows: Sequence[Row]) -> None:
    names = {c.name for c in columns}
    if strangers := {key for row in rows for key in row} - names:
        raise ValueError(f"{table} has no column {', '.join(sorted(strangers))}")
    fallback = {c.name: ("" if c.sql_type == "TEXT" else 0) if c.required else None for c in columns}
    values = ([(fallback | dict(row))[c.name] for c in columns] for row in rows)
    db.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(columns))})', values)


def export(trace: Trace, path: Path, *, schema: str = "3.28", lazy: bool = True) -> Path:
    """Write a trace as an export of the given generation, as far as the generation can hold it."""
    known = {name: {c.name for c in columns} for name, columns in tables(schema).items()}
    rows = {
        table: [{key: value for key, value in row.items() if key in known[table]} for row in content]
        for table, content in _content(trace, schema).items()
        if table in known
    }
    return write(path, rows, schema=schema, lazy=lazy)


def signed(value: int) -> int:
    """A 64-bit id as SQLite keeps it."""
    return (value + 2**63) % 2**64 - 2**63


class Strings:
    """StringIds: the trace's own, and what else has to be looked up."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self.ids = {text: number for number, text in names.items()}
        self.rows = [{"id": number, "value": text} for number, text in names.items()]
        self.next = max(names, default=0) + 1

    def id(self, text: str) -> int:
        if text not in self.ids:
            self.ids[text] = self.next
            self.rows.append({"id": self.next, "value": text})
            self.next += 1
        return self.ids[text]


def _content(trace: Trace, schema: str) -> dict[str, list[dict[str, Any]]]:
    strings = Strings(trace.names)
    duration = trace.info.duration_ns or 0
    version = {"EXPORT_SCHEMA_VERSION": f"{schema}.0", "EXPORT_PRODUCT_VERSION": trace.info.nsys_version or ""}
    meta = [{"name": name, "value": value} for name, value in version.items()]
    nodes = list(_graph_nodes(trace))
    content: dict[str, list[dict[str, Any]]] = {
        "EXPORT_META_DATA": meta,
        "META_DATA_EXPORT": meta,
        "ANALYSIS_DETAILS": [{"globalVid": 1 << 48, "duration": duration, "startTime": 0, "stopTime": duration}],
        "PROCESSES": [
            {"globalPid": signed(p.process << 24), "pid": p.pid, "name": p.name} for p in trace.info.processes
        ],
        "ThreadNames": [{"nameId": strings.id(name), "globalTid": t} for t, name in trace.thread_names.items()],
        "TARGET_INFO_GPU": [{"vmId": 1 << 48, "id": g.gpu, "name": g.name, "cuDevice": g.gpu} for g in trace.info.gpus],
        "TARGET_INFO_CUDA_DEVICE": [
            {"gpuId": gpu, "cudaId": device, "pid": process & 0xFF_FFFF}
            for process, device, gpu in trace.operations.select("process", "device", "gpu").unique().sort("gpu").rows()
        ],
        "CUDA_GRAPH_EVENTS": nodes,
        "CUDA_GRAPH_NODE_EVENTS": nodes,
        "CUPTI_ACTIVITY_KIND_RUNTIME": list(_calls(trace)),
        "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": list(_syncs(trace)),
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": list(_events(trace)),
        "CUDA_CALLCHAINS": [
            {"id": row["callchain"], "symbol": strings.id(row["symbol"]), "stackDepth": row["depth"]}
            for row in trace.frames.iter_rows(named=True)
        ],
        "OSRT_API": [
            _times(row) | {"eventClass": 27, "globalTid": row["thread"], "nameId": strings.id(row["name"])}
            for row in _stored(trace.os_calls)
        ],
        "NVTX_EVENTS": list(_nvtx(trace)),
        **_operations(trace),
        **_overheads(trace, strings),
    }
    return {"StringIds": strings.rows} | content


def _stored(frame: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """The rows of a frame in the order of their table."""
    return frame.sort("row").iter_rows(named=True)


def _times(row: Row) -> dict[str, Any]:
    return {"start": row["start_ns"], "end": row["end_ns"]}


def _operations(trace: Trace) -> dict[str, list[dict[str, Any]]]:
    import polars as pl

    shapes: dict[int, tuple[str, Callable[[Row], dict[str, Any]]]] = {
        KERNEL: ("KERNEL", _kernel),
        MEMCPY: ("MEMCPY", _copy),
        MEMSET: ("MEMSET", _memset),
        GRAPH: ("GRAPH_TRACE", _graph),
    }
    return {
        f"CUPTI_ACTIVITY_KIND_{name}": [
            _place(row) | shape(row) for row in _stored(trace.operations.filter(pl.col("kind") == kind))
        ]
        for kind, (name, shape) in shapes.items()
    }


def _place(row: Row) -> dict[str, Any]:
    place = {"deviceId": row["device"], "contextId": row["context"], "streamId": row["stream"]}
    return _times(row) | place | {"correlationId": row["correlation"], "globalPid": signed(row["process"] << 24)}


def _kernel(row: Row) -> dict[str, Any]:
    names: dict[str, Any] = dict.fromkeys(("demangledName", "shortName", "mangledName"), row["name"])
    return names | {"graphNodeId": row["graph_node"], "launchType": 1}


def _copy(row: Row) -> dict[str, Any]:
    kinds = {"copyKind": row["copy_kind"], "srcKind": row["src_kind"], "dstKind": row["dst_kind"]}
    return kinds | {"bytes": row["bytes"], "graphNodeId": row["graph_node"]}


def _memset(row: Row) -> dict[str, Any]:
    return {"bytes": row["bytes"], "memKind": row["dst_kind"], "graphNodeId": row["graph_node"]}


def _graph(row: Row) -> dict[str, Any]:
    return {"graphId": row["graph"], "graphExecId": row["graph"]}


def _calls(trace: Trace) -> Iterator[dict[str, Any]]:
    for row in _stored(trace.calls):
        driver = not trace.names[row["name"]].startswith("cuda")
        call = {"eventClass": int(driver), "globalTid": row["thread"], "correlationId": row["correlation"]}
        end = {"nameId": row["name"], "returnValue": row["return_value"], "callchainId": row["callchain"]}
        yield _times(row) | call | end


def _syncs(trace: Trace) -> Iterator[dict[str, Any]]:
    for row in _stored(trace.syncs):
        owner = {"globalPid": signed(row["process"] << 24), "correlationId": row["correlation"], "contextId": 1}
        event = NO_EVENT if row["event"] is None else row["event"]
        stream = NO_EVENT if row["stream"] is None else row["stream"]
        what = {"streamId": stream, "syncType": row["sync_type"], "eventId": event}
        yield _times(row) | owner | what | {"eventSyncId": row["event_sync"]}


def _events(trace: Trace) -> Iterator[dict[str, Any]]:
    for row in _stored(trace.events):
        owner = {"globalPid": signed(row["process"] << 24), "correlationId": row["correlation"]}
        place = {"contextId": row["context"], "streamId": row["stream"], "eventId": row["event"]}
        yield owner | place | {"eventSyncId": row["event_sync"], "timestamp": row["timestamp_ns"]}


def _nvtx(trace: Trace) -> Iterator[dict[str, Any]]:
    """Ranges first, so that their rows stay what they were; the names of domains behind them."""
    domains: dict[tuple[int, str], int] = {}
    for row in _stored(trace.nvtx):
        key = (row["process"], row["domain"])
        domain = 0 if row["domain"] is None else domains.setdefault(key, len(domains) + 1)
        yield _times(row) | {"eventType": 59, "text": row["text"], "globalTid": row["thread"], "domainId": domain}
    for (process, text), domain in domains.items():
        thread = signed(process << 24)
        yield {"start": 0, "eventType": 75, "text": text, "globalTid": thread, "domainId": domain}


def _overheads(trace: Trace, strings: Strings) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in _stored(trace.overheads):
        kind = {} if row["overhead_type"] is None else {"overheadType": row["overhead_type"]}
        owner = {"globalTid": row["thread"], "nameId": strings.id(row["name"])}
        found.setdefault(row["table"], []).append(_times(row) | owner | kind)
    return found


def _graph_nodes(trace: Trace) -> Iterator[dict[str, Any]]:
    for number, (start, thread) in enumerate(trace.graph_nodes.select("start_ns", "thread").rows(), 1):
        yield {"start": start, "end": start, "eventClass": 77, "globalTid": thread, "graphNodeId": 1 << 32 | number}
