"""What the replay of a capture answers for one rank: a prediction that was asked for, or every fix and their order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bubblefinder.replay.fixes import best_order
from bubblefinder.replay.predict import predict

if TYPE_CHECKING:
    from bubblefinder.replay.fixes import Fix, Stage
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
    """

    name: str
    rank: Rank
    now: Prediction
    asked: Prediction | None
    fixes: tuple[tuple[Fix, Prediction], ...] = ()
    order: tuple[Stage, ...] = ()
    accept_length: float | None = None
    profilers_ns: int | None = None
    host_speed: float | None = None


def answer(study: Study, rank: Rank, asked: Prediction | None, accept_length: float | None) -> Answer:
    """Return what there is to say of a rank: the prediction that was asked for, else the fixes and their order."""
    return Answer(
        name=study.timeline.trace.info.name,
        rank=rank,
        now=predict(study.model, [])[rank],
        asked=asked,
        fixes=() if asked else tuple((fix, _alone(study, rank, fix)) for fix in study.fixes),
        order=() if asked else best_order(study.model, study.fixes, rank),
        accept_length=accept_length,
        profilers_ns=study.profilers_ns(rank),
        host_speed=study.host_speed,
    )


def _alone(study: Study, rank: Rank, fix: Fix) -> Prediction:
    """Return the step after one fix alone, with what has to be said of it."""
    then = predict(study.model, [fix.change])[rank]
    return replace(then, notes=(*then.notes, fix.note)) if fix.note else then
