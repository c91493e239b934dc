"""The facts of the host: the calls in which it was late, and the pauses of its launching threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from bubblefinder.causes.decode import RankSteps, call_rows, p50
from bubblefinder.causes.idle_ranges import idle_ranges
from bubblefinder.causes.step_parts import HoleFacts
from bubblefinder.intervals import overlap_with, union_of
from bubblefinder.lookup import kept
from bubblefinder.units import share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.causes.model import Causes
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.timeline.model import Timeline

_MOST_CALLS: Final = 4


def late_calls(timeline: Timeline, lane: RankSteps, thread: int, late: Bools) -> dict[str, Any]:
    """Return how much of some late idle of the decode steps lies inside the CUDA calls of a thread, and in which."""
    late = late & np.append(lane.decode, False)[lane.pieces.window]
    starts, lengths = lane.pieces.starts[late], lane.pieces.ns[late]
    total = int(lengths.sum())
    if not total:
        return {}
    mine = timeline.calls_of.of(thread, "start_ns", "end_ns", "api")
    inside = _under(starts, starts + lengths, mine)
    parts = [(_under(starts, starts + lengths, rows), str(rows["api"][0])) for rows in mine.partition_by("api")]
    named = sorted((part for part in parts if part[0]), key=lambda part: (-part[0], part[1]))
    return {
        "host_in_calls_share": inside / total,
        "late_in": tuple(f"{api} ({share(ns / total)})" for ns, api in named[:_MOST_CALLS]),
        "idle_in": idle_ranges(timeline, thread, starts, starts + lengths),
    }


def _under(starts: Ints, ends: Ints, calls: pl.DataFrame) -> int:
    """Return how much of some intervals lies under calls."""
    return int(overlap_with(starts, ends, union_of(calls)).sum())


def hole_facts(timeline: Timeline, causes: Causes, lane: RankSteps, others: list[RankSteps]) -> Iterator[HoleFacts]:
    """Yield the pauses of a lane's launching threads that cost idle time, one record a thread, reason and call."""
    charged = causes.charges.select_seq(
        "pause_index", "start_ns", idle=pl.col("end_ns") - pl.col("start_ns")
    ).drop_nulls()
    numbered = causes.pauses.with_row_index("pause_index").with_columns(pl.col("pause_index").cast(pl.Int64))
    mine = lane.rows_of(numbered)
    for pauses in mine.partition_by("thread", "reason", "detail", maintain_order=True):
        idle = charged.filter(pl.col("pause_index").is_in(pauses["pause_index"].implode()))
        window = lane.windows(idle["start_ns"].to_numpy())
        if ((window >= 0) & lane.counted[window]).any():
            held = pauses.filter(pl.col("pause_index").is_in(idle["pause_index"].implode()))
            yield _hole(timeline, causes, lane, held, idle, others)


def _hole(
    timeline: Timeline,
    causes: Causes,
    lane: RankSteps,
    pauses: pl.DataFrame,
    idle: pl.DataFrame,
    others: list[RankSteps],
) -> HoleFacts:
    pauses = pauses.sort("pause_index")
    each = idle.group_by("pause_index").agg(pl.col("start_ns").min(), pl.col("idle").sum()).sort("pause_index")
    window = lane.windows(each["start_ns"].to_numpy())
    counted = (window >= 0) & lane.counted[window]
    affected = np.isin(np.arange(len(lane.starts)), window[counted])
    told = affected & lane.decode if (affected & lane.decode).any() else affected
    lengths = (pauses["end_ns"] - pauses["start_ns"]).to_numpy()
    within = lane.per_step(lane.windows(idle["start_ns"].to_numpy()), idle["idle"].to_numpy())
    stepwise = kept(pauses, counted)
    thread, reason, detail = pauses[["thread", "reason", "detail"]].row(0)
    middles = (stepwise["start_ns"] + stepwise["end_ns"]).to_numpy() // 2
    ranges = timeline.ranges.texts_at(np.full(len(middles), thread), middles)
    return HoleFacts(
        gpu=lane.gpu,
        process=lane.process,
        thread=timeline.trace.thread_names.get(thread),
        reason=reason,
        detail=detail,
        nvtx=ranges.drop_nulls().mode().sort().first(),  # type: ignore[arg-type]
        steps=int(lane.counted.sum()),
        steps_affected=int(affected.sum()),
        steps_share=float((affected & lane.decode).sum()) / lane.steps if lane.steps else None,
        occurrences=int(counted.sum()),
        hole_p50_ns=p50(lane.per_window(window, lengths)[told]),
        idle_p50_ns=p50(lane.per_window(window, each["idle"].to_numpy())[told]),
        idle_share=lane.share(within.sum()),
        pauses=tuple(pauses["pause_index"].to_list()),
        one_rank=not any(_pauses_too(causes, other, reason) for other in others) if others else None,
        evidence=call_rows(timeline, stepwise["call_index"]),
    )


def _pauses_too(causes: Causes, lane: RankSteps, reason: str | None) -> bool:
    alike = pl.col("reason").eq_missing(pl.lit(reason))
    return not causes.pauses.filter(lane.rank.mine & alike).is_empty()
