"""What the timeline found out about the capture: coverage, causality, and what graphs left unseen."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.lookup import column_of, where
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.launches import LAUNCHES
from bubblefinder.timeline.model import CaptureMode
from bubblefinder.trace.model import EVENTS_UNREAD, KERNEL, MEMCPY, Level, QualityNote
from bubblefinder.units import duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.intervals import Cover
    from bubblefinder.timeline.model import Device

_SKEWED_NS: Final = 100_000
_MOSTLY: Final = 0.5
_DOUBT: Final = re.compile(r"\bCUDA\b.* might have ")
"""What the profiler says of CUDA without knowing it."""
_WALKED: Final = QualityNote(
    "stack-walked",
    "warn",
    "the profiler walked the stack at every launch call: the names of calls hold, but all times are those of a far"
    " slower program, so no cause has a price; name a light capture's calls with --names-from",
)
_MODES: Final[dict[CaptureMode, tuple[Level, str]]] = {
    CaptureMode.NODE: (
        "info",
        "graph nodes were recorded one by one: gaps inside graphs are measured, launch calls are slowed by the tracer",
    ),
    CaptureMode.GRAPH: (
        "info",
        "each graph replay was recorded as one block: gaps inside graphs are not measured (node mode measures them)",
    ),
    CaptureMode.MIXED: (
        "warn",
        "some replays were recorded as blocks, some node by node: gaps inside graphs are measured for the latter only",
    ),
    CaptureMode.NONE: ("info", "no CUDA graph was launched while capturing"),
    CaptureMode.UNSEEN: (
        "error",
        "CUDA graphs were launched but their GPU work is not in the export: busy time is a lower bound, no bubble told",
    ),
}


def timeline_notes(
    operations: pl.DataFrame,
    calls: pl.DataFrame,
    devices: Sequence[Device],
    mode: CaptureMode,
    *,
    walked: bool,
    outlived: Sequence[Cover] = (),
) -> tuple[QualityNote, ...]:
    """Return the quality notes of a timeline, capture mode first."""
    notes = [
        _mode_note(calls, mode),
        *([_WALKED] if walked else []),
        *_coverage(operations, calls, mode),
        *_clocks(operations, calls),
        *_eager(operations, mode),
        *_shared(devices),
        *_outlived(outlived),
    ]
    return tuple(notes)


def stack_walked(calls: pl.DataFrame) -> bool:
    """Tell whether most launch calls have a call chain: walking the stack at each doubles a step and more."""
    launches = column_of(calls, "callchain").filter(calls["role"].is_in([int(role) for role in LAUNCHES]))
    return launches.count() > _MOSTLY * len(launches)


def settled(notes: Sequence[QualityNote], calls: pl.DataFrame, operations: pl.DataFrame) -> tuple[QualityNote, ...]:
    """Return a trace's notes, quieter where the records prove complete what the profiler always doubts.

    With a record for every launch call and a launch call for every operation nothing of CUDA is missing. Engines of
    several processes always leave a doubt whether CUDA was profiled in all of them.
    """
    launched = calls["recorded"].drop_nulls()
    read = all(note.code != EVENTS_UNREAD for note in notes)
    whole = read and len(launched) > 0 and launched.all() and not operations["call_index"].null_count()
    return tuple(
        replace(note, level="info", message=f"{note.message} Every launch call has its GPU work on record, though.")
        if whole and _doubts_cuda(note)
        else note
        for note in notes
    )


def _doubts_cuda(note: QualityNote) -> bool:
    """Say whether a note is a doubt that nothing has settled yet; that of a part may have been, by the whole."""
    said = note.level == "warn" and note.code in {"events-incomplete", "diagnostic"}
    return said and _DOUBT.search(note.message) is not None


def _mode_note(calls: pl.DataFrame, mode: CaptureMode) -> QualityNote:
    launches = int((calls["role"] == CallRole.LAUNCH_GRAPH).sum())
    level, message = _MODES[mode]
    return QualityNote(f"capture-mode-{mode.value}", level, message, launches or None)


def _coverage(operations: pl.DataFrame, calls: pl.DataFrame, mode: CaptureMode) -> Iterator[QualityNote]:
    lost = int((~calls["recorded"]).sum())
    if lost and mode is not CaptureMode.UNSEEN:
        seen = int(calls["recorded"].count())
        yield QualityNote(
            "launches-without-work",
            "warn",
            f"{lost:,} of {seen:,} calls that launch or move left no GPU record: the time they may have used counts as "
            "unrecorded, not as idle",
            lost,
        )
    yield from _copies(operations, calls)
    orphans = int(operations["call_index"].is_null().sum())
    if orphans:
        yield QualityNote(
            "work-without-launches",
            "warn" if orphans * 10 > len(operations) else "info",
            f"{orphans:,} of {len(operations):,} GPU operations have no API call in the capture: gaps they end are "
            "unattributed",
            orphans,
        )


def _copies(operations: pl.DataFrame, calls: pl.DataFrame) -> Iterator[QualityNote]:
    """Say that copies were asked for and none is on record; one lost copy among others can't be told."""
    asked = calls.pipe(
        where, (pl.col("role") == CallRole.COPY) & (pl.col("return_value").fill_null(0) == 0) & ~pl.col("captured")
    )
    if len(asked) and not (operations["kind"] == MEMCPY).any() and not asked["recorded"].any():
        yield QualityNote(
            "copies-without-work",
            "warn",
            f"{len(asked):,} copy calls left no copy on record: where copies ran, the GPU seems idle",
            len(asked),
        )


def _clocks(operations: pl.DataFrame, calls: pl.DataFrame) -> Iterator[QualityNote]:
    ahead = calls["start_ns"][operations["call_index"]] - operations["start_ns"]
    early = ahead.filter(ahead > 0).to_numpy()
    if len(early):
        worst = int(early.max())
        yield QualityNote(
            "starts-before-launch",
            "warn" if worst > _SKEWED_NS else "info",
            f"{len(early):,} GPU operations start before their own launch call (by up to {worst:,} ns): "
            "GPU and host clocks disagree by that much, so host causes finer than that are uncertain",
            len(early),
        )


def _shared(devices: Sequence[Device]) -> Iterator[QualityNote]:
    for device in devices:
        processes = len(device.processes)
        if processes == 1:
            continue
        yield QualityNote(
            "shared-gpu",
            "warn",
            f"{processes} processes used GPU {device.gpu}: idle is what none of them used, and what a cure would give "
            "isn't predicted",
            processes,
        )


def _outlived(outlived: Sequence[Cover]) -> Iterator[QualityNote]:
    waits = max((len(cover) for cover in outlived), default=0)
    if waits:
        longest = max(int((cover.ends - cover.starts).max()) for cover in outlived if len(cover))
        yield QualityNote(
            "waits-beyond-records",
            "warn",
            f"{waits:,} waits return up to {duration(longest)} after all GPU work on record: work is missing (passes "
            "of a WHILE graph, graphs launched by the GPU, prefetches), and that time is unrecorded, not idle",
            waits,
        )


def _eager(operations: pl.DataFrame, mode: CaptureMode) -> Iterator[QualityNote]:
    if mode is not CaptureMode.NODE:
        return
    if not operations.select(((pl.col("kind") == KERNEL) & pl.col("graph_node").is_null()).any()).item():
        yield QualityNote(
            "no-eager-kernels",
            "info",
            "every recorded kernel belongs to a graph: either the program launches none itself, or the capture left "
            "them out",
        )
