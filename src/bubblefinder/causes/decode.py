"""The steps of one process on one GPU, as the facts count them, and what happened in each."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder import intervals
from bubblefinder.causes.evidence import Evidence
from bubblefinder.intervals import begin_and_end, inside, last_before, median, split, union_of
from bubblefinder.lookup import column_of, kept, on_gpu, places, taken, where
from bubblefinder.steps.reasons import NO_STEP
from bubblefinder.timeline.rank import Rank
from bubblefinder.trace.schema import CALLS_TABLE, KIND_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl
    from numpy.typing import NDArray

    from bubblefinder.causes.model import Causes
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

MOST_EVIDENCE: Final = 20


@dataclass(frozen=True, slots=True)
class IdlePieces:
    """The idle pieces of a GPU, cut where the windows of a rank and the charges begin and end.

    Attributes:
        index: positions in `timeline.pieces`.
        starts: where each begins.
        window: number of the window of each.
        ns: their lengths.
        idle_class: their idle classes.
        charged: whether a wait or a pause is charged with each.
        awaited: whether a wait is.
    """

    index: Ints
    starts: Ints
    window: Ints
    ns: Ints
    idle_class: Ints
    charged: Bools
    awaited: Bools


@dataclass(frozen=True)
class RankSteps:
    """One process on one GPU.

    Attributes:
        gpu: physical GPU.
        process: process key.
        first: position of its first window in `steps.windows`.
        starts: starts of its windows; they tile the GPU's span.
        decode: which windows are closed decode steps, in the statistics.
        counted: which windows hold a step at all: also the first and the tail, which count for
            findings but not for durations.
        durations: length of the decode steps.
        cut: cuts the GPU's idle pieces, millions in a large capture, when they are first asked for.
    """

    gpu: int
    process: int
    first: int
    starts: Ints
    decode: Bools
    counted: Bools
    durations: Ints
    cut: Callable[[], IdlePieces] = field(repr=False)

    @cached_property
    def pieces(self) -> IdlePieces:
        """The idle pieces of the GPU."""
        return self.cut()

    @property
    def rank(self) -> Rank:
        """The process and the GPU."""
        return Rank(self.gpu, self.process)

    @property
    def steps(self) -> int:
        """Number of decode steps."""
        return len(self.durations)

    @property
    def step_p50_ns(self) -> float | None:
        """Median decode step."""
        return p50(self.durations)

    def share(self, total_ns: float) -> float | None:
        """Return a time over all decode steps as a share of their duration."""
        return float(total_ns) / float(self.durations.sum()) if self.steps else None

    def rows_of(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rank's rows of a frame with columns gpu and process."""
        return kept(rows, self.rank.is_of(rows))

    def windows(self, times: Ints) -> Ints:
        """Return the number of the window that each time lies in, -1 before the first."""
        return last_before(times, self.starts)

    def own(self, window_index: pl.Series) -> Ints:
        """Return window numbers of this lane for positions in `steps.windows`; -1 for others and nulls."""
        number = places(window_index) - self.first
        return np.where((number >= 0) & (number < len(self.starts)), number, -1)

    def per_step(self, windows: Ints, values: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of values in each decode step."""
        return self.per_window(windows, values)[self.decode]

    def per_window(self, windows: Ints, values: NDArray[np.int64] | NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of values in each window."""
        inside = windows >= 0
        if not inside.all():
            windows, values = windows[inside], values[inside]
        return np.bincount(windows, weights=values, minlength=len(self.starts)).astype(np.float64)

    def idle(self, chosen: Bools | Ints) -> NDArray[np.float64]:
        """Return the idle time of the chosen pieces in each decode step."""
        return self.per_step(self.pieces.window[chosen], self.pieces.ns[chosen])


def lanes(timeline: Timeline, steps: Steps, causes: Causes) -> Iterator[RankSteps]:
    """Yield the lanes of a capture, by GPU and process; without any step there is none."""
    windows = steps.windows.with_row_index("window_index")
    for mine in windows.partition_by("gpu", "process", maintain_order=True):
        yield _lane(timeline, mine, causes.charges, int(mine["gpu"][0]), int(mine["process"][0]))


def _lane(timeline: Timeline, windows: pl.DataFrame, charges: pl.DataFrame, gpu: int, process: int) -> RankSteps:
    starts, ends = begin_and_end(windows)
    reasons = windows["excluded"].to_list()
    decode = np.array([reason is None for reason in reasons])
    return RankSteps(
        gpu=gpu,
        process=process,
        first=int(windows["window_index"][0]),
        starts=starts,
        decode=decode,
        counted=np.array([reason not in NO_STEP for reason in reasons]),
        durations=(ends - starts)[decode],
        cut=lambda: _idle_pieces(timeline, charges, gpu, starts),
    )


def _idle_pieces(timeline: Timeline, charges: pl.DataFrame, gpu: int, starts: Ints) -> IdlePieces:
    pieces, first = on_gpu(timeline.pieces, gpu), int(column_of(timeline.pieces, "gpu").search_sorted(gpu))
    low, high = np.searchsorted(charges["piece_index"].to_numpy(), (first, first + len(pieces)))
    charges = charges[int(low) : int(high)]
    charged, awaited = union_of(charges), union_of(charges.pipe(where, charges["wait_index"].is_not_null()))
    cuts = np.concatenate([starts, charged.starts, charged.ends, awaited.starts, awaited.ends])
    lower, upper, piece = split(*begin_and_end(pieces), cuts)
    return IdlePieces(
        index=piece + first,
        starts=lower,
        window=last_before(lower, starts),
        ns=upper - lower,
        idle_class=pieces["idle_class"].to_numpy()[piece],
        charged=inside(lower, charged),
        awaited=inside(lower, awaited),
    )


def p50(values: NDArray[np.int64] | NDArray[np.float64]) -> float | None:
    """Return the median, None of nothing."""
    return median(values) if len(values) else None


def percentile(values: NDArray[np.int64] | NDArray[np.float64], q: float) -> float | None:
    """Return numpy's linear percentile, None of nothing."""
    return intervals.percentile(values, q) if len(values) else None


def call_rows(timeline: Timeline, call_indices: pl.Series) -> tuple[Evidence, ...]:
    """Return the rows of some API calls, spread over all of them."""
    calls = taken(timeline.calls[["row", "start_ns", "end_ns"]], spread(_known(call_indices)))
    return tuple(Evidence(CALLS_TABLE, *row) for row in calls.rows())


def operation_rows(timeline: Timeline, op_indices: pl.Series) -> tuple[Evidence, ...]:
    """Return the rows of some operations, spread over all of them."""
    operations = taken(timeline.operations[["kind", "row", "start_ns", "end_ns"]], spread(_known(op_indices)))
    return tuple(Evidence(KIND_TABLES[kind], row, start, end) for kind, row, start, end in operations.rows())


def _known(positions: pl.Series) -> pl.Series:
    return positions.drop_nulls() if positions.null_count() else positions


def spread(values: pl.Series, most: int = MOST_EVIDENCE) -> pl.Series:
    """Return at most so many of the values, evenly spread."""
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).round().astype(np.int64)]
