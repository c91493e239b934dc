"""What the replay of a capture answers for one rank: the step after some changes, or every fix and their order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.replay.doubt import Estimate
from bubblefinder.replay.fixes import best_order
from bubblefinder.replay.predict import predict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.doubt import Doubt
    from bubblefinder.replay.fixes import Fix
    from bubblefinder.replay.model import Model
    from bubblefinder.replay.predict import Prediction
    from bubblefinder.replay.study import Study
    from bubblefinder.timeline.rank import Rank


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How long the decode step of a rank would be.

    Attributes:
        name: of the capture.
        rank: whose step it is.
        now: the step as it was recorded, or with the host of the measured step.
        asked: the step after the changes that were asked for; null for none.
        fixes: if nothing was asked for, what can be fixed, each with the step after it alone.
        order: the fixes in the order that pays most, each with the step after all up to it.
        accept_length: tokens accepted a step, null if unknown.
        profilers_ns: how much of the step, and so of a gain, may be the profiler's own time, where that can't be told.
        host_speed: how many times as fast as recorded the host works in all of this; null for as recorded.
        single_kernels: how many kernels of the median step are launched by themselves, outside of graphs.
    """

    name: str
    rank: Rank
    now: Prediction
    asked: Estimate | None = None
    fixes: tuple[tuple[Fix, Estimate], ...] = ()
    order: tuple[tuple[Fix, Estimate], ...] = ()
    accept_length: float | None = None
    profilers_ns: int | None = None
    host_speed: float | None = None
    single_kernels: float = 0


def answer(study: Study, rank: Rank, changes: Sequence[Change] = (), accept_length: float | None = None) -> Answer:
    """Return the step of a rank after all the changes together; without changes the fixes and their order."""
    doubt = study.doubt(rank)
    told = replace(_now(study, rank, accept_length), profilers_ns=doubt.about(changes).profilers_ns)
    if changes:
        return replace(told, asked=Estimate(predict(study.model, changes)[rank], doubt.about(changes)))
    return replace(
        told,
        fixes=tuple((fix, Estimate(_alone(study, rank, fix), doubt.about([fix.change]))) for fix in study.fixes),
        order=tuple(_order(study, rank, doubt)),
    )


def untraced_answer(study: Study, rank: Rank, calibration: Path | None, accept_length: float | None) -> Answer:
    """Return the step of a rank without the profiler and with nothing else changed.

    Raises:
        CannotAnswerError: nothing is known of its cost, or the capture can't tell how much it is.
        UsageError: the file is no calibration.
    """
    return replace(_now(study, rank, accept_length), asked=Estimate(study.untraced(rank, calibration)))


def _now(study: Study, rank: Rank, accept_length: float | None) -> Answer:
    return Answer(
        name=study.timeline.trace.info.name,
        rank=rank,
        now=predict(study.model, [])[rank],
        accept_length=accept_length,
        host_speed=study.host_speed,
        single_kernels=_single_kernels(study.model, rank),
    )


def _single_kernels(model: Model, rank: Rank) -> float:
    """Return how many kernels of a rank's median step are launched one by one."""
    single = model.blocks.filter(rank.mine & (pl.col("kind") == "kernel"))
    steps, starts = model.steps[rank], np.sort(single["start_ns"].to_numpy())
    begins, ends = (np.searchsorted(starts, model.recorded[at]) for at in (steps.begin, steps.end))
    return float(np.median(ends - begins))


def _alone(study: Study, rank: Rank, fix: Fix) -> Prediction:
    """Return the step after one fix alone, with what has to be said of it."""
    then = predict(study.model, [fix.change])[rank]
    return replace(then, notes=(*then.notes, fix.note)) if fix.note else then


def _order(study: Study, rank: Rank, doubt: Doubt) -> Iterator[tuple[Fix, Estimate]]:
    changes: list[Change] = []
    for stage in best_order(study.model, study.fixes, rank, doubt):
        changes.append(stage.fix.change)
        yield stage.fix, Estimate(stage.then, doubt.about(changes))
