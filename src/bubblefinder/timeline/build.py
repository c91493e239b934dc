"""From a trace to a timeline: join launches, find replays and gaps, class every idle nanosecond."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.errors import CannotAnswerError, InternalError
from bubblefinder.intervals import Cover, Ints, union
from bubblefinder.timeline import gaps as gaps_module
from bubblefinder.timeline.gaps import NEVER, Gaps, Pieces
from bubblefinder.timeline.launches import blocking_copies, classify_calls, expects_record, find_launches, launch_leads
from bubblefinder.timeline.model import Device, Timeline
from bubblefinder.timeline.notes import timeline_notes
from bubblefinder.timeline.replays import capture_mode, drop_doubled_graphs, find_replays, replay_indices, select_window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.trace.model import Trace

PROFILER_NAMES: Final = re.compile(r"CUDA profiling|CUPTI:? ?buffer flush", re.IGNORECASE)
PROFILER_TYPES: Final = (3, 4, 5, 9, 10)
OVERHEAD_TABLE: Final = "CUPTI_ACTIVITY_KIND_OVERHEAD"


@dataclass(frozen=True, slots=True)
class _Gpu:
    """What was found on one GPU, before it is laid beside the others."""

    device: Device
    gaps: pl.DataFrame
    pieces: pl.DataFrame
    busy: pl.DataFrame
    running_end: Ints


def build_timeline(trace: Trace, window: tuple[int, int] | None = None) -> Timeline:
    """Return the timeline of a trace.

    Args:
        trace: the capture.
        window: only operations that start in [start, end), in ns from the capture's start.

    Raises:
        CannotAnswerError: there is no GPU activity, or none in the window.
        InternalError: a ledger doesn't sum to its span.
    """
    operations = drop_doubled_graphs(trace.operations).sort("gpu", "start_ns", "end_ns", maintain_order=True)
    calls = classify_calls(trace.calls, trace.names, trace.graph_nodes)
    operations = operations.with_columns(find_launches(operations, calls))
    calls = calls.with_columns(recorded=_recorded(operations, calls))
    operations = select_window(operations, trace.info.start_ns, window)
    operations = operations.filter((pl.col("end_ns") > pl.col("start_ns")).any().over("gpu"))
    if operations.is_empty():
        raise _nothing_recorded(trace, window)
    operations = operations.with_columns(blocking=blocking_copies(operations, calls))
    replays = find_replays(operations)
    operations = operations.with_columns(replay_indices(operations, replays))
    mode = capture_mode(operations, calls)
    found = [_analyse(gpu, trace, operations, calls, replays) for gpu in operations["gpu"].unique(maintain_order=True)]
    leads = launch_leads(np.concatenate([gpu.running_end for gpu in found]), operations, calls)
    return Timeline(
        trace=trace,
        mode=mode,
        operations=operations,
        calls=calls,
        replays=replays,
        gaps=pl.concat([gpu.gaps for gpu in found]),
        pieces=_concat_pieces(found),
        busy=pl.concat([gpu.busy for gpu in found]),
        leads=leads,
        devices=tuple(_with_run_ahead(gpu.device, leads) for gpu in found),
        notes=timeline_notes(operations, calls, mode),
    )


def _nothing_recorded(trace: Trace, window: tuple[int, int] | None) -> CannotAnswerError:
    if window is not None and not trace.operations.is_empty():
        return CannotAnswerError(
            "no GPU operation starts inside the window", hint="widen --window; it counts from the capture's start"
        )
    calls = f" although {len(trace.calls):,} API calls were traced" if len(trace.calls) else ""
    return CannotAnswerError(
        f"no GPU activity recorded{calls}: nothing can be said about idle time",
        hint="capture with --trace=cuda,nvtx on a machine where CUPTI may trace the GPU (containers and WSL often may not)",
    )


def _recorded(operations: pl.DataFrame, calls: pl.DataFrame) -> pl.Series:
    """True for launch calls with GPU work, false for those that lack it, null for other calls."""
    has_work = np.zeros(len(calls), np.bool_)
    has_work[operations["call_index"].drop_nulls().unique().to_numpy()] = True
    return calls.select(
        recorded=pl.when(pl.Series(expects_record(calls)) | pl.Series(has_work)).then(pl.Series(has_work)),
    ).to_series()


def _analyse(gpu: int, trace: Trace, operations: pl.DataFrame, calls: pl.DataFrame, replays: pl.DataFrame) -> _Gpu:
    offset = operations["gpu"].search_sorted(gpu, side="left")
    mine = operations.filter(pl.col("gpu") == gpu)
    starts, ends = mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy()
    launched, returned, threads = _launch_times(mine, calls)
    gaps = gaps_module.find_gaps(starts, ends, launched)
    processes = tuple(mine["process"].unique().sort().to_list())
    spans = replays.filter(pl.col("gpu") == gpu)
    lost = _lost_calls(calls, processes)
    pieces = gaps_module.classify(
        gaps,
        launched[gaps.after],
        returned[gaps.after],
        profiler=profiler_windows(trace.overheads, processes),
        replays=union(spans["start_ns"].to_numpy(), spans["end_ns"].to_numpy()),
        lost=gaps_module.tainted(gaps, launched, threads, lost["start_ns"].to_numpy(), lost["thread"].to_numpy()),
    )
    busy = union(starts, ends)
    device = _device(gpu, processes, busy, spans, mine, calls, lost)
    _check_ledger(device, busy, pieces)
    return _Gpu(
        device,
        _gap_frame(gpu, gaps, mine, offset),
        _piece_frame(gpu, pieces),
        _busy_frame(gpu, busy),
        gaps_module.running_end(ends),
    )


def _launch_times(mine: pl.DataFrame, calls: pl.DataFrame) -> tuple[Ints, Ints, Ints]:
    """Return start, end and thread of each operation's launch call; NEVER, NEVER and 0 where unknown."""
    index = mine["call_index"].fill_null(len(calls)).to_numpy()
    columns = (("start_ns", NEVER), ("end_ns", NEVER), ("thread", 0))
    start, end, thread = (np.append(calls[name].fill_null(fill).to_numpy(), fill)[index] for name, fill in columns)
    return start, end, thread


