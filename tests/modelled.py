"""Captures taken all the way to a what-if model, and its predictions in microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubblefinder.replay.build import build_model
from bubblefinder.replay.predict import predict
from tests.judged import drawn, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.model import Model
    from bubblefinder.trace.model import Trace


def model_of(trace: Trace) -> Model:
    judged = judge(trace)
    return build_model(judged.timeline, judged.steps, judged.causes)


def model_drawn(picture: str) -> Model:
    """A picture with one microsecond a character."""
    judged = drawn(picture)
    return build_model(judged.timeline, judged.steps, judged.causes)


def steps_us(model: Model, changes: Sequence[Change] = ()) -> list[float]:
    """The predicted median step of each lane."""
    return [then.step_ns / 1000 for then in predict(model, changes).values()]
