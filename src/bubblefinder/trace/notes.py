"""What the loaded capture can and can't tell, as notes with stable codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.lookup import again, column_of, different, joint_keys
from bubblefinder.trace import schema
from bubblefinder.trace.info import gpu_names
from bubblefinder.trace.model import QualityNote, pid_of
from bubblefinder.trace.quality import diagnostic_notes

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from bubblefinder.trace.model import Level, Trace
    from bubblefinder.trace.quality import Tally
    from bubblefinder.trace.schema import Source

_MIGRATIONS: Final = (11, 12, 13)
_MOST_NAMED: Final = 16
"""Idle GPUs named one by one: those of a machine."""


def capture_notes(source: Source, trace: Trace, tally: Tally, diagnostics: pl.DataFrame) -> list[QualityNote]:
    """Say what the capture can and can't tell, beyond the rows that were left out.

    Args:
        source: the export.
        trace: what was loaded of it.
        tally: what was assumed while loading.
        diagnostics: rows of DIAGNOSTIC_EVENT.
    """
    return [
        *diagnostic_notes(source, diagnostics, None if trace.part else tally.nvtx_rows),
        *_part(trace),
        *_absent_tables(source, trace),
        *_gpus(source, trace, tally),
        *_silent_processes(trace),
        *_repeated_correlations(trace),
        *_migrations(trace),
        *_sessions(source),
    ]


def _absent_tables(source: Source, trace: Trace) -> Iterator[QualityNote]:
    """Say which questions can't be answered because a table is missing or empty."""
    if trace.calls.is_empty():
        message = "the export has no CUDA API calls, so no gap can be charged to a host call: record with --trace=cuda"
        yield QualityNote("no-api-calls", "warn", message)
    if trace.nvtx.is_empty():
        yield QualityNote("no-nvtx-ranges", "info", "the export has no NVTX ranges; steps are found without them")
    newer = source.columns(schema.DIAGNOSTICS) or "greenContextId" in source.columns(schema.KERNELS)
    if newer and not source.columns(schema.EXPORT):
        message = "the export ends early: META_DATA_EXPORT, which is written last, is missing; export the report again"
        yield QualityNote("export-incomplete", "warn", message)


def _part(trace: Trace) -> Iterator[QualityNote]:
    """Say that the file is a part of a capture."""
    if trace.part:
        kept = "; its steps are those found in the whole, and keep their index" if trace.part.ranks.height else ""
        yield QualityNote("slice", "info", f"this is a slice of a capture, cut by bubblefinder{kept}")


def _gpus(source: Source, trace: Trace, tally: Tally) -> Iterator[QualityNote]:
    """Say where a GPU was assumed, and which listed GPUs did nothing."""
    listed = gpu_names(source)
    if tally.assumed_gpu:
        level: Level = "info" if len(listed) == len(trace.info.gpus) == 1 else "warn"
        message = "the capture doesn't say which GPU a process's device is; device numbers are taken for GPU numbers"
        yield QualityNote("gpu-assumed", level, message, tally.assumed_gpu)
    if tally.ambiguous_gpu:
        message = (
            f"{tally.ambiguous_gpu} processes share an id (containers) and were given the GPUs of that id in order; "
            "which of them used which, the capture doesn't say, and what is shown as one GPU may be several"
        )
        yield QualityNote("gpu-ambiguous", "warn", message, tally.ambiguous_gpu)
    if tally.sliced_gpus:
        message = "a GPU is split into MIG slices, which are shown as one GPU: idle is what none of the slices used"
        yield QualityNote("gpu-sliced", "warn", message, tally.sliced_gpus)
    unused = sorted(listed.keys() - {gpu.gpu for gpu in trace.info.gpus})
    if unused:
        others = f" and {len(unused) - _MOST_NAMED:,} more" if len(unused) > _MOST_NAMED else ""
        named = ", ".join(map(str, unused[:_MOST_NAMED]))
        message = f"the capture names GPUs without any recorded work: {named}{others}"
        yield QualityNote("gpus-unused", "info", message, len(unused))


def _silent_processes(trace: Trace) -> Iterator[QualityNote]:
    """Say which processes launched work of which nothing was recorded, while others' work was."""
    launches = [number for number, name in trace.names.items() if "Launch" in name and "HostFunc" not in name]
    launching = column_of(trace.calls, "process").filter(trace.calls["name"].is_in(launches)).drop_nulls().unique()
    silent = sorted(set(launching) - set(different(column_of(trace.operations, "process"))))
    if silent and trace.operations.height:
        pids = ", ".join(str(pid_of(process)) for process in silent)
        message = f"processes launched GPU work of which nothing was recorded, so their GPUs are not shown: {pids}"
        yield QualityNote("process-without-work", "warn", message, len(silent))


def _repeated_correlations(trace: Trace) -> Iterator[QualityNote]:
    """Count the API calls that share their correlation id with another call of the same process."""
    keyed = joint_keys([trace.calls], "process", "correlation")
    if keyed is None:
        known = trace.calls.select("process", "correlation").drop_nulls("correlation")
        repeated = len(known) - known.n_unique()
    else:
        repeated = again(keyed[0][0], keyed[1])
    if repeated:
        message = "API calls share a correlation id inside one process; work goes to the latest that began before it"
        yield QualityNote("repeated-correlations", "info", message, repeated)


def _migrations(trace: Trace) -> Iterator[QualityNote]:
    """Count the copies that the driver made to move unified memory."""
    count = int(column_of(trace.operations, "copy_kind").is_in(_MIGRATIONS).sum())
    if count:
        message = (
            "the driver made copies to move unified memory; they count as busy, never as a copy that was waited for"
        )
        yield QualityNote("unified-memory", "info", message, count)


def _sessions(source: Source) -> Iterator[QualityNote]:
    """Say that the file holds several captures, whose ids and clocks may collide."""
    sessions = source.read(schema.SESSIONS).frame.height
    if sessions > 1:
        message = f"the file holds {sessions} capture sessions, whose ids may collide: analyse each on its own"
        yield QualityNote("several-sessions", "warn", message, sessions)