def _lost_calls(calls: pl.DataFrame, processes: Sequence[int]) -> pl.DataFrame:
    return calls.filter(~pl.col("recorded") & pl.col("process").is_in(processes))


def profiler_windows(overheads: pl.DataFrame, processes: Sequence[int]) -> Cover:
    """Return the time the profiler itself took in any of these processes; it stops all their GPUs."""
    by_name = (pl.col("table") != OVERHEAD_TABLE) & pl.col("name").str.contains(f"(?i)^(?:{PROFILER_NAMES.pattern})")
    by_type = (pl.col("table") == OVERHEAD_TABLE) & pl.col("overhead_type").is_in(PROFILER_TYPES)
    rows = overheads.filter(pl.col("process").is_in(processes) & (by_name | by_type).fill_null(value=False))
    return union(rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())


def _device(
    gpu: int,
    processes: tuple[int, ...],
    busy: Cover,
    spans: pl.DataFrame,
    mine: pl.DataFrame,
    calls: pl.DataFrame,
    lost: pl.DataFrame,
) -> Device:
    used = calls.with_row_index("call_index").filter(
        pl.col("call_index").is_in(mine["call_index"].drop_nulls().unique().implode())
    )
    recorded = used.select(expects_record(used)).to_series().sum()
    return Device(
        gpu=gpu,
        processes=processes,
        start_ns=int(busy.starts[0]),
        end_ns=int(busy.ends[-1]),
        busy_ns=busy.total_ns,
        replays=len(spans),
        launches_seen=int(recorded) + len(lost),
        launches_recorded=int(recorded),
        run_ahead_share=None,
    )


def _with_run_ahead(device: Device, leads: pl.DataFrame) -> Device:
    mine = leads.filter((pl.col("gpu") == device.gpu) & ~pl.col("blocking"))["lead_ns"].drop_nulls()
    return replace(device, run_ahead_share=float(np.mean(mine.to_numpy() > 0)) if len(mine) else None)


def _check_ledger(device: Device, busy: Cover, pieces: Pieces) -> None:
    total = busy.total_ns + int((pieces.ends - pieces.starts).sum())
    if total != device.end_ns - device.start_ns:
        raise InternalError(
            f"the ledger of GPU {device.gpu} sums to {total} ns, its span is {device.end_ns - device.start_ns} ns"
        )


def _gap_frame(gpu: int, gaps: Gaps, mine: pl.DataFrame, offset: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "gpu": np.full(len(gaps.starts), gpu, np.int32),
            "start_ns": gaps.starts,
            "end_ns": gaps.ends,
            "before_index": (gaps.before + offset).astype(np.uint32),
            "after_index": (gaps.after + offset).astype(np.uint32),
            "call_index": mine["call_index"].gather(gaps.after),
        },
    )


def _piece_frame(gpu: int, pieces: Pieces) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "gpu": np.full(len(pieces.gap), gpu, np.int32),
            "gap_index": pieces.gap.astype(np.uint32),
            "start_ns": pieces.starts,
            "end_ns": pieces.ends,
            "idle_class": pieces.idle_class.astype(np.uint8),
        },
    )


def _busy_frame(gpu: int, busy: Cover) -> pl.DataFrame:
    return pl.DataFrame({"gpu": np.full(len(busy), gpu, np.int32), "start_ns": busy.starts, "end_ns": busy.ends})


def _concat_pieces(found: Sequence[_Gpu]) -> pl.DataFrame:
    offsets = np.cumsum([0, *(len(gpu.gaps) for gpu in found)])
    return pl.concat(
        gpu.pieces.with_columns((pl.col("gap_index") + int(offset)).cast(pl.UInt32))
        for gpu, offset in zip(found, offsets, strict=False)
    )
