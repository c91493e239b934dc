"""Who is charged with which part of the idle time: the calls that opened it, and what held the host up inside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.causes.drains import NOBODY, chains, lead_lost, open_gaps, to_blame, waiting_for_others
from bubblefinder.intervals import begin_and_end, held_by, one_of, split
from bubblefinder.lookup import NOWHERE, kept, taken
from bubblefinder.timeline.model import EXPLAINED, LATE

if TYPE_CHECKING:
    from bubblefinder.timeline.model import Timeline


def find_charges(timeline: Timeline, waits: pl.DataFrame, pauses: pl.DataFrame) -> pl.DataFrame:
    """Return the idle time that is charged to waits and pauses, each moment at most once.

    A wait to blame is charged its chain, a wait that cost the host its lead the gaps that this explains. Inside both,
    and outside, the calls that are busy with themselves and the pauses of the launching thread take the idle that lies
    under them. A busy call is charged what it opened behind itself too, but no more than it lasts.

    Args:
        timeline: the timeline.
        waits: from `waits.find_waits`; `wait_index` is a position in it.
        pauses: from `pauses.find_pauses`; `pause_index` is a position in it.

    Returns:
        piece_index, start_ns, end_ns (a piece or a part of it), wait_index or pause_index (the other is null), opened
        (it belongs to the very gap that opened under the wait); by time inside a GPU.
    """
    waits = waits.with_row_index("wait_index")
    chargeable = np.flatnonzero(one_of(timeline.pieces["idle_class"].to_numpy(), EXPLAINED))
    pieces = taken(timeline.pieces[["gpu", "start_ns", "end_ns", "idle_class"]], chargeable).hstack(
        [
            pl.Series("piece_index", chargeable, pl.UInt32),
            pl.Series("pause_index", np.full(len(chargeable), NOBODY)),
            *taken(_blamed(timeline, waits), timeline.pieces["gap_index"].to_numpy()[chargeable]),
        ]
    )
    shared = _shared(pieces, _claims(waits, pauses))
    found = kept(shared, (shared["wait_index"] != NOBODY) | (shared["pause_index"] != NOBODY))
    found = _no_longer_than_the_call(found, waits)
    known = pl.col("wait_index", "pause_index")
    return found.sort("piece_index", "start_ns").select_seq(
        "piece_index", "start_ns", "end_ns", pl.when(known != NOBODY).then(known), "opened"
    )


def _blamed(timeline: Timeline, waits: pl.DataFrame) -> pl.DataFrame:
    """Return for each gap the wait that it is charged to, whether it opened under that, and whose launch ended it."""
    blamed = np.full(len(timeline.gaps), NOBODY)
    opened = np.zeros(len(timeline.gaps), np.bool_)
    thread = np.zeros(len(timeline.gaps), np.int64)
    others = waiting_for_others(timeline, waits)
    for device in timeline.devices:
        gaps = open_gaps(timeline, device.gpu)
        mine = kept(others, others["gpu"] == device.gpu)
        culprit = to_blame(gaps, mine)
        charged = chains(gaps, culprit)
        blamed[gaps.gap_index] = np.where(charged == NOBODY, lead_lost(gaps, mine, charged), charged)
        opened[gaps.gap_index] = culprit != NOBODY
        thread[gaps.gap_index] = gaps.thread
    return pl.DataFrame({"wait_index": blamed, "opened": opened, "thread": thread})


def _claims(waits: pl.DataFrame, pauses: pl.DataFrame) -> pl.DataFrame:
    """Return when a launching thread was held up by something other than a wait: calls that are busy, then pauses."""
    busy = kept(waits, ~waits["awaits"]).select_seq(
        "gpu", "start_ns", "end_ns", wait_index=pl.col("wait_index").cast(pl.Int64), thread="launcher"
    )
    held = pauses.with_row_index("pause_index").select_seq(
        "gpu", "thread", "start_ns", "end_ns", pl.col("pause_index").cast(pl.Int64)
    )
    return pl.concat([busy, held], how="diagonal").sort("start_ns")


def _shared(pieces: pl.DataFrame, claims: pl.DataFrame) -> pl.DataFrame:
    """Give the parts of the host's pieces that lie under a claim of the thread that launched late to that claim."""
    host = pl.col("idle_class").is_in([int(name) for name in LATE])
    untouched, parts = [pieces], []
    for (gpu, thread), mine in claims.partition_by("gpu", "thread", as_dict=True, maintain_order=True).items():
        chosen = host & (pl.col("gpu") == gpu) & (pl.col("thread") == thread)
        parts.append(_parted(pieces.filter(chosen), mine))
        untouched.append(untouched.pop().filter(~chosen))
    return pl.concat([*untouched, *parts])


def _no_longer_than_the_call(charged: pl.DataFrame, waits: pl.DataFrame) -> pl.DataFrame:
    """Charge a call that is busy with itself no more idle than it lasts: without it launches come so much sooner.

    A wait has no such bound: the host can start on what follows only when it returns.
    """
    if waits["awaits"].all():
        return charged
    busy = kept(waits, ~waits["awaits"]).select(
        pl.col("wait_index").cast(pl.Int64), left=pl.col("end_ns") - pl.col("start_ns")
    )
    rows = charged.join(busy, on="wait_index", how="left", maintain_order="left").sort("start_ns", maintain_order=True)
    length = pl.col("end_ns") - pl.col("start_ns")
    before = length.cum_sum().over("wait_index") - length
    until = pl.min_horizontal("end_ns", pl.col("start_ns") + pl.col("left") - before)
    rows = rows.with_columns(end_ns=pl.when(pl.col("left").is_null()).then("end_ns").otherwise(until))
    return kept(rows, rows["end_ns"] > rows["start_ns"]).drop("left")


def _parted(pieces: pl.DataFrame, claims: pl.DataFrame) -> pl.DataFrame:
    starts, stops, parent = split(*begin_and_end(pieces), np.concatenate(begin_and_end(claims)))
    claim = held_by(starts, *begin_and_end(claims))
    under = pl.Series(claim != NOWHERE)
    own, paused = (claims[name].fill_null(NOBODY)[np.maximum(claim, 0)] for name in ("wait_index", "pause_index"))
    parts = pieces[parent].with_columns(start_ns=starts, end_ns=stops)
    return parts.with_columns(
        pl.when(under).then(own).otherwise("wait_index").alias("wait_index"),
        pl.when(under).then(paused).otherwise("pause_index").alias("pause_index"),
        opened=pl.col("opened") & (~under | (own == pl.col("wait_index"))),
    )
