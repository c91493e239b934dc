"""Decode steps: windows that tile each GPU's timeline, and the roles that replays play in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

import polars as pl

from bubblefinder.lookup import Timetable, kept, nullable, places

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.timeline.rank import Rank
    from bubblefinder.trace.model import QualityNote


METHODS: Final = ("nvtx", "cadence", "sequence", "kernel")
Confidence = Literal["low", "medium", "high"]
CONFIDENCES: Final[tuple[Confidence, ...]] = ("low", "medium", "high")
RequestsFrom = Literal["nvtx", "launch_shapes"]
WINDOWS: Final = {
    "index": pl.Int64, "gpu": pl.Int32, "process": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64,
    "excluded": pl.String, "regime": pl.Int64, "requests": pl.Int64,
}  # fmt: skip
"""The columns of `Steps.windows`."""


@dataclass(frozen=True, slots=True)
class Rival:
    """Another way to cut the lane that is nearly as good: how many steps it has, and the `--step-by` that takes it."""

    steps: int
    step_by: str


@dataclass(frozen=True, slots=True)
class StepDetection:
    """How the steps of a lane were found.

    Attributes:
        method: nvtx, cadence, sequence, kernel or none.
        confidence: low, medium or high; the lowest of all lanes whose steps were found the same way.
        mark: the NVTX text or the pattern that bounds the steps, else null.
        rival: another way that is nearly as good, else null.
        requests_from: what says how many requests a step serves; null if nothing does.
    """

    method: str
    confidence: Confidence
    mark: str | None
    rival: Rival | None = None
    requests_from: RequestsFrom | None = None


@dataclass(frozen=True)
class Steps:
    """The windows of every (GPU, process) with a cadence.

    Attributes:
        detections: how they were found, by rank, the first one first; empty if there are none.
        windows: index (per GPU and process), gpu, process, start_ns, end_ns, excluded (null for a
            decode step, else one of REASONS), regime (null for windows that are no steps), requests (null
            where unknown). The windows of one (GPU, process) tile the GPU's span. Sorted by (gpu, process, start_ns).
        replays: one row a replay of the timeline, in its order: window_index (position in `windows`,
            null before the first), role (String), and position in the step.
        notes: what finding the steps found out.
    """

    detections: dict[Rank, StepDetection]
    windows: pl.DataFrame
    replays: pl.DataFrame
    notes: tuple[QualityNote, ...] = ()

    @cached_property
    def decode(self) -> pl.Series:
        """Which windows are closed decode steps, in the statistics."""
        return self.windows["excluded"].is_null()

    def decode_of(self, rank: Rank) -> pl.DataFrame:
        """Return the windows of the closed decode steps of a rank."""
        return kept(self.windows, self.decode & rank.is_of(self.windows))

    @cached_property
    def role_names(self) -> tuple[str, ...]:
        """The roles that there are, by name."""
        return tuple(sorted(set(self.replays["role"].unique()) - {None}))

    @cached_property
    def roles(self) -> pl.Series:
        """The role of every replay, as one of `role_names`."""
        return self.replays["role"].cast(pl.Enum(self.role_names))

    @cached_property
    def role_numbers(self) -> Ints:
        """The position of each replay's role in `role_names`; NOWHERE for null."""
        return places(self.roles.to_physical())

    def of(self, rank: Rank | None = None) -> StepDetection:
        """Return how the steps of a rank were found, or those of the first one."""
        first = next(iter(self.detections.values()), StepDetection("none", "low", None))
        return self.detections.get(rank, first) if rank else first

    @property
    def method(self) -> str:
        """How the steps of the first lane were found."""
        return self.of().method

    @property
    def confidence(self) -> Confidence:
        """How sure the steps of the first lane are."""
        return self.of().confidence

    @property
    def mark(self) -> str | None:
        """What bounds the steps of the first lane."""
        return self.of().mark


def window_of_replays(timeline: Timeline, windows: pl.DataFrame) -> pl.Series:
    """Return the position of the window in which each replay of a timeline begins; null before the first."""
    rank = ("gpu", "process")
    spans = windows[[*rank, "start_ns"]].with_row_index("window_index").sort(*rank, "start_ns")
    replays = timeline.replays[[*rank, "start_ns"]]
    last = Timetable.of(spans, rank, "start_ns").last(replays, replays["start_ns"].to_numpy())
    return spans["window_index"][nullable(last)]
