"""Rows of an export as small as a test needs them: one process, one GPU, unless the test says otherwise."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from bubblefinder.trace.columns import FRAMES
from tests.exports import write

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from bubblefinder.trace.model import Trace

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


def differences(one: Trace, other: Trace) -> list[str]:
    """Names what differs between two captures, apart from what the file is called and how it is read again."""
    names = [field.name for field in fields(one) if field.name not in {"info", "launch_shapes", "grids"}]
    frames = [name for name in names if name in FRAMES]
    others = [name for name in names if name not in FRAMES]
    assert one.grids is not None
    assert other.grids is not None
    differ = [] if same(one.grids, other.grids) else ["grids"]
    return (
        [name for name in frames if not same(getattr(one, name), getattr(other, name))]
        + differ
        + [name for name in others if getattr(one, name) != getattr(other, name)]
    )


def same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    return one.schema == other.schema and one.equals(other)


def change(path: Path, *statements: str) -> Path:
    """Run SQL on an export."""
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return path


def bad(folder: Path, name: str, content: bytes) -> Path:
    """Write a file that is no export."""
    path = folder / name
    path.write_bytes(content)
    return path
