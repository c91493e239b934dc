"""The tracks of a capture's timeline: host ranges and calls above, idle time and GPU streams below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.timeline.model import IdleClass
from bubblefinder.trace.model import process_of
from bubblefinder.web.events import Events, lanes, write_tracks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bubblefinder.timeline.model import Timeline

_OPERATIONS: Final = ("kernel", "copy", "memset", "graph")
KINDS: Final = (*_OPERATIONS, "call", "nvtx", *(idle.name.lower() for idle in IdleClass))
_CALL: Final = KINDS.index("call")
_NVTX: Final = KINDS.index("nvtx")
_IDLE: Final = KINDS.index(IdleClass.PROFILER.name.lower())


class _Names:
    """Texts and their positions."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}

    def of(self, texts: pl.Series) -> pl.Series:
        """Return the position of every text."""
        distinct = texts.unique()
        places = [self._positions.setdefault(text, len(self._positions)) for text in distinct]
        return texts.replace_strict(distinct, places, return_dtype=pl.Int32)

    def texts(self) -> list[str]:
        """Return the texts in order of their positions."""
        return list(self._positions)


def write_events(timeline: Timeline, folder: Path) -> None:
    """Write every event that a window can show into a new folder."""
    names = _Names()
    tracks = [*_host(timeline, names), *_gpus(timeline, names)]
    write_tracks(tracks, names.texts(), KINDS, folder)


def _host(timeline: Timeline, names: _Names) -> Iterator[Events]:
    trace = timeline.trace
    ranges = trace.nvtx.with_columns(pl.col("end_ns").fill_null(pl.col("start_ns").max()), kind=pl.lit(_NVTX, pl.UInt8))
    calls = timeline.calls.with_columns(text=pl.col("api").cast(pl.String), kind=pl.lit(_CALL, pl.UInt8))
    for group, rows, title in (("nvtx", ranges, "NVTX"), ("calls", calls, "CUDA calls")):
        for (thread,), mine in sorted(rows.partition_by("thread", as_dict=True).items()):
            yield from lanes(_events(group, f"{title}, {_thread(timeline, thread)}", mine, names))


def _gpus(timeline: Timeline, names: _Names) -> Iterator[Events]:
    operations = timeline.operations.with_columns(text=_operation_names(timeline), kind=pl.col("kind").cast(pl.UInt8))
    idle = timeline.pieces.with_columns(
        text=pl.col("idle_class").replace_strict({i.value: i.name.lower().replace("_", " ") for i in IdleClass}),
        kind=(pl.col("idle_class") + _IDLE).cast(pl.UInt8),
    )
    inside = pl.col("idle_class") == IdleClass.INTRA_GRAPH.value
    for (gpu,), pieces in sorted(idle.partition_by("gpu", as_dict=True).items()):
        yield _events("inside", f"GPU {gpu}, idle inside graph replays", pieces.filter(inside), names)
        yield _events("outside", f"GPU {gpu}, idle outside graph replays", pieces.filter(~inside), names)
    for (gpu, stream), mine in sorted(operations.partition_by("gpu", "stream", as_dict=True).items()):
        yield _events("gpu", f"GPU {gpu}, stream {stream}", mine, names)


def _events(group: str, title: str, rows: pl.DataFrame, names: _Names) -> Events:
    return Events(
        group,
        title,
        rows["start_ns"].to_numpy().astype(np.int64),
        rows["end_ns"].to_numpy().astype(np.int64),
        names.of(rows["text"].fill_null("(no name)")).to_numpy(),
        rows["kind"].to_numpy(),
    )


def _named(ids: pl.Series, timeline: Timeline) -> pl.Series:
    known = timeline.trace.names
    distinct = ids.drop_nulls().unique()
    texts = [known.get(number, "(no name)") for number in distinct]
    return ids.replace_strict(distinct, texts, default=None, return_dtype=pl.String)


def _operation_names(timeline: Timeline) -> pl.Series:
    operations = timeline.operations
    kinds = operations["kind"].replace_strict(dict(enumerate(_OPERATIONS)), return_dtype=pl.String)
    return _named(operations["name"], timeline).fill_null(kinds)


def _thread(timeline: Timeline, thread: int | None) -> str:
    if thread is None:
        return "unknown thread"
    name = timeline.trace.thread_names.get(thread)
    pid = process_of(thread) & 0xFF_FFFF
    return f"thread {thread & 0xFF_FFFF}" + (f" {name}" if name else "") + f" of process {pid}"
