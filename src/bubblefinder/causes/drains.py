"""Under which calls the GPU ran dry, the chain of gaps that each of them opened, and the lead that others cost.

A call is to blame for a gap that opens under it and whose ending launch begins after it, on the same thread. It is
charged that gap and those that follow, up to the first that was launched in time: there the host is ahead again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.causes.thresholds import COVERS, OWN_COPY_NS, STALL_NS
from bubblefinder.intervals import begin_and_end, distinct, one_of
from bubblefinder.lookup import NOWHERE, kept, on_gpu, places, taken
from bubblefinder.timeline.apis import CallRole
from bubblefinder.timeline.model import INTER, CaptureMode, IdleClass

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.timeline.model import Timeline

_OUTSIDE: Final = (*INTER, IdleClass.UNRECORDED)
NOBODY: Final = -1


@dataclass(frozen=True, slots=True)
class OpenGaps:
    """The gaps of one GPU that lie, at least in part, outside its graph replays, with the launch that ended each.

    `launched` and `thread` are those of the launch call of the operation that ends the gap; `known`
    tells whether there is one. `due` is when that call would have had to be over for the GPU to go on at once: its
    end, or its begin where tracing graph nodes makes calls many times longer than they are.
    """

    gap_index: Ints
    starts: Ints
    launched: Ints
    due: Ints
    thread: Ints
    known: Bools


def open_gaps(timeline: Timeline, gpu: int) -> OpenGaps:
    """Return the gaps of a GPU that are not wholly inside replays or profiler time."""
    pieces = on_gpu(timeline.pieces, gpu)
    outside = one_of(pieces["idle_class"].to_numpy(), _OUTSIDE)
    index = distinct(pieces["gap_index"].to_numpy()[outside].astype(np.int64))
    gaps = taken(timeline.gaps[["start_ns", "end_ns", "call_index"]], index)
    starts, ends = begin_and_end(gaps)
    number = places(gaps["call_index"])
    known = number != NOWHERE
    if not known.any():
        zeros = np.zeros(len(index), np.int64)
        return OpenGaps(index, starts, zeros, zeros, zeros, known)
    call = taken(timeline.calls[["start_ns", "end_ns", "thread", "role"]], np.maximum(number, 0))
    launched = call["start_ns"].to_numpy()
    stretched = timeline.mode is CaptureMode.NODE and (call["role"] == CallRole.LAUNCH_GRAPH).to_numpy()
    due = np.where(stretched, launched, np.minimum(call["end_ns"].to_numpy(), ends))
    return OpenGaps(index, starts, launched, due, call["thread"].fill_null(0).to_numpy(), known)


def waiting_for_others(timeline: Timeline, waits: pl.DataFrame) -> pl.DataFrame:
    """Leave out the short copies on a GPU that was idle when their call began: they wait for nothing but themselves."""
    copy = places(waits["copy_index"])
    copies = taken(timeline.operations[["start_ns", "end_ns"]], np.maximum(copy, 0))
    ended = timeline.gaps["after_index"].to_numpy()
    gap = np.searchsorted(ended, copy)
    idle = (copy != NOWHERE) & (np.append(ended, 0)[gap] == copy)
    since = np.append(timeline.gaps["start_ns"].to_numpy(), 0)[gap]
    short = (copies["end_ns"] - copies["start_ns"]).to_numpy() < OWN_COPY_NS
    alone = ~waits["synchronises"].to_numpy() & idle & (since <= waits["start_ns"].to_numpy()) & short
    return kept(waits, ~alone)


def to_blame(gaps: OpenGaps, waits: pl.DataFrame) -> Ints:
    """Return for each gap the `wait_index` of the wait that it opened under, NOBODY if none.

    Of a thread's waits the earliest that holds the gap's start counts; they don't overlap, so that
    is the first which ends at or after it. A call that is busy with itself counts if most of the time from the gap's
    start to the next launch lies in it.
    """
    culprit = np.full(len(gaps.starts), NOBODY)
    for mine in waits.sort("start_ns").partition_by("launcher", maintain_order=True):
        thread = mine["launcher"][0]
        number, begins, ends = (mine[name].to_numpy() for name in ("wait_index", "start_ns", "end_ns"))
        awaits = mine["awaits"].to_numpy()
        position = np.searchsorted(np.maximum.accumulate(ends), gaps.starts, side="left")
        wait = np.minimum(position, len(mine) - 1)
        mostly = ends[wait] - gaps.starts > COVERS * (gaps.launched - gaps.starts)
        blames = (
            (position < len(mine))
            & gaps.known
            & (gaps.thread == thread)
            & (begins[wait] <= gaps.starts)
            & (ends[wait] >= gaps.starts)
            & (ends[wait] <= gaps.launched)
            & (awaits[wait] | mostly)
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


def lead_lost(gaps: OpenGaps, waits: pl.DataFrame, charged: Ints) -> Ints:
    """Return for each gap outside chains the wait that cost the host the lead it lacks there, NOBODY if none.

    A wait may return while queued work still runs. It then opens no gap, yet the host starts on what comes next only
    then. Without the wait, launches that come late up to the next one would have come sooner by as long as it lasted:
    it is charged such gaps as long as they sum to no more than that.
    """
    culprit = np.full(len(gaps.starts), NOBODY)
    long = kept(waits, waits["awaits"] & (waits["end_ns"] - waits["start_ns"] >= STALL_NS))
    free = (charged == NOBODY) & gaps.known & (gaps.due > gaps.starts)
    for mine in long.sort("end_ns").partition_by("launcher", maintain_order=True):
        thread = mine["launcher"][0]
        number, begins, ends = (mine[name].to_numpy() for name in ("wait_index", "start_ns", "end_ns"))
        late = np.flatnonzero(free & (gaps.thread == thread))
        wait = np.searchsorted(ends, gaps.starts[late], side="right") - 1
        late, wait = late[wait >= 0], wait[wait >= 0]
        lack = np.cumsum(gaps.due[late] - gaps.starts[late])
        first = np.searchsorted(wait, wait)
        since = lack - np.where(first > 0, lack[first - 1], 0)
        fits = since <= (ends - begins)[wait]
        culprit[late[fits]] = number[wait[fits]]
    return culprit
