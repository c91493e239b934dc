"""Under which waits the GPU ran dry, and the chain of gaps that each of them opened.

Design section 2: a wait is to blame for a gap that opens under it and whose ending launch begins
after it, on the same thread. It is charged that gap and those that follow, up to the first that was
launched in time: there the host is ahead again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.timeline.model import IdleClass, on_gpu

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.timeline.model import Timeline

CHARGEABLE: Final = (IdleClass.HOST_LATE, IdleClass.LAUNCHING, IdleClass.QUEUED)
_OUTSIDE: Final = (*CHARGEABLE, IdleClass.UNATTRIBUTED, IdleClass.UNRECORDED)
NOBODY: Final = -1


@dataclass(frozen=True, slots=True)
class OpenGaps:
    """The gaps of one GPU that lie, at least in part, outside its graph replays, with the launch that ended each.

    `launched` and `thread` are those of the launch call of the operation that ends the gap; `known`
    tells whether there is one.
    """

    gap_index: Ints
    starts: Ints
    launched: Ints
    thread: Ints
    known: Bools


def find_charges(timeline: Timeline, waits: pl.DataFrame) -> pl.DataFrame:
    """Return the idle pieces charged to waits, each at most once: piece_index, wait_index, opened.

    Args:
        timeline: the timeline.
        waits: from `waits.find_waits`; `wait_index` is a position in it.

    Returns:
        one row a piece, by position; `opened` tells pieces of the very gap that opened under the wait.
    """
    blamed = np.full(len(timeline.gaps), NOBODY)
    opened = np.zeros(len(timeline.gaps), np.bool_)
    for device in timeline.devices:
        gaps = open_gaps(timeline, device.gpu)
        culprit = to_blame(gaps, waits.with_row_index("wait_index").filter(pl.col("gpu") == device.gpu))
        blamed[gaps.gap_index] = chains(gaps, culprit)
        opened[gaps.gap_index] = culprit != NOBODY
    chargeable = timeline.pieces["idle_class"].is_in([int(idle_class) for idle_class in CHARGEABLE]).arg_true()
    gap = timeline.pieces["gap_index"].gather(chargeable).to_numpy()
    pieces = pl.DataFrame({"piece_index": chargeable, "wait_index": blamed[gap], "opened": opened[gap]})
    return pieces.filter(pl.col("wait_index") != NOBODY)


def open_gaps(timeline: Timeline, gpu: int) -> OpenGaps:
    """Return the gaps of a GPU that are not wholly inside replays or profiler time."""
    pieces = on_gpu(timeline.pieces, gpu)
    outside = pieces["idle_class"].is_in([int(name) for name in _OUTSIDE])
    index = pieces["gap_index"].filter(outside).unique().sort()
    gaps = timeline.gaps.select("start_ns", "call_index")[index]
    known = gaps["call_index"].is_not_null().to_numpy()
    call = timeline.calls.select("start_ns", "thread")[gaps["call_index"].fill_null(0)] if known.any() else None
    zeros = np.zeros(len(index), np.int64)
    return OpenGaps(
        index.to_numpy().astype(np.int64),
        gaps["start_ns"].to_numpy(),
        zeros if call is None else call["start_ns"].to_numpy(),
        zeros if call is None else call["thread"].fill_null(0).to_numpy(),
        known,
    )


def to_blame(gaps: OpenGaps, waits: pl.DataFrame) -> Ints:
    """Return for each gap the `wait_index` of the wait that it opened under, NOBODY if none.

    Of a thread's waits the earliest that holds the gap's start counts; they don't overlap, so that
    is the first which ends at or after it.
    """
    culprit = np.full(len(gaps.starts), NOBODY)
    for (thread,), mine in waits.sort("start_ns").partition_by("launcher", as_dict=True, maintain_order=True).items():
        number, begins, ends = (mine[name].to_numpy() for name in ("wait_index", "start_ns", "end_ns"))
        position = np.searchsorted(np.maximum.accumulate(ends), gaps.starts, side="left")
        wait = np.minimum(position, len(mine) - 1)
        blames = (
            (position < len(mine))
            & gaps.known
            & (gaps.thread == thread)
            & (begins[wait] <= gaps.starts)
            & (ends[wait] >= gaps.starts)
            & (ends[wait] <= gaps.launched)
        )
        culprit = np.where(blames, number[wait], culprit)
    return culprit


def chains(gaps: OpenGaps, culprit: Ints) -> Ints:
    """Return the wait that each gap is charged to: the one that opened its chain, NOBODY outside chains.

    A chain goes on as long as the launches of the same thread come too late; a gap whose launch is
    unknown, came in time or from another thread ends it, and so does the next wait to blame.
    """
    position = np.arange(len(culprit))
    opener = np.maximum.accumulate(np.where(culprit != NOBODY, position, NOBODY))
    late = gaps.known & (gaps.launched > gaps.starts)
    same = (opener != NOBODY) & (gaps.thread == gaps.thread[opener])
    breaks = (culprit == NOBODY) & ~(late & same)
    last_break = np.maximum.accumulate(np.where(breaks, position, NOBODY))
    return np.where((opener != NOBODY) & (last_break < opener), culprit[opener], NOBODY)
