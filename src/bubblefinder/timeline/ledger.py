"""The ledger: busy and every idle class, for a device or for any windows that tile it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.intervals import Cover, Ints, begin_and_end, covered_before
from bubblefinder.lookup import on_gpu, where
from bubblefinder.timeline.model import IdleClass

if TYPE_CHECKING:
    from bubblefinder.timeline.model import Device, Timeline

COLUMNS = tuple(f"{idle_class.name.lower()}_ns" for idle_class in IdleClass)


def window_ledger(timeline: Timeline, gpu: int, starts: Ints, ends: Ints) -> pl.DataFrame:
    """Return busy_ns and one column an idle class for each window [starts[i], ends[i]) of a GPU.

    Busy and idle tile the GPU's span, so each row sums to the part of its window inside the span.
    """
    pieces = on_gpu(timeline.pieces, gpu)
    classes = pieces["idle_class"].to_numpy()
    whole = cover_of(pieces)
    commonest = np.bincount(classes, minlength=len(IdleClass)).argmax()
    rest = _inside(whole, starts, ends)
    columns = {"busy_ns": busy_ns(timeline, gpu, starts, ends), **dict.fromkeys(COLUMNS, rest)}
    for idle_class, name in zip(IdleClass, COLUMNS, strict=True):
        if idle_class != commonest:
            chosen = classes == int(idle_class)
            columns[name] = _inside(Cover(whole.starts[chosen], whole.ends[chosen]), starts, ends)
            rest = rest - columns[name]
    columns[COLUMNS[commonest]] = rest
    return pl.DataFrame(columns)


def busy_ns(timeline: Timeline, gpu: int, starts: Ints, ends: Ints) -> Ints:
    """Return how long the GPU is busy in each window."""
    return _inside(cover_of(on_gpu(timeline.busy, gpu)), starts, ends)


def occupied_ns(timeline: Timeline, gpu: int, starts: Ints, ends: Ints) -> Ints:
    """Return how long the GPU is busy or inside a replay in each window, or may have worked without a record."""
    taken = (int(IdleClass.UNRECORDED), int(IdleClass.INTRA_GRAPH))
    pieces = on_gpu(timeline.pieces, gpu).pipe(where, pl.col("idle_class").is_in(taken))
    return busy_ns(timeline, gpu, starts, ends) + _inside(cover_of(pieces), starts, ends)


def device_ledger(timeline: Timeline, device: Device) -> dict[str, int]:
    """Return busy_ns and every idle class of a GPU over its whole span."""
    pieces = on_gpu(timeline.pieces, device.gpu)
    totals = pieces.group_by("idle_class").agg((pl.col("end_ns") - pl.col("start_ns")).sum())
    by_class = dict(totals.iter_rows())
    idle = {name: by_class.get(int(idle_class), 0) for idle_class, name in zip(IdleClass, COLUMNS, strict=True)}
    return {"busy_ns": device.busy_ns, **idle}


def cover_of(rows: pl.DataFrame) -> Cover:
    """Return rows of disjoint, sorted intervals as a cover."""
    return Cover(*begin_and_end(rows))


def _inside(cover: Cover, starts: Ints, ends: Ints) -> Ints:
    before = covered_before(np.concatenate((starts, ends)), cover)
    return before[len(starts) :] - before[: len(starts)]
