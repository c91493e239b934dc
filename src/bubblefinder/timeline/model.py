"""The timeline: every operation on its GPU, the launch call behind it, and every idle moment classed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.lookup import ByThread
    from bubblefinder.timeline.ranges import Ranges
    from bubblefinder.trace.model import QualityNote, Trace


class CaptureMode(StrEnum):
    """What the capture recorded of CUDA graphs."""

    NODE = "node"
    GRAPH = "graph"
    MIXED = "mixed"
    NONE = "none"
    UNSEEN = "unseen"


class IdleClass(IntEnum):
    """Why a piece of idle time is what it is; the order is the precedence inside a gap."""

    PROFILER = 0
    INTRA_GRAPH = 1
    UNRECORDED = 2
    HOST_LATE = 3
    LAUNCHING = 4
    QUEUED = 5
    UNATTRIBUTED = 6


LATE: Final = (IdleClass.HOST_LATE, IdleClass.LAUNCHING)
"""The classes of idle in which the host had not launched yet."""
EXPLAINED: Final = (*LATE, IdleClass.QUEUED)
"""The parts of a gap that the launch call of what ends it tells apart."""
INTER: Final = (*EXPLAINED, IdleClass.UNATTRIBUTED)
"""The classes of idle between replays, or of eager work, as far as it is recorded."""
INTER_CLASSES: Final = tuple(one.name.lower() for one in INTER)
LEDGER_CLASSES: Final = ("busy", "intra_graph", *INTER_CLASSES, "unrecorded", "profiler")
"""What a ledger consists of, in the order in which it is shown."""
STEP_CLASSES: Final = ("duration", *LEDGER_CLASSES)
"""What a row of a step says, likewise."""


@dataclass(frozen=True, slots=True)
class Device:
    """One physical GPU: the processes that used it, its span, and its launch coverage."""

    gpu: int
    processes: tuple[int, ...]
    start_ns: int
    end_ns: int
    busy_ns: int
    replays: int
    launches_seen: int
    launches_recorded: int
    run_ahead_share: float | None


@dataclass(frozen=True, slots=True)
class Timeline:
    """Operations, calls, replays, gaps and their pieces, joined by row position.

    Frames are sorted by time inside a GPU; a `*_index` column is a 0-based position in the frame it
    names, null (or -1 in numpy) where there is none.

    Attributes:
        trace: the capture the timeline was built from.
        mode: what was recorded of CUDA graphs.
        operations: as in the trace, restricted to the selection, sorted by (gpu, start_ns, end_ns),
            plus `call_index` (position in `calls` of the launch call), `replay_index`, and `blocking`
            (a copy whose call blocked its thread).
        calls: as in the trace plus `api` (Categorical, without version suffix), `role` (UInt8, see
            apis.CallRole), `captured` (issued during stream capture) and `recorded` (Boolean: a launch
            left GPU work; null if the call needs none).
        replays: gpu, process, correlation, graph, start_ns, end_ns (its span), nodes (null in graph
            mode), call_index. Sorted by (gpu, start_ns).
        gaps: gpu, start_ns, end_ns, before_index and after_index (the operations around it, positions
            in `operations`), call_index (launch call of the operation that ends it, first begun).
        pieces: the idle time cut by class: gpu, gap_index, start_ns, end_ns, idle_class (UInt8). For
            each GPU busy time and pieces tile [start_ns, end_ns) exactly.
        busy: the union of the operations: gpu, start_ns, end_ns.
        leads: launch lead of every call with GPU work: call_index, op_index (its first operation),
            gpu, lead_ns (positive: queued before the GPU was free; null for a GPU's first operation),
            blocking.
        devices: one entry a GPU with operations.
        notes: what building found out, beyond the trace's own notes.
        ranges: the NVTX ranges of the program and its framework, see `ranges.user_ranges`.
        calls_of: the calls of each thread.
        walked: whether the profiler walked the stack at most launch calls: the names hold, the times are those of a far
            slower program.
    """

    trace: Trace
    mode: CaptureMode
    operations: pl.DataFrame
    calls: pl.DataFrame
    replays: pl.DataFrame
    gaps: pl.DataFrame
    pieces: pl.DataFrame
    busy: pl.DataFrame
    leads: pl.DataFrame
    devices: tuple[Device, ...]
    ranges: Ranges
    calls_of: ByThread
    notes: tuple[QualityNote, ...] = ()
    walked: bool = False
