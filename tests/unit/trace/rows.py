"""Rows of an export as small as a test needs them: one process, one GPU, unless the test says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.exports import write

if TYPE_CHECKING:
    from pathlib import Path

PROCESS = 1 << 24 | 100
PID = 100
GLOBAL = PROCESS << 24
THREAD = GLOBAL | 7
STRINGS = [
    {"id": 1, "value": "void kernel<int>()"},
    {"id": 2, "value": "cudaLaunchKernel_v7000"},
    {"id": 3, "value": "a range"},
]
KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
COPIES = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSETS = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
EVENTS = "CUPTI_ACTIVITY_KIND_CUDA_EVENT"
DEVICES = "TARGET_INFO_CUDA_DEVICE"

Row = dict[str, Any]


def operation(start: int, end: int, **columns: Any) -> Row:
    """A row of any operations table, on device 0 of the one process."""
    place = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 5, "globalPid": GLOBAL}
    return {"start": start, "end": end} | place | columns


def kernel(start: int, end: int, **columns: Any) -> Row:
    """A row of KERNEL."""
    return operation(start, end, demangledName=1, shortName=1) | columns


def call(start: int, end: int, **columns: Any) -> Row:
    """A row of RUNTIME."""
    return {"start": start, "end": end, "globalTid": THREAD, "correlationId": 5, "nameId": 2} | columns


def device(gpu: int | None = 0, cuda: int = 0, pid: int = PID, **columns: Any) -> Row:
    """A row of TARGET_INFO_CUDA_DEVICE."""
    return {"gpuId": gpu, "cudaId": cuda, "pid": pid} | columns


def save(path: Path, *, schema: Any = "3.28", lazy: Any = True, **tables: Any) -> Path:
    """Write an export with a kernel, its call and its GPU, or with the tables given instead."""
    version = [{"name": "EXPORT_SCHEMA_VERSION", "value": schema}]
    whole: dict[str, Any] = {"StringIds": STRINGS, KERNELS: [kernel(20, 30)], CALLS: [call(10, 15)]}
    newer = schema not in {"none", "3.0"}
    whole |= {"META_DATA_EXPORT": version} if newer else {}
    whole |= {DEVICES: [device()]} if schema in {"3.20", "3.28"} else {}
    return write(path, whole | tables, schema=schema, lazy=lazy)
