"""Where one step ends and the next begins: boundaries in time, from a cadence, marks, kernels or a sequence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.trace.model import GRAPH, KERNEL

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.lane import RankWork
    from bubblefinder.timeline.model import Timeline


def seam_boundaries(timeline: Timeline, lane: RankWork, starts: Ints) -> Ints:
    """Return one boundary a cycle: the operation that ends the widest gap of the seam before it.

    So the copies that prepare a step belong to it. The first cycle of the capture has no seam before it.

    Args:
        timeline: the timeline.
        lane: the lane that the cycles belong to.
        starts: positions in `lane.replays` of the first replay of each cycle.
    """
    begin = lane.replays["start_ns"].to_numpy()
    reach = np.maximum.accumulate(lane.replays["end_ns"].to_numpy())
    opened = np.where(starts > 0, reach[np.maximum(starts - 1, 0)], np.iinfo(np.int64).max)
    candidates = _seam_operations(timeline, lane, starts).with_columns(
        cycle=pl.col("start_ns").pipe(lambda times: pl.lit(begin[starts]).search_sorted(times, side="left")),
    )
    seams = pl.DataFrame({"cycle": np.arange(len(starts), dtype=np.uint32), "opened_ns": opened})
    widest = (
        candidates.filter(pl.col("gap_ns") > 0)
        .join(seams, on="cycle")
        .filter(pl.col("start_ns") >= pl.col("opened_ns"))
        .sort("gap_ns", "start_ns", descending=[True, False])
        .unique("cycle", keep="first", maintain_order=True)
    )
    boundaries = begin[starts].copy()
    boundaries[widest["cycle"].to_numpy()] = widest["start_ns"].to_numpy()
    if len(starts) and starts[0] == 0:
        boundaries[0] = _first_cut(candidates, int(begin[0]))
    return boundaries


def _first_cut(candidates: pl.DataFrame, first_replay_ns: int) -> int:
    """Begin the first cycle at the first operation that prepares it, if no more precede it than a usual seam has."""
    eager = candidates.filter("eager")
    before = eager.filter(pl.col("cycle") == 0)
    later = eager.filter(pl.col("cycle") > 0).group_by("cycle").len()["len"]
    usual = float(np.median(later.to_numpy())) if len(later) else 0.0
    prepares = 0 < len(before) <= usual
    return int(before["start_ns"][0]) if prepares else first_replay_ns


def _seam_operations(timeline: Timeline, lane: RankWork, starts: Ints) -> pl.DataFrame:
    """Return the operations at which a seam may be cut: start_ns, eager or else a replay's first, gap_ns it ends."""
    firsts = lane.replays[starts]["replay_index"]
    replay = timeline.operations["replay_index"]
    gaps = timeline.gaps.filter(pl.col("gpu") == lane.gpu).select(
        op_index="after_index",
        gap_ns=pl.col("end_ns") - pl.col("start_ns"),
        start_ns="end_ns",
        before_index="before_index",
    )
    ended_by = replay.gather(gaps["op_index"])
    outside = gaps.with_columns(ended_by).filter(
        ended_by.ne_missing(replay.gather(gaps["before_index"])) | ended_by.is_null()
    )
    eager = lane.operations.filter(pl.col("replay_index").is_null()).select("op_index", "start_ns")
    eager = eager.join(outside.select("op_index", "gap_ns"), on="op_index", how="left", maintain_order="left")
    replays = outside.filter(pl.col("replay_index").is_in(firsts.implode()))
    return pl.concat(
        [
            eager.select("start_ns", pl.col("gap_ns").fill_null(0), eager=pl.lit(value=True)),
            replays.select("start_ns", "gap_ns", eager=pl.lit(value=False)),
        ]
    )


def lane_launches(lane: RankWork, calls: pl.DataFrame) -> pl.DataFrame:
    """Return the calls that launched work of the lane: call_start_ns, thread, op_start_ns (its first), weight, ahead.

    `weight` is the number of operations; in a lane with replays it is 1 for a graph launch and 0 for others, so that
    the thousands of kernels of an eager prefill don't outweigh the steps. `ahead`: a copy that ran while kernels or
    graphs launched before it did, as the copies do by which a host that runs ahead prepares the step after.
    """
    launched = calls.select("thread", call_start_ns="start_ns").with_row_index("call_index")
    weight = pl.len() if lane.replays.is_empty() else pl.col("replay_index").is_not_null().any()
    computes = pl.col("kind").is_in((KERNEL, GRAPH)) | pl.col("replay_index").is_not_null()
    return (
        lane.operations.group_by("call_index")
        .agg(
            op_start_ns=pl.col("start_ns").min(),
            weight=weight.cast(pl.Int64),
            computed_ns=pl.col("end_ns").filter(computes).max(),
        )
        .join(launched, on="call_index", how="inner")
        .sort("call_start_ns", "op_start_ns")
        .with_columns(
            before_ns=pl.col("computed_ns").cum_max().shift(1).forward_fill().fill_null(pl.col("op_start_ns"))
        )
        .with_columns(ahead=pl.col("computed_ns").is_null() & (pl.col("op_start_ns") < pl.col("before_ns")))
        .drop("computed_ns", "before_ns")
    )


def mark_boundaries(launches: pl.DataFrame, marks: pl.DataFrame) -> Ints:
    """Return the start of the first operation launched inside each mark; marks that launch nothing have none.

    Copies that ran ahead, beside the work of the step before, don't begin the step if anything else does.

    Args:
        launches: the lane's, from `lane_launches`.
        marks: ranges with thread, start_ns and end_ns that don't overlap each other on a thread.
    """
    launched = launched_inside(launches, marks).sort("ahead", "op_start_ns")
    return np.unique(launched.unique("mark", keep="first", maintain_order=True)["op_start_ns"].to_numpy())


def launched_inside(launches: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
    """Return mark, op_start_ns, weight and ahead of every launch that began inside one of the marks.

    A mark counts for its own thread; where that thread launches nothing at all, for the whole process.
    """
    rows = marks.select("thread", "start_ns", "end_ns").with_row_index("mark").sort("start_ns")
    own = launches["thread"].is_in(rows["thread"].unique().implode()).any()
    joined = launches.join_asof(
        rows if own else rows.drop("thread"),
        left_on="call_start_ns",
        right_on="start_ns",
        by="thread" if own else None,
        check_sortedness=False,
    )
    return joined.filter(pl.col("call_start_ns") < pl.col("end_ns")).select("mark", "op_start_ns", "weight", "ahead")
