"""From a trace to a timeline: join launches, find replays and gaps, class every idle nanosecond."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.errors import CannotAnswerError, InternalError
from bubblefinder.intervals import NEVER, Cover, Ints, begin_and_end, either, empty, union_of
from bubblefinder.lookup import ByThread, column_of, different, each_once, kept, on_gpu, where
from bubblefinder.timeline import gaps as gaps_module
from bubblefinder.timeline.launches import (
    blocking_copies,
    classify_calls,
    expects_record,
    find_launches,
    launch_leads,
    repeated_correlations,
)
from bubblefinder.timeline.missing import missing_work
from bubblefinder.timeline.model import CaptureMode, Device, Timeline
from bubblefinder.timeline.notes import settled, stack_walked, timeline_notes
from bubblefinder.timeline.outlived import outlived
from bubblefinder.timeline.ranges import Ranges, user_ranges
from bubblefinder.timeline.replays import (
    LaunchRuns,
    capture_mode,
    drop_doubled_graphs,
    find_replays,
    launch_runs,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from bubblefinder.timeline.gaps import Gaps, Pieces
    from bubblefinder.trace.model import Trace

PROFILER_NAMES: Final = re.compile(r"CUDA profiling|CUPTI:? ?buffer flush", re.IGNORECASE)
PROFILER_TYPES: Final = (3, 4, 5, 9, 10)
OVERHEAD_TABLE: Final = "CUPTI_ACTIVITY_KIND_OVERHEAD"
MOST_RANKS: Final = 1_024
"""Ranks that one report holds: a capture is of one machine, and the largest that share memory have 576 GPUs."""


@dataclass(frozen=True, slots=True)
class _Gpu:
    """What was found on one GPU, before it is laid beside the others."""

    device: Device
    gaps: pl.DataFrame
    pieces: pl.DataFrame
    busy: pl.DataFrame
    running_end: Ints
    outlived: Cover


def build_timeline(trace: Trace) -> Timeline:
    """Return the timeline of a trace.

    Raises:
        CannotAnswerError: there is no GPU activity, or that of more ranks than one report holds.
        InternalError: a ledger doesn't sum to its span.
    """
    operations = drop_doubled_graphs(trace.operations)
    calls = classify_calls(trace.calls, trace.names, trace.graph_nodes)
    repeated = repeated_correlations(calls)
    joined = _joined(operations, calls, repeated)
    expected = expects_record(calls)
    calls = calls.hstack([_recorded(joined.runs["call_index"], expected)])
    mode = CaptureMode(trace.part.mode) if trace.part else capture_mode(operations, calls)
    chosen = _usable(operations)
    if chosen.is_empty():
        raise _nothing_recorded(trace)
    if len(chosen) < len(operations):
        operations, joined = chosen, _joined(chosen, calls, repeated)
    runs = joined.runs
    _check_ranks(trace, runs)
    operations = operations.hstack([runs["call_index"][joined.of]])
    operations = operations.hstack([blocking_copies(operations, calls)])
    replays, replay_index = find_replays(runs)
    operations = operations.hstack([replay_index[joined.of]])
    launches = Launches(joined.of, runs, calls, expected)
    found = [_analyse(gpu, trace, operations, launches, replays) for gpu in different(column_of(runs, "gpu")).sort()]
    runs = runs.hstack([operations["blocking"][runs["first"]]])
    devices = tuple(gpu.device for gpu in found)
    walked = trace.names_from is None and stack_walked(calls)
    leads = launch_leads(np.concatenate([gpu.running_end for gpu in found]), runs, calls)
    return Timeline(
        trace=replace(trace, notes=settled(trace.notes, calls, operations)),
        mode=mode,
        operations=operations,
        calls=calls,
        replays=replays,
        gaps=_together([gpu.gaps for gpu in found]),
        pieces=_concat_pieces(found),
        busy=_together([gpu.busy for gpu in found]),
        leads=leads,
        ranges=Ranges(user_ranges(trace.nvtx)),
        calls_of=ByThread(calls),
        devices=tuple(_with_run_ahead(device, leads) for device in devices),
        notes=timeline_notes(operations, calls, devices, mode, walked=walked, outlived=[gpu.outlived for gpu in found]),
        walked=walked,
    )


def _joined(operations: pl.DataFrame, calls: pl.DataFrame, repeated: pl.Series) -> LaunchRuns:
    """Return the runs of operations with `call_index`."""
    found = launch_runs(operations, repeated)
    return replace(found, runs=found.runs.hstack([find_launches(found.runs, calls, repeated)]))


def _nothing_recorded(trace: Trace) -> CannotAnswerError:
    calls = f" although {len(trace.calls):,} API calls were traced" if len(trace.calls) else ""
    missing = missing_work(CaptureMode.NONE, trace.notes)
    allowed = "capture with --trace=cuda,nvtx on a machine where CUPTI may trace the GPU (containers often forbid it)"
    return CannotAnswerError(
        f"{trace.info.name}: no GPU activity recorded{calls}: nothing can be said about idle time",
        hint=f"{missing.why}: {missing.hint}" if missing else allowed,
    )


def _check_ranks(trace: Trace, runs: pl.DataFrame) -> None:
    """Refuse what no machine records, before every rank is looked into: that takes a tenth of a second each."""
    ranks = len(each_once(runs[["gpu", "process"]]))
    if ranks > MOST_RANKS:
        raise CannotAnswerError(
            f"{trace.info.name}: {ranks:,} ranks (a process on a GPU) did work, and one report holds at most"
            f" {MOST_RANKS:,}",
            hint="capture or export the machines apart; `bubblefinder batch` puts the ranks of all side by side",
        )


def _usable(operations: pl.DataFrame) -> pl.DataFrame:
    """Leave out GPUs on which nothing took any time."""
    gpus = column_of(operations, "gpu")
    took_time = different(gpus.filter(operations["end_ns"] > operations["start_ns"]))
    if len(took_time) == len(different(gpus)):
        return operations
    return operations.filter(pl.col("gpu").is_in(took_time.implode()))


def _recorded(launched: pl.Series, expected: pl.Series) -> pl.Series:
    """True for launch calls with GPU work, false for those that lack it, null for other calls."""
    has_work = np.zeros(len(expected), np.bool_)
    has_work[launched.drop_nulls().to_numpy()] = True
    work = pl.Series(has_work)
    return pl.select(recorded=pl.when(expected | work).then(work)).to_series()


@dataclass(frozen=True)
class Launches:
    """The runs of operations with the call that launched each, and which calls should leave a record."""

    of: Ints
    runs: pl.DataFrame
    calls: pl.DataFrame
    expected: pl.Series

    def column(self, name: str, unknown: int, operations: Ints) -> Ints:
        """Return a column of the launch calls of some operations, `unknown` where there is none."""
        index = self._call[self.of[operations]]
        if not len(self.calls):
            return np.full(len(index), unknown)
        found: Ints = self.calls[name].to_numpy()[index]
        found[index < 0] = unknown
        return found

    @cached_property
    def _call(self) -> Ints:
        return self.runs["call_index"].cast(pl.Int64).fill_null(-1).to_numpy()


def _analyse(gpu: int, trace: Trace, operations: pl.DataFrame, launches: Launches, replays: pl.DataFrame) -> _Gpu:
    offset, end = (column_of(operations, "gpu").search_sorted(gpu, side=side) for side in ("left", "right"))
    mine = operations[offset:end]
    starts, ends = begin_and_end(mine)

    def began(positions: Ints) -> Ints:
        return launches.column("start_ns", NEVER, positions + offset)

    def ended(positions: Ints) -> Ints:
        return launches.column("end_ns", NEVER, positions + offset)

    busy, gaps = gaps_module.busy_and_gaps(starts, ends, began)
    processes = tuple(mine["process"].unique().sort().to_list())
    spans = kept(replays, replays["gpu"] == gpu)
    lost = _lost_calls(launches.calls, processes)
    beyond = outlived(operations, launches.calls, processes)
    pieces = gaps_module.classify(
        gaps,
        began,
        ended,
        profiler=profiler_windows(trace.overheads, processes),
        replays=_measured(spans),
        lost=either(_tainted(gaps, launches, lost, offset), beyond),
    )
    device = _device(gpu, processes, busy, spans, launches, lost)
    _check_ledger(device, busy, pieces)
    return _Gpu(
        device,
        _gap_frame(gpu, gaps, mine, offset),
        _piece_frame(gpu, pieces),
        _on(gpu, start_ns=busy.starts, end_ns=busy.ends),
        gaps_module.running_end(kept(launches.runs, launches.runs["gpu"] == gpu)["end_ns"].to_numpy()),
        beyond,
    )


def _measured(replays: pl.DataFrame) -> Cover:
    """Return the spans of the replays recorded node by node; between two blocks of one launch nothing was measured."""
    spans = replays.pipe(where, pl.col("nodes").is_not_null())
    return union_of(spans)


def _tainted(gaps: Gaps, launches: Launches, lost: pl.DataFrame, offset: int) -> Cover:
    if lost.is_empty():
        return empty()
    opened, ended = (
        gaps_module.Side(launches.column("start_ns", NEVER, side), launches.column("thread", 0, side))
        for side in (gaps.before + offset, gaps.after + offset)
    )
    return gaps_module.tainted(gaps, opened, ended, lost["start_ns"].to_numpy(), lost["thread"].to_numpy())


def _lost_calls(calls: pl.DataFrame, processes: Sequence[int]) -> pl.DataFrame:
    return calls.pipe(where, ~pl.col("recorded") & pl.col("process").is_in(processes))


def profiler_windows(overheads: pl.DataFrame, processes: Sequence[int]) -> Cover:
    """Return the time the profiler itself took in any of these processes; it stops all their GPUs."""
    by_name = (pl.col("table") != OVERHEAD_TABLE) & pl.col("name").str.contains(f"(?i)^(?:{PROFILER_NAMES.pattern})")
    by_type = (pl.col("table") == OVERHEAD_TABLE) & pl.col("overhead_type").is_in(PROFILER_TYPES)
    rows = overheads.pipe(where, pl.col("process").is_in(processes) & (by_name | by_type).fill_null(value=False))
    return union_of(rows)


def _device(
    gpu: int, processes: tuple[int, ...], busy: Cover, spans: pl.DataFrame, launches: Launches, lost: pl.DataFrame
) -> Device:
    used = kept(launches.runs, launches.runs["gpu"] == gpu)["call_index"].drop_nulls().unique()
    recorded = launches.expected[used].sum()
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
    rows = on_gpu(leads, device.gpu)
    mine = kept(rows, ~rows["blocking"])["lead_ns"].drop_nulls()
    return replace(device, run_ahead_share=float(np.mean(mine.to_numpy() > 0)) if len(mine) else None)


def _check_ledger(device: Device, busy: Cover, pieces: Pieces) -> None:
    total = busy.total_ns + int((pieces.ends - pieces.starts).sum())
    if total != device.end_ns - device.start_ns:
        raise InternalError(
            f"the ledger of GPU {device.gpu} sums to {total} ns, its span is {device.end_ns - device.start_ns} ns"
        )


def _gap_frame(gpu: int, gaps: Gaps, mine: pl.DataFrame, offset: int) -> pl.DataFrame:
    return _on(
        gpu,
        start_ns=gaps.starts,
        end_ns=gaps.ends,
        before_index=(gaps.before + offset).astype(np.uint32),
        after_index=(gaps.after + offset).astype(np.uint32),
        call_index=mine["call_index"][gaps.after],
    )


def _piece_frame(gpu: int, pieces: Pieces) -> pl.DataFrame:
    return _on(gpu, gap_index=pieces.gap, start_ns=pieces.starts, end_ns=pieces.ends, idle_class=pieces.idle_class)


def _on(gpu: int, **columns: NDArray[np.integer] | pl.Series) -> pl.DataFrame:
    """Return a frame of what was found on a GPU; while that is the only one its number takes no memory."""
    return pl.DataFrame(columns).select_seq(pl.lit(gpu, pl.Int32).alias("gpu"), pl.all())


def _concat_pieces(found: Sequence[_Gpu]) -> pl.DataFrame:
    offsets = np.cumsum([0, *(len(gpu.gaps) for gpu in found)])
    return _together(
        [
            gpu.pieces.with_columns((pl.col("gap_index") + int(offset)).cast(pl.UInt32))
            for gpu, offset in zip(found, offsets, strict=False)
        ]
    )


def _together(frames: list[pl.DataFrame]) -> pl.DataFrame:
    """Put the frames of all GPUs behind each other, in one piece: numpy would copy a column of several at each look."""
    return pl.concat(frames, rechunk=len(frames) > 1)
