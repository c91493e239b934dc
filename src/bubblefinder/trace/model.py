"""What a loaded capture is: a few frames with one row an event, and what the capture says of itself.

Nothing here interprets anything. Ids keep all 64 bits, times are integer nanoseconds on the
capture's own clock, a value that the export lacks is null.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import polars as pl

    from bubblefinder.trace.part import Part

Level = Literal["info", "warn", "error"]

KERNEL: Final = 0
MEMCPY: Final = 1
MEMSET: Final = 2
GRAPH: Final = 3

COPY_KINDS: Final = {
    0: "unknown",
    1: "HtoD",
    2: "DtoH",
    3: "HtoA",
    4: "AtoH",
    5: "AtoA",
    6: "AtoD",
    7: "DtoA",
    8: "DtoD",
    9: "HtoH",
    10: "PtoP",
    11: "UVM HtoD",
    12: "UVM DtoH",
    13: "UVM DtoD",
}
MEMORY_KINDS: Final = {
    0: "pageable",
    1: "pinned",
    2: "device",
    3: "array",
    4: "managed",
    5: "device static",
    6: "managed static",
    7: "unknown",
}


EVENTS_UNREAD: Final = "events-unread"
"""The code of the note that Nsight Systems failed to read part of its own recording."""


@dataclass(frozen=True, slots=True)
class QualityNote:
    """One thing the capture can or can't tell.

    Attributes:
        code: stable identifier, kebab-case.
        level: ``info``, ``warn`` or ``error``.
        message: one sentence for the user.
        count: how many rows, calls or records it concerns; null where counting makes no sense.
    """

    code: str
    level: Level
    message: str
    count: int | None = None


@dataclass(frozen=True, slots=True)
class Gpu:
    """A physical GPU that the capture names.

    Attributes:
        gpu: Nsight Systems' own index.
        name: what it is called.
        bandwidth: nominal memory bandwidth in bytes a second; null where the export doesn't state it.
    """

    gpu: int
    name: str | None
    bandwidth: int | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """A process that owns events. `process` is the key used in every frame, `pid` what users know."""

    process: int
    pid: int
    name: str | None


@dataclass(frozen=True, slots=True)
class TraceInfo:
    """What the capture says of itself; unknown is null.

    `cupti_version` is the collector's (named by DIAGNOSTIC_EVENT), never the exporter's.
    `duration_ns` is ANALYSIS_DETAILS.duration, `start_ns` the time that seconds on the command
    line are counted from (0 unless the export was shifted or normalised to UTC). `utc_ns` is when the session began.
    """

    name: str
    format: str
    nsys_version: str | None = None
    schema_version: str | None = None
    cupti_version: str | None = None
    driver_version: str | None = None
    cuda_version: str | None = None
    duration_ns: int | None = None
    start_ns: int = 0
    gpus: tuple[Gpu, ...] = ()
    processes: tuple[Process, ...] = ()
    utc_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """A loaded capture.

    `process` is ``(globalPid >> 24) & 0xFFFFFFFFFF`` (hardware, VM and process id), `thread` the
    raw globalTid reinterpreted as a signed 64-bit integer. Every frame is sorted by
    (start_ns, end_ns), operations by GPU first, and has `row`, the 0-based position in its table as stored. Rows with
    unusable times (start = end = 0, end < start) are left out and counted in `notes`.

    The columns of each frame, their types and what they hold stand in `trace.columns.FRAMES` and in
    docs/frames.md.

    Attributes:
        operations: GPU work: KERNEL, MEMCPY, MEMSET and GRAPH_TRACE rows together.
        calls: CUDA runtime and driver API calls.
        nvtx: ranges only.
        overheads: profiler overhead rows of both tables.
        graph_nodes: graph node creations, for telling captured launches apart.
        syncs: SYNCHRONIZATION rows.
        events: CUDA_EVENT rows.
        os_calls: OSRT_API rows.
        off_cpu: when threads that call CUDA were off their CPUs, from SCHED_EVENTS.
        frames: innermost frames of call chains.
        names: string id to text for kernels and API calls.
        thread_names: thread to name.
        notes: what loading found out about the capture's quality.
        names_from: the capture that the call chains were carried over from; null where they are its own.
        launch_shapes: reads how each kernel was launched, see `trace.shapes.read_shapes`, from the file; null where
            there is none.
        grids: the grids of kernels that count requests, see `trace.shapes.read_grids`.
        part: what a whole capture showed of this part of it; null for a whole capture.
    """

    info: TraceInfo
    operations: pl.DataFrame
    calls: pl.DataFrame
    nvtx: pl.DataFrame
    overheads: pl.DataFrame
    graph_nodes: pl.DataFrame
    syncs: pl.DataFrame
    events: pl.DataFrame
    os_calls: pl.DataFrame
    off_cpu: pl.DataFrame
    frames: pl.DataFrame
    names: Mapping[int, str]
    thread_names: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[QualityNote, ...] = ()
    names_from: str | None = None
    launch_shapes: Callable[[], pl.DataFrame] | None = None
    grids: pl.DataFrame | None = None
    part: Part | None = None


def process_of(global_id: int) -> int:
    """Return the process key of a globalPid or globalTid, given as signed or unsigned 64 bits."""
    return (global_id >> 24) & 0xFF_FFFF_FFFF


def number_of(thread: int) -> int:
    """Return the operating system's number of a thread key."""
    return thread & 0xFF_FFFF


def pid_of(process: int) -> int:
    """Return the operating system's process id of a process key."""
    return process & 0xFF_FFFF
