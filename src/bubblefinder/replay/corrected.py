"""Decode steps without the profiler: their ledger, roles and shares, once the run was replayed without its costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.intervals import begin_and_end, held_by
from bubblefinder.lookup import NOWHERE, kept, where
from bubblefinder.replay.changes import HostSpeed, edit
from bubblefinder.replay.ledger import Recorded, ledger_of, recorded_steps
from bubblefinder.replay.run import replay
from bubblefinder.replay.tracing import Tracing, remove_tracing, tracing_of
from bubblefinder.timeline.rank import Rank
from bubblefinder.timeline.shares import BubbleShare, bubble_share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.overhead.model import Costs
    from bubblefinder.replay.model import Model
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TracedSteps:
    """The decode steps of one process on one GPU, ready to be replayed without the profiler.

    Attributes:
        gpu: physical GPU.
        model: the recorded run.
        recorded: the steps that it holds.
        replays: start_ns, end_ns, role, position, step and replay_index of the graph replays in these steps.
        tracing: where tracing costs time.
        placed: those of the replays that are in the recorded run, with begin and end, their nodes there.
    """

    gpu: int
    model: Model
    recorded: Recorded
    replays: pl.DataFrame
    tracing: Tracing
    placed: pl.DataFrame

    def bubble_share(self, rows: pl.DataFrame) -> BubbleShare:
        """Return which part of these steps is idle, by rows of their ledger."""
        return bubble_share(rows, has_replays=not self.replays.is_empty())


@dataclass(frozen=True, slots=True)
class Corrected:
    """The decode steps without the profiler: ledger rows, p50 of each role, cost that found no place."""

    rows: pl.DataFrame
    roles: dict[str, int | None]
    unplaced_ns: int

    @property
    def step_ns(self) -> float:
        """p50 of the steps."""
        return float(np.median(self.rows["duration_ns"].to_numpy()))

    @property
    def mean_step_ns(self) -> float:
        """Mean of the steps."""
        return float(np.mean(self.rows["duration_ns"].to_numpy()))


def traced_steps(timeline: Timeline, steps: Steps, model: Model, rows: pl.DataFrame) -> TracedSteps:
    """Collect what those decode steps consist of that can be replayed.

    Args:
        timeline: the timeline.
        steps: its steps.
        model: the recorded run.
        rows: the decode steps of one process on one GPU: gpu, process, start_ns, end_ns.
    """
    gpu, process = rows[["gpu", "process"]].row(0)
    recorded = recorded_steps(timeline, model, rows)
    replays, nodes = replays_in(timeline, steps, rows, process), model.blocks[["replay_index", "begin", "end"]]
    placed = replays.join(nodes.drop_nulls("replay_index"), on="replay_index", maintain_order="left")
    return TracedSteps(gpu, model, recorded, replays, tracing_of(timeline, model), placed)


def replays_in(timeline: Timeline, steps: Steps, rows: pl.DataFrame, process: int) -> pl.DataFrame:
    """Return start_ns, end_ns, role and step (position in `rows`) of the process's replays in the steps."""
    rank = Rank(int(rows["gpu"][0]), process)
    named = timeline.replays.with_row_index("replay_index").hstack(steps.replays[["role", "position"]])
    mine = named.pipe(where, rank.mine & pl.col("role").is_not_null())
    step = held_by(mine["start_ns"].to_numpy(), *begin_and_end(rows))
    return kept(mine.hstack([pl.Series("step", step)]), step != NOWHERE)


def without_tracing(steps: TracedSteps, costs: Costs, factor: float = 1.0, host_speed: float = 1.0) -> Corrected:
    """Return the decode steps with `factor` times the costs taken off, and a host of another speed."""
    removed = remove_tracing(steps.tracing, costs, factor)
    edited = edit(steps.model, [removed, *([HostSpeed(host_speed)] if host_speed != 1 else [])])
    times = replay(steps.model, edited.lag, edited.keep)
    rows = ledger_of(steps.model, steps.recorded, times, removed)
    begin, end = (steps.placed[side].to_numpy() for side in ("begin", "end"))
    medians = role_medians(steps.placed, (times[end] - times[begin]).astype(float))
    unplaced = steps.recorded.per_step(steps.model, removed.unplaced_ns)
    return Corrected(rows, medians, round(float(np.median(unplaced))))


def role_medians(replays: pl.DataFrame, lengths: Floats) -> dict[str, int | None]:
    """Return the median length of the replays of each role, in order of place in the step."""
    grouped = (
        replays.lazy()
        .with_columns(length=pl.Series(lengths, dtype=pl.Float64))
        .group_by("role", maintain_order=True)
        .agg(pl.col("length").median(), pl.col("position").median())
        .sort("position", nulls_last=True, maintain_order=True)
        .select("role", "length")
        .collect()
    )
    return {role: round(length) for role, length in grouped.iter_rows()}
