"""Where one step ends and the next begins: boundaries in time, from a cadence, marks, kernels or a sequence."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.intervals import NEVER, begin_and_end, distinct
from bubblefinder.lookup import NOWHERE, column_of, kept, where
from bubblefinder.steps import thresholds
from bubblefinder.steps.events import REPLAY, WAIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.events import Events
    from bubblefinder.steps.lane import RankWork
    from bubblefinder.timeline.model import Timeline


def seam_boundaries(timeline: Timeline, lane: RankWork, starts: Ints) -> Ints:
    """Return one boundary a cycle: the operation that ends the widest gap of the seam before it.

    So the copies that prepare a step belong to it. Where gaps are nearly alike, as behind a host that is ahead, a seam
    is cut where most are: else one step has what another lacks. The first cycle of the capture has no seam before it.

    Args:
        timeline: the timeline.
        lane: the lane that the cycles belong to.
        starts: positions in `lane.replays` of the first replay of each cycle.
    """
    begin = lane.replays["start_ns"].to_numpy()
    reach = np.maximum.accumulate(lane.replays["end_ns"].to_numpy())
    opened = np.where(starts > 0, reach[np.maximum(starts - 1, 0)], NEVER)
    candidates = _seam_operations(timeline, lane, starts).with_columns(
        cycle=pl.col("start_ns").pipe(lambda times: pl.lit(begin[starts]).search_sorted(times, side="left")),
    )
    seams = pl.DataFrame({"cycle": np.arange(len(starts), dtype=np.uint32), "opened_ns": opened})
    inside = (
        kept(candidates, candidates["gap_ns"] > 0)
        .join(seams, on="cycle")
        .pipe(where, pl.col("start_ns") >= pl.col("opened_ns"))
        .sort("gap_ns", "start_ns", descending=[True, False])
    )
    cuts = _where_most_are(inside)
    boundaries = begin[starts].copy()
    boundaries[cuts["cycle"].to_numpy()] = cuts["start_ns"].to_numpy()
    if len(starts) and starts[0] == 0:
        boundaries[0] = _first_cut(candidates, int(begin[0]))
    return boundaries


def _where_most_are(inside: pl.DataFrame) -> pl.DataFrame:
    """Return where to cut each seam: at its widest gap, or where most are cut if the gap there is nearly as wide.

    Args:
        inside: the operations of the seams that end gaps, each seam's widest gap first.
    """
    parts = ("kind", "name", "kind_before", "name_before")
    widest = inside.unique("cycle", keep="first", maintain_order=True)
    if widest.is_empty():
        return widest
    usual = widest.group_by(parts).agg(seams=pl.len(), first=pl.col("cycle").min())
    usual = usual.sort("seams", "first", descending=[True, False]).head(1)
    wide = pl.col("gap_ns") >= thresholds.COMPARABLE * pl.col("gap_ns").max().over("cycle")
    likely = inside.pipe(where, wide).join(usual[parts], on=parts, how="semi", nulls_equal=True, maintain_order="left")
    return pl.concat([likely, widest]).unique("cycle", keep="first", maintain_order=True)


def _first_cut(candidates: pl.DataFrame, first_replay_ns: int) -> int:
    """Begin the first cycle at the first operation that prepares it, if no more precede it than a usual seam has."""
    eager = kept(candidates, candidates["eager"])
    before = kept(eager, eager["cycle"] == 0)
    later = kept(eager, eager["cycle"] > 0).group_by("cycle").len()["len"]
    usual = float(np.median(later.to_numpy())) if len(later) else 0.0
    prepares = 0 < len(before) <= usual
    return int(before["start_ns"][0]) if prepares else first_replay_ns


def _seam_operations(timeline: Timeline, lane: RankWork, starts: Ints) -> pl.DataFrame:
    """Return the operations at which a seam may be cut: start_ns, eager or else a replay's first, gap_ns it ends.

    Kind and name are its own and those of the operation before the gap.
    """
    firsts = lane.replays[starts]["replay_index"]
    replay = column_of(timeline.operations, "replay_index")
    gaps = kept(timeline.gaps, timeline.gaps["gpu"] == lane.gpu).select_seq(
        op_index="after_index",
        gap_ns=pl.col("end_ns") - pl.col("start_ns"),
        start_ns="end_ns",
        before_index="before_index",
    )
    ended_by = replay[gaps["op_index"]]
    outside = gaps.with_columns(ended_by).pipe(
        where, ended_by.ne_missing(replay[gaps["before_index"]]) | ended_by.is_null()
    )
    eager = lane.operations.pipe(where, pl.col("replay_index").is_null())[["op_index", "start_ns"]]
    eager = eager.join(
        outside[["op_index", "gap_ns", "before_index"]], on="op_index", how="left", maintain_order="left"
    )
    replays = outside.pipe(where, pl.col("replay_index").is_in(firsts.implode()))
    parts = ("op_index", "before_index", "start_ns")
    found = pl.concat(
        [
            eager.select_seq(*parts, pl.col("gap_ns").fill_null(0), eager=pl.lit(value=True)),
            replays.select_seq(*parts, "gap_ns", eager=pl.lit(value=False)),
        ]
    )
    called = timeline.operations[["kind", "name"]]
    own, before = called[found["op_index"]], called[found["before_index"]].rename(lambda name: f"{name}_before")
    return pl.concat([found.drop("op_index", "before_index"), own, before], how="horizontal")


@dataclass(frozen=True)
class Launches:
    """Work of a lane whose calls are known, by their begin.

    Attributes:
        start_ns: when each began.
        thread: whose it is.
        op_start_ns: when its work began.
        weight: 1; in a lane with replays 0 for other launches than of graphs, so that the thousands of kernels of an
            eager prefill don't outweigh the steps.
        ahead: see `Events.ahead`.
    """

    start_ns: Ints
    thread: Ints
    op_start_ns: Ints
    weight: Ints
    ahead: Bools

    def at(self, chosen: Bools) -> Launches:
        """Return some of the launches."""
        return self if chosen.all() else Launches(*(getattr(self, one.name)[chosen] for one in fields(self)))

    @cached_property
    def of_thread(self) -> dict[int, Launches]:
        """Those of each thread."""
        return {thread: self.at(self.thread == thread) for thread in distinct(self.thread).tolist()}

    @cached_property
    def begun(self) -> Ints:
        """When the first operation of each began, never where it ran ahead; and never once more."""
        return np.append(np.where(self.ahead, NEVER, self.op_start_ns), NEVER)

    @cached_property
    def anything(self) -> Ints:
        """When the first operation of each began, and never once more."""
        return np.append(self.op_start_ns, NEVER)

    @cached_property
    def weighed(self) -> Ints:
        """The weight of all before each, and in all."""
        return np.concatenate(([0], np.cumsum(self.weight)))


def launches_of(events: Events) -> Launches:
    """Return the launches among the events of a lane."""
    replays = events.what == REPLAY
    weight = replays.astype(np.int64) if replays.any() else np.ones(len(events), np.int64)
    known = (events.thread != NOWHERE) & (events.what != WAIT)
    columns = (events.launch_ns, events.thread, events.start_ns, weight, events.ahead)
    return Launches(*(column[known] for column in columns))


@dataclass(frozen=True, eq=False, slots=True)
class Marks:
    """Ranges in order of their begin, which don't overlap each other on a thread, and the launches that each holds.

    A range counts for its own thread; those of threads that launch nothing at all count where no other does, for the
    whole process. Of ranges that overlap, the one begun last holds.

    Attributes:
        launches: the lane's, from `launches_of`.
        owner: which of the threads that launch something each range is of; NOWHERE where of none.
        low, high: from which and up to which position launches of its thread, or of all, began inside it.
    """

    launches: Launches
    owner: NDArray[np.int32]
    low: Ints
    high: Ints

    @classmethod
    def of(cls, launches: Launches, ranges: pl.DataFrame) -> Marks:
        """Return the ranges of a frame with thread, start_ns and end_ns, in its order."""
        thread, (begin, end) = ranges["thread"].to_numpy(), begin_and_end(ranges)
        owner, numbers = np.full(len(thread), NOWHERE, np.int32), {one: n for n, one in enumerate(launches.of_thread)}
        low, high = np.empty((2, len(thread)), np.int64)
        for one in distinct(thread).tolist():
            mine = thread == one
            owner[mine] = numbers.get(one, NOWHERE)
            begun = launches.of_thread.get(one, launches).start_ns
            low[mine], high[mine] = (np.searchsorted(begun, times[mine]) for times in (begin, end))
        return cls(launches, owner, low, high)

    def at(self, chosen: Ints) -> Marks:
        """Return some of the ranges."""
        return Marks(self.launches, self.owner[chosen], self.low[chosen], self.high[chosen])

    @property
    def boundaries(self) -> Ints:
        """The start of the first operation launched inside each range that launches any.

        Copies that ran ahead, beside the work of the step before, don't begin the step if anything else does.
        """
        found = []
        for mine, low, high in self._held():
            edges = np.column_stack((low, high)).ravel()
            first = np.minimum.reduceat(mine.begun, edges)[::2]
            if (ahead := first == NEVER).any():
                first[ahead] = np.minimum.reduceat(mine.anything, edges)[::2][ahead]
            found.append(first)
        return distinct(np.concatenate(found)) if found else np.empty(0, np.int64)

    @property
    def weight(self) -> int:
        """The weight of all launches that began inside one of the ranges."""
        return sum(int((mine.weighed[high] - mine.weighed[low]).sum()) for mine, low, high in self._held())

    def _held(self) -> Iterator[tuple[Launches, Ints, Ints]]:
        """Yield launches, and for each range that holds some of them the positions from which and up to which."""
        threads = [*self.launches.of_thread.values()]
        for owner in distinct(self.owner[self.owner != NOWHERE]).tolist() or [NOWHERE]:
            mine = self.owner == owner
            low = self.low[mine]
            high = np.minimum(self.high[mine], np.append(low[1:], NEVER))
            held = low < high
            yield self.launches if owner == NOWHERE else threads[owner], low[held], high[held]


def mark_boundaries(launches: Launches, ranges: pl.DataFrame) -> Ints:
    """Return where the work of ranges with thread, start_ns and end_ns begins, see `Marks`."""
    return Marks.of(launches, ranges.sort("start_ns")).boundaries
