"""The tracks of a capture's timeline: host ranges and calls above, idle time and GPU streams below."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.lookup import Numbers
from bubblefinder.timeline.model import IdleClass, Timeline
from bubblefinder.timeline.rank import Rank, ranks_of
from bubblefinder.trace.model import number_of, process_of
from bubblefinder.web.events import Events, lanes, write_tracks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bubblefinder.steps.model import Steps

_OPERATIONS: Final = ("kernel", "copy", "memset", "graph")
KINDS: Final = (*_OPERATIONS, "call", "nvtx", *(idle.name.lower() for idle in IdleClass))
_CALL: Final = KINDS.index("call")
_NVTX: Final = KINDS.index("nvtx")
_IDLE: Final = KINDS.index(IdleClass.PROFILER.name.lower())


class _Names(Numbers):
    """Texts and their positions; rows carry positions, since ten million texts would not fit."""

    def of(self, text: str | None) -> int:
        """Return the position of a text."""
        return self[text or "(no name)"]

    def of_ids(self, ids: pl.Series, known: Mapping[int, str]) -> pl.Series:
        """Return the positions of texts given by number; null stays null."""
        distinct = ids.drop_nulls().unique()
        places = [self.of(known.get(number)) for number in distinct]
        return ids.replace_strict(distinct, places, default=None, return_dtype=pl.Int32)

    def of_texts(self, texts: pl.Series) -> pl.Series:
        """Return the positions of texts; null counts as a text."""
        distinct = texts.unique()
        return texts.replace_strict(distinct, [self.of(text) for text in distinct], return_dtype=pl.Int32)


def write_events(timeline: Timeline, steps: Steps, folder: Path) -> None:
    """Write every event that a window can show into a new folder, and the steps of the first rank."""
    names = _Names()
    first = next(iter(steps.detections), None) or next(iter(ranks_of(timeline)), None)
    tracks = [*_host(timeline, names, first), *_gpus(timeline, names, first)]
    write_tracks(tracks, list(names), KINDS, folder, list(_steps(steps)))


def _steps(steps: Steps) -> Iterator[tuple[int, int, int]]:
    """Return the windows of the first rank, with the number that the report gives a decode step, from 1."""
    rank = next(iter(steps.detections), None)
    if rank is None:
        return
    mine = steps.windows.filter(rank.mine)
    number = 0
    for start, end, excluded in mine.select("start_ns", "end_ns", "excluded").iter_rows():
        number += excluded is None
        yield start, end, number if excluded is None else 0


def _host(timeline: Timeline, names: _Names, first: Rank | None) -> Iterator[Events]:
    nvtx, calls = timeline.trace.nvtx, timeline.calls
    end = pl.col("end_ns").fill_null(pl.col("start_ns").max())
    ranges = nvtx.select("thread", "start_ns", end, place=names.of_texts(nvtx["text"]), kind=pl.lit(_NVTX, pl.UInt8))
    api = names.of_texts(calls["api"])
    called = calls.select(
        "thread", "start_ns", "end_ns", place=api, kind=pl.lit(_CALL, pl.UInt8), flow=pl.int_range(pl.len())
    )
    for group, rows, title in (("nvtx", ranges, "NVTX"), ("calls", called, "CUDA calls")):
        for (thread,), mine in sorted(rows.partition_by("thread", as_dict=True).items()):
            leading = first is not None and thread is not None and process_of(thread) == first.process
            yield from lanes(_events(group, f"{title}, {_thread(timeline, thread)}", mine, leading=leading))


def _gpus(timeline: Timeline, names: _Names, first: Rank | None) -> Iterator[Events]:
    classes = {idle.value: names.of(idle.name.lower().replace("_", " ")) for idle in IdleClass}
    place = pl.col("idle_class").replace_strict(classes, return_dtype=pl.Int32)
    kind = (pl.col("idle_class") + _IDLE).cast(pl.UInt8)
    idle = timeline.pieces.select("gpu", "start_ns", "end_ns", place=place, kind=kind)
    inside = pl.col("kind") == _IDLE + IdleClass.INTRA_GRAPH.value
    for (gpu,), pieces in sorted(idle.partition_by("gpu", as_dict=True).items()):
        leading = first is not None and gpu == first.gpu
        yield _events("inside", f"GPU {gpu}, idle inside graph replays", pieces.filter(inside), leading=leading)
        yield _events("outside", f"GPU {gpu}, idle outside graph replays", pieces.filter(~inside), leading=leading)
    for (gpu, stream), mine in sorted(_operations(timeline, names).partition_by("gpu", "stream", as_dict=True).items()):
        leading = first is not None and gpu == first.gpu
        yield _events("gpu", f"GPU {gpu}, stream {stream}", mine, leading=leading)


def _operations(timeline: Timeline, names: _Names) -> pl.DataFrame:
    """Return the operations by their kernel's name, the others by their kind."""
    operations = timeline.operations
    kinds = {number: names.of(kind) for number, kind in enumerate(_OPERATIONS)}
    return operations.select(
        "gpu",
        "stream",
        "start_ns",
        "end_ns",
        pl.col("kind").cast(pl.UInt8),
        flow=pl.col("call_index").fill_null(-1),
        place=names.of_ids(operations["name"], timeline.trace.names).fill_null(
            operations["kind"].replace_strict(kinds, return_dtype=pl.Int32)
        ),
    )


def _events(group: str, title: str, rows: pl.DataFrame, *, leading: bool) -> Events:
    start, end, place, kind = (rows[name].to_numpy() for name in ("start_ns", "end_ns", "place", "kind"))
    flow = rows["flow"].cast(pl.Int32).to_numpy() if "flow" in rows.columns else None
    return Events(group, title, start, end, place, kind, flow, leading)


def _thread(timeline: Timeline, thread: int | None) -> str:
    if thread is None:
        return "unknown thread"
    name = timeline.trace.thread_names.get(thread)
    pid = process_of(thread) & 0xFF_FFFF
    return f"thread {number_of(thread)}" + (f" {name}" if name else "") + f" of process {pid}"
