"""One capture, ready for questions: its model, its fixes, and the changes that need more than the model."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bubblefinder.errors import CannotAnswerError, UsageError
from bubblefinder.overhead.calibration import read_calibration
from bubblefinder.overhead.model import Source
from bubblefinder.replay.changes import CloseGaps, DropKernels, RemoveTracing, kernel_time
from bubblefinder.replay.correct import (
    correct,
    in_a_program,
    measured_costs,
    replayable,
    uncorrectable,
    untraced_costs,
)
from bubblefinder.replay.doubt import Doubt
from bubblefinder.replay.known_step import known_step, rerun
from bubblefinder.replay.predict import predict
from bubblefinder.replay.tracing import remove_tracing, tracing_of
from bubblefinder.timeline.missing import missing_work
from bubblefinder.timeline.rank import Rank
from bubblefinder.units import duration, milliseconds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bubblefinder.overhead.model import Overhead
    from bubblefinder.replay.fixes import Fix
    from bubblefinder.replay.model import Model
    from bubblefinder.replay.predict import Prediction
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline


@dataclass(frozen=True, slots=True)
class Study:
    """A capture that can be asked what would be if.

    Attributes:
        timeline: the capture.
        steps: its decode steps.
        model: the recorded run.
        fixes: what can be cured.
        ranks: those with decode steps that can be timed.
        left: by rank: which part of what a late host costs surely remains without the profiler, where that is known.
        host_speed: how many times as fast as recorded the host of `model` works, where that was told by a measured
            step; null for the recording.
    """

    timeline: Timeline
    steps: Steps
    model: Model
    fixes: tuple[Fix, ...]
    ranks: tuple[Rank, ...]
    left: Mapping[Rank, float]
    host_speed: float | None = None

    def drop_kernels(self, pattern: str) -> DropKernels:
        """Return the change that removes the kernels whose name matches a regular expression.

        Raises:
            UsageError: the pattern is none, or no kernel has such a name.
        """
        try:
            re.compile(pattern)
        except re.error as error:
            raise UsageError(f"--drop-kernels {pattern!r} is not a regular expression: {error}") from error
        lost = kernel_time(self.timeline.operations, self.model.blocks, self.timeline.trace.names, pattern)
        if not any(lost):
            raise UsageError(
                f"--drop-kernels {pattern!r} fits no recorded kernel",
                hint="in a graph-mode capture the kernels inside graphs are not recorded",
            )
        return DropKernels(pattern, lost)

    def close_gaps(self, share: float) -> CloseGaps:
        """Return the change that takes a share off the gaps inside graphs.

        Raises:
            CannotAnswerError: the capture doesn't show them.
        """
        if not self.model.blocks["intra_ns"].count():
            raise CannotAnswerError(
                "the capture doesn't show the gaps inside graphs", hint="capture with --cuda-graph-trace=node"
            )
        return CloseGaps(share)

    def without_profiler(self, rank: Rank, calibration: Path | None) -> RemoveTracing:
        """Return the change that takes the profiler away, by what is known of its cost on such a machine.

        Raises:
            CannotAnswerError: nothing is known of it, or the capture can't tell how much it is.
            UsageError: the file is no calibration.
        """
        source = _source(calibration)
        costs, _, why = measured_costs(self.timeline, rank.gpu, source)
        if costs is None:
            raise CannotAnswerError(
                f"the profiler's cost is unknown here: {why}",
                hint="measure it on that machine with `bubblefinder calibrate`",
            )
        self._corrected(rank, source)
        tracing = tracing_of(self.timeline, self.model)
        most, least = (remove_tracing(tracing, end) for end in (in_a_program(costs.most()), costs.least()))
        return replace(remove_tracing(tracing, costs), ends=(most, least))

    def untraced(self, rank: Rank, calibration: Path | None) -> Prediction:
        """Return the step with the profiler taken away and nothing else: the answer that a report gives.

        Raises:
            CannotAnswerError: nothing is known of its cost, or the capture can't tell how much it is.
            UsageError: the file is no calibration.
        """
        then = predict(self.model, [self.without_profiler(rank, calibration)])[rank]
        found = self._corrected(rank, _source(calibration))
        step = found.corrected_step_ns or then.step_ns
        low, high = ends = found.range_ns or (step, step)
        return replace(then, runs=tuple((then.now_ns, end) for end in (step, low, high)), corrected_range_ns=ends)

    def at_untraced(self, rank: Rank, step_ns: float, calibration: Path | None = None, *, mean: bool = False) -> Study:
        """Return the capture as it would be without the profiler, where a rank's step was measured: as a report has it.

        Args:
            rank: whose step it is.
            step_ns: how long it takes with no profiler.
            calibration: what `bubblefinder calibrate` measured; null for what is known of such a machine.
            mean: whether that is a mean, as a benchmark's time per token is, and not a median.

        Raises:
            CannotAnswerError: neither what tracing costs nor another host gives such a step.
            UsageError: the file is no calibration.
        """
        traced = replayable(self.timeline, self.steps, self.model, self.steps.decode_of(rank))
        if traced is None:
            raise CannotAnswerError(uncorrectable(self.timeline), hint="ask without the untraced step")
        costs, _ = untraced_costs(self.timeline, rank.gpu, replace(_source(calibration), bundled=True))
        found = known_step(traced, costs, step_ns, mean=mean)
        if not found.reached:
            raise CannotAnswerError(
                f"nothing known of this run gives a step of {milliseconds(step_ns)} ms: {found.nearest}",
                hint=f"give the {'mean' if mean else 'median'} untraced step of this program and this batch; or ask "
                "without it, if that is of another process: the GPU's own work differs by some 2 % between two",
            )
        return replace(self, model=rerun(self.model, found.changes(traced)), host_speed=found.host_speed)

    def doubt(self, rank: Rank) -> Doubt:
        """Return how much of what is gained on a rank may be the profiler's; none on a host whose step was measured."""
        if self.host_speed is not None:
            return Doubt()
        return Doubt(self._correction(rank, Source()).untold_ns, self.left.get(rank, 1.0))

    def _corrected(self, rank: Rank, source: Source) -> Overhead:
        """Return the correction of a rank's decode steps where it has a value.

        Raises:
            CannotAnswerError: nothing is known of the profiler's cost, or the capture can't tell how much it is.
        """
        found = self._correction(rank, source)
        if found.corrected_step_ns is None:
            between = " and ".join(duration(limit) for limit in found.range_ns or ())
            reach = f" The step without it lies between {between}." if between else ""
            raise CannotAnswerError(f"{found.message}{reach}", hint="measure the step without the profiler")
        return found

    def _correction(self, rank: Rank, source: Source) -> Overhead:
        """Return the correction of a rank's decode steps, as a report has it."""
        return correct(self.timeline, self.steps, self.model, self.steps.decode_of(rank), source)


def _source(calibration: Path | None) -> Source:
    return Source(calibration=read_calibration(calibration) if calibration else None, bundled=not calibration)


def study_of(
    timeline: Timeline, steps: Steps, model: Model | None, fixes: tuple[Fix, ...], left: Mapping[Rank, float]
) -> Study:
    """Return a capture ready for questions.

    Raises:
        CannotAnswerError: no decode step can be timed, or graph work is missing.
    """
    if missing := missing_work(timeline.mode, timeline.trace.notes):
        raise CannotAnswerError(f"{missing.why}, so nothing can be predicted", hint=missing.hint)
    if timeline.walked:
        raise CannotAnswerError(
            "the profiler walked the stack at every call, so the times are those of a far slower program",
            hint="ask a capture without call chains; `analyze --names-from` names its calls",
        )
    if model is None or model.windows.is_empty():
        if any(len(device.processes) > 1 for device in timeline.devices):
            raise CannotAnswerError(
                "several processes share the GPU, and whether the others would fill what one frees, nothing shows",
                hint="capture the process with the GPU to itself",
            )
        raise CannotAnswerError("no decode step was found, so there is none to predict", hint="name one with --step-by")
    return Study(timeline, steps, model, fixes, tuple(Rank.in_rows(model.windows)), left)
