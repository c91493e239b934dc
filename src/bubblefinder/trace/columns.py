"""The columns of a trace's frames: said once for the loader, drawings, tests and documentation.

Types are names of polars types, so that this page costs nothing to import.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Field(NamedTuple):
    """One column: the name of its polars type, and what it holds; a value that the export lacks is null."""

    dtype: str
    meaning: str


_ROW: Final = Field("UInt32", "position of the row in its table, as stored")
_START: Final = Field("Int64", "begin, ns on the capture's own clock")
_END: Final = Field("Int64", "end, ns")
_PROCESS: Final = Field("Int64", "process key: `(globalPid >> 24) & 0xFFFFFFFFFF`")
_THREAD: Final = Field("Int64", "globalTid, as a signed number")
_CORRELATION: Final = Field("Int64", "what joins a call with its work, inside a process; null for none")
_STREAM: Final = Field("Int64", "stream")
_CONTEXT: Final = Field("Int32", "context")
_EVENT: Final = Field("Int64", "CUDA event")
_EVENT_SYNC: Final = Field("Int64", "the recording of it")
_TIMES: Final = {"row": _ROW, "start_ns": _START, "end_ns": _END}

FRAMES: Final[dict[str, dict[str, Field]]] = {
    "operations": {
        "kind": Field("UInt8", "0 kernel, 1 copy, 2 memset, 3 whole graph replay"),
        **_TIMES,
        "process": _PROCESS,
        "device": Field("Int32", "device number inside its process"),
        "gpu": Field("Int32", "physical GPU"),
        "context": _CONTEXT,
        "stream": _STREAM,
        "correlation": _CORRELATION,
        "graph_node": Field("Int64", "graph node, all 64 bits; null outside graphs"),
        "graph": Field("Int64", "executable graph: its id, else the upper half of `graph_node`"),
        "name": Field("Int32", "string id of a kernel's demangled name, see `names`"),
        "bytes": Field("Int64", "size of a copy or memset"),
        "copy_kind": Field("Int8", "direction of a copy, Nsight Systems' numbers"),
        "src_kind": Field("Int8", "kind of memory read"),
        "dst_kind": Field("Int8", "kind of memory written, by a memset too"),
    },
    "calls": {
        **_TIMES,
        "process": _PROCESS,
        "thread": _THREAD,
        "correlation": _CORRELATION,
        "name": Field("Int32", "string id of the API's name, see `names`"),
        "return_value": Field("Int32", "what the call returned; 0 is success"),
        "callchain": Field("Int64", "its call chain in `frames`; null for none"),
    },
    "nvtx": {
        **(_TIMES | {"end_ns": Field("Int64", "end, ns; null for a range that was never closed")}),
        "process": _PROCESS,
        "thread": _THREAD,
        "domain": Field("String", "domain; null for the default one"),
        "text": Field("String", "the range's name"),
    },
    "overheads": {
        "table": Field("String", "which of the two tables of profiler overhead"),
        **_TIMES,
        "process": _PROCESS,
        "thread": _THREAD,
        "overhead_type": Field("Int32", "kind of overhead, CUPTI's raw numbers shifted down"),
        "name": Field("String", "what the profiler did"),
    },
    "graph_nodes": {"start_ns": _START, "thread": _THREAD},
    "syncs": {
        **_TIMES,
        "process": _PROCESS,
        "stream": _STREAM,
        "correlation": _CORRELATION,
        "sync_type": Field("Int32", "kind of synchronisation, CUPTI's numbers"),
        "event": _EVENT,
        "event_sync": _EVENT_SYNC,
    },
    "events": {
        "row": _ROW,
        "process": _PROCESS,
        "context": _CONTEXT,
        "stream": _STREAM,
        "correlation": _CORRELATION,
        "event": _EVENT,
        "event_sync": _EVENT_SYNC,
        "timestamp_ns": Field("Int64", "when the GPU reached it; null where not collected"),
    },
    "os_calls": {**_TIMES, "thread": _THREAD, "name": Field("String", "function")},
    "off_cpu": {**_TIMES, "thread": _THREAD},
    "frames": {
        "callchain": Field("Int64", "call chain"),
        "symbol": Field("String", "function"),
        "depth": Field("Int32", "0 is the innermost"),
    },
}
"""Every frame of a `Trace`, sorted by (start_ns, end_ns) where it has them, operations by (gpu, start_ns, end_ns)."""
MEANINGS: Final = {
    "operations": "GPU work: KERNEL, MEMCPY, MEMSET and GRAPH_TRACE rows together",
    "calls": "CUDA runtime and driver API calls, each once",
    "nvtx": "NVTX ranges",
    "overheads": "what the profiler says it cost",
    "graph_nodes": "creations of graph nodes, by which captured launches are told apart",
    "syncs": "SYNCHRONIZATION rows",
    "events": "CUDA_EVENT rows",
    "os_calls": "operating system calls of threads that call CUDA, the outermost of each",
    "off_cpu": "when threads that call CUDA were off their CPUs; `row` is that of the switch out",
    "frames": "innermost frames of call chains",
}
