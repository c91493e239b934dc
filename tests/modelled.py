"""Captures taken all the way to a what-if model, and its predictions in microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubblefinder.replay.build import build_model
from bubblefinder.replay.predict import predict
from tests.judged import Judged, drawn, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.model import Model
    from bubblefinder.trace.model import Trace


def model_of(trace: Trace) -> Model:
    return _model(judge(trace))


def model_drawn(picture: str) -> Model:
    """A picture with one microsecond a character."""
    return _model(drawn(picture))


def _model(judged: Judged) -> Model:
    return build_model(judged.timeline, judged.steps, judged.causes)


def steps_us(model: Model, changes: Sequence[Change] = ()) -> list[float]:
    """The predicted median step of each lane."""
    return [then.step_ns / 1000 for then in predict(model, changes).values()]
