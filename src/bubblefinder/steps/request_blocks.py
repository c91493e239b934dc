"""How many requests a step serves, by kernels that are launched with one block a request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import NEVER
from bubblefinder.lookup import kept, where
from bubblefinder.steps.lane import eager_operations
from bubblefinder.trace.model import KERNEL
from bubblefinder.trace.request_kernels import Counts, request_kernels

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.lane import RankWork
    from bubblefinder.timeline.model import Timeline

UNTOLD: Final = -1

_AT_ODDS: Final = -2
_DRAFTS: Final = re.compile(r"(?i)draft|verif|specul|accept|reject|eagle|bonus")
"""In the name of a kernel: drafts may be verified, so sampled rows may be several a request."""


def by_blocks(timeline: Timeline, lane: RankWork, starts: Ints) -> Ints:
    """Return how many requests each window serves, UNTOLD where kernels say nothing or contradict each other.

    A window may hold what prepares the step behind it, or what ends the step before it. So where the batch changes,
    kernels from before and from behind the pass over the model differ. Those of one side alone are believed if the
    neighbour that they may belong to counts the same.
    """
    kernels = _kernels(timeline, lane)
    if kernels.is_empty():
        return np.full(len(starts), UNTOLD, np.int64)
    kernels = kernels.with_columns(
        window=pl.Series(np.searchsorted(starts, kernels["start_ns"].to_numpy(), side="right").astype(np.int64) - 1)
    ).pipe(where, pl.col("window") >= 0)
    slots = kept(kernels, kernels["counts"] == Counts.SLOTS).group_by("window").agg(most=pl.col("number").min())
    plain = kernels.pipe(where, pl.col("counts").is_in([Counts.SLOTS, Counts.NOTHING]))["window"].unique()
    counting = (pl.col("counts") == Counts.REQUESTS) | (
        (pl.col("counts") == Counts.ROWS) & pl.col("window").is_in(plain.implode())
    )
    before, behind = (
        _agreed(kernels.pipe(where, counting & (pl.col("side") == side)), len(starts)) for side in ("before", "behind")
    )
    told = np.where(before == UNTOLD, behind, before)
    sure = (before == behind) | _alone(before, behind, 1) | _alone(behind, before, -1)
    most = np.full(len(starts), NEVER)
    most[slots["window"].to_numpy()] = slots["most"].to_numpy()
    return np.where(sure & (told > 0) & (told <= most), told, UNTOLD)


def _agreed(kernels: pl.DataFrame, windows: int) -> Ints:
    """Return what the kernels of each window count, UNTOLD where there are none, _AT_ODDS where they differ."""
    found = np.full(windows, UNTOLD, np.int64)
    counted = kernels.group_by("window").agg(least=pl.col("number").min(), most=pl.col("number").max())
    window, least, most = (counted[name].to_numpy() for name in ("window", "least", "most"))
    found[window] = np.where(least == most, least, _AT_ODDS)
    return found


def _alone(here: Ints, other: Ints, shift: int) -> Bools:
    """Tell where one side alone counts, and counts the same in the window before (shift 1) or behind (shift -1)."""
    neighbour = np.roll(here, shift)
    neighbour[0 if shift == 1 else -1] = UNTOLD
    return np.asarray((other == UNTOLD) & (neighbour == here), np.bool_)


def _kernels(timeline: Timeline, lane: RankWork) -> pl.DataFrame:
    """Return the lane's kernels outside graphs that count: start_ns, counts, side, number."""
    known = request_kernels(timeline.trace.names) if timeline.trace.grids is not None else {}
    told = pl.DataFrame(
        [
            (name, *(getattr(one, part) for part in ("counts", "side", "beside", "split")))
            for name, one in known.items()
        ],
        schema={"name": pl.Int32, "counts": pl.String, "side": pl.String, "beside": pl.Int64, "split": pl.Boolean},
        orient="row",
    )
    counting = (pl.col("kind") == KERNEL) & pl.col("name").is_in(told["name"].implode())
    eager = eager_operations(lane, counting).join(told, on="name")
    if eager.is_empty() or timeline.trace.grids is None:
        return told.select_seq(pl.lit(0).alias("start_ns"), "counts", "side", number="beside").clear()
    found = (
        eager.with_columns(row=timeline.operations["row"][eager["op_index"]])
        .join(timeline.trace.grids, on="row")
        .pipe(where, (pl.col("y") > 1) | ~pl.col("split"))
        .select_seq("start_ns", "counts", "side", number=pl.col("x") - pl.col("beside"))
    )
    return kept(found, found["counts"] != Counts.ROWS) if _drafts(timeline, lane) else found


def _drafts(timeline: Timeline, lane: RankWork) -> bool:
    """Tell whether any kernel of the lane may verify drafts."""
    names = lane.operations["name"].drop_nulls().unique()
    return any(_DRAFTS.search(timeline.trace.names.get(name, "")) for name in names)
