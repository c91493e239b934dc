"""What the profiler cost a run, and how fast its host is, where a step was measured without the profiler.

The profiler slows the host, and a slow host hides what a wait costs: its work fills the time that the GPU has to wait
anyway. So what is gained by removing a wait differs from the recording, in both directions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.overhead.model import Cost, Costs
from bubblefinder.replay.changes import HostSpeed, edit
from bubblefinder.replay.corrected import without_tracing
from bubblefinder.replay.run import replay
from bubblefinder.replay.solve import solve
from bubblefinder.replay.tracing import remove_tracing
from bubblefinder.units import milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.corrected import TracedSteps
    from bubblefinder.replay.model import Model

HOST_BOUND_SHARE: Final = 0.05
"""Where so much of the time lies idle outside graphs, the host's speed moves the step, as from run to run: also where
the host barely keeps up. A process of vLLM 0.26.0 in which 5 % did took 2.03 to 2.50 ms in five untraced runs."""
_MOST: Final = 4.0
"""A host is believed to be so many times as fast or as slow as recorded: tracing has more than doubled its work."""
_CLOSE: Final = 0.01
"""The step found lies as near to the one given."""
_UNIFORM: Final = Costs(
    kernel_node=Cost.exactly(100.0),
    branch_node=Cost.exactly(100.0),
    dependent_node=Cost.exactly(100.0),
    memset_node=Cost.exactly(100.0),
    copy_node=Cost.exactly(100.0),
    eager_operation=Cost.exactly(100.0),
    kernel_call=Cost.exactly(1000.0),
    copy_call=Cost.exactly(1000.0),
    other_call=Cost.exactly(500.0),
)
"""The shape assumed where nothing was measured: the same for every node, and for every launch."""
_MEASURED_LIMIT: Final = 2.5
"""Measured costs of one kind differ by no more than this between chains; beyond it the difference has another cause."""
_UNIFORM_LIMIT: Final = 10.0
"""A microsecond a node: several times what has been measured anywhere."""


@dataclass(frozen=True, slots=True)
class KnownStep:
    """What tells a step as it was measured without the profiler.

    Attributes:
        costs: what tracing costs.
        factor: how many times as much it cost in this run.
        host_speed: how many times as fast as recorded the host works.
        median_ns: the median of the steps that they give.
        reached_ns: what was to be as long as the measured step: that median, or the mean.
        missed_ns: what is left of the difference to the measured step.
    """

    costs: Costs
    factor: float
    host_speed: float
    median_ns: float
    reached_ns: float
    missed_ns: float

    @property
    def reached(self) -> bool:
        """Whether they give such a step."""
        return abs(self.missed_ns) <= _CLOSE * (self.reached_ns - self.missed_ns)

    @property
    def nearest(self) -> str:
        """What is the nearest to the measured step, where that isn't reached."""
        if self.host_speed == 1.0:
            return f"the GPU sets the pace, and without the profiler takes {milliseconds(self.reached_ns)} ms"
        return f"a host {self.host_speed:.3g} times as fast as recorded takes {milliseconds(self.reached_ns)} ms"

    def changes(self, traced: TracedSteps) -> tuple[Change, ...]:
        """Return what makes the run that was recorded the one without the profiler."""
        return remove_tracing(traced.tracing, self.costs, self.factor), HostSpeed(self.host_speed)


def known_step(traced: TracedSteps, costs: Costs | None, step_ns: float, *, mean: bool) -> KnownStep:
    """Return what tells the measured step of a run: the costs that are known come first, then what is left.

    That is the host's where the GPU waits for it, since its speed differs from run to run and tracing slows it by more
    than what is known of calls; elsewhere it is tracing's, in the proportions of its costs. Where the one doesn't give
    such a step the other is tried: a GPU waits for the host of another rank inside a collective.

    Args:
        traced: the decode steps as recorded.
        costs: what tracing is known to cost; null if nothing is.
        step_ns: how long they take without the profiler.
        mean: whether that is their mean, as a benchmark's time per token is, and not the median.
    """

    def tried(factor: float, host_speed: float = 1.0) -> KnownStep:
        found = without_tracing(traced, costs or _UNIFORM, factor, host_speed)
        reached = found.mean_step_ns if mean else found.step_ns
        return KnownStep(costs or _UNIFORM, factor, host_speed, found.step_ns, reached, reached - step_ns)

    def by_host() -> KnownStep:
        extra = solve(lambda more: tried(known, _speed_of(more)).reached_ns, step_ns, _MOST - 1)
        return tried(known, _speed_of(extra))

    def by_costs() -> KnownStep:
        return tried(solve(lambda factor: tried(factor).reached_ns, step_ns, limit))

    known, limit = (1.0, _MEASURED_LIMIT) if costs else (0.0, _UNIFORM_LIMIT)
    first, second = (by_host, by_costs) if _waits_for_its_host(traced, costs) else (by_costs, by_host)
    found = first()
    return found if found.reached else min(found, second(), key=lambda one: abs(one.missed_ns))


def _waits_for_its_host(traced: TracedSteps, costs: Costs | None) -> bool:
    """Say whether the GPU does so for long without what tracing is known to cost."""
    rows = without_tracing(traced, costs).rows if costs else traced.recorded.rows
    outside = traced.bubble_share(rows).inter_graph
    return outside is not None and outside >= HOST_BOUND_SHARE


def rerun(model: Model, changes: Sequence[Change]) -> Model:
    """Return the run as it would be after changes to its lags, as if that had been recorded."""
    edited = edit(model, changes)
    times = replay(model, edited.lag, edited.keep)

    def at(rows: pl.DataFrame, node: str) -> pl.Series:
        return pl.Series(times[rows[node].to_numpy()])

    def moved(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(start_ns=at(rows, "begin"), end_ns=at(rows, "end"))

    length = at(model.windows, "end") - at(model.windows, "begin")
    return replace(
        model,
        recorded=times,
        edges=replace(model.edges, lag=edited.lag),
        calls=moved(model.calls),
        blocks=moved(model.blocks),
        windows=model.windows.with_columns(
            recorded_ns=length, occupied_ns=pl.col("occupied_ns") - pl.Series(model.less_work(edited.lag))
        ),
        untraced=(),
    )


def _speed_of(extra: float) -> float:
    """Return a host's speed for any number: 1 for 0, rising, and as far below 1 as above it."""
    return 1 + extra if extra >= 0 else 1 / (1 - extra)
