"""Find the decode steps of every lane, the way asked for or the best there is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.errors import CannotAnswerError, UsageError
from bubblefinder.intervals import last_before
from bubblefinder.lookup import NOWHERE, taken
from bubblefinder.steps.detect import detect
from bubblefinder.steps.doubts import less_sure
from bubblefinder.steps.kept import take_up
from bubblefinder.steps.lane import lanes
from bubblefinder.steps.model import CONFIDENCES, METHODS, WINDOWS, StepDetection, Steps, window_of_replays
from bubblefinder.steps.reasons import CAPTURE_START, OTHER_WORK, PREFILL, REGIME, TAIL
from bubblefinder.steps.roles import roles_of_strangers
from bubblefinder.steps.windows import lane_windows
from bubblefinder.timeline.missing import missing_work, untold
from bubblefinder.trace.model import QualityNote
from bubblefinder.trace.programs import is_llm

if TYPE_CHECKING:
    from bubblefinder.steps.detect import Detected
    from bubblefinder.steps.model import Confidence, RequestsFrom
    from bubblefinder.timeline.model import Timeline

_NOTHING: Final = "no repeating decode step was found: the ledger covers the whole capture; name one with --step-by"


def find_steps(timeline: Timeline, step_by: str | None = None) -> Steps:
    """Return the decode steps of a timeline.

    Args:
        timeline: the timeline.
        step_by: ``nvtx:REGEX``, ``kernel:REGEX``, ``nvtx``, ``cadence``, ``sequence``, ``cadence:N`` or
            ``sequence:N`` (the segmentation with about N steps), or null for the best there is: the steps
            that a part of a capture keeps, else what recurs and no other segmentation contradicts.

    Raises:
        UsageError: `step_by` is none of these.
        CannotAnswerError: what was asked for isn't in the capture.
    """
    part = timeline.trace.part
    if part is not None and part.ranks.height and not step_by:
        return take_up(timeline, part)
    method, pattern = _parse(step_by)
    every = [detect(timeline, lane, method, pattern) for lane in lanes(timeline)]
    found = [steps for steps in every if steps is not None]
    if not found or untold(timeline):
        if method and not found:
            raise _not_there(method, pattern)
        return _none(timeline)
    of_lane = [lane_windows(timeline, steps.lane, steps.events, steps.boundaries, steps.roles) for steps in found]
    windows = _in_its_own_words(pl.concat([one.frame for one in of_lane]), timeline)
    found = [_judged(timeline, steps, mine.frame) for steps, mine in zip(found, of_lane, strict=True)]
    confidence = _least_sure(found)
    told = (_detection(steps, confidence, mine.requests_from) for steps, mine in zip(found, of_lane, strict=True))
    return Steps(
        detections={steps.lane.rank: one for steps, one in zip(found, told, strict=True)},
        windows=windows,
        replays=_replay_frame(timeline, found, windows),
        notes=_notes(found),
    )


def _judged(timeline: Timeline, steps: Detected, windows: pl.DataFrame) -> Detected:
    """Return steps with what their windows tell: how sure they are, and what their graphs do."""
    sure = less_sure(steps, windows)
    step = windows["excluded"].fill_null("").is_in(["", TAIL, CAPTURE_START, REGIME]).to_numpy()
    window = last_before(steps.lane.replays["start_ns"].to_numpy(), windows["start_ns"].to_numpy())
    held = np.where((window >= 0) & step[window], window, NOWHERE)
    return replace(sure, roles=roles_of_strangers(timeline, steps.lane, steps.roles, held))


def _in_its_own_words(windows: pl.DataFrame, timeline: Timeline) -> pl.DataFrame:
    """Return the windows; what would be a prefill of a language model is other work elsewhere."""
    if not (windows["excluded"] == PREFILL).any() or is_llm(timeline.trace):
        return windows
    return windows.with_columns(pl.col("excluded").replace(PREFILL, OTHER_WORK))


def _least_sure(found: list[Detected]) -> dict[str, Confidence]:
    """Return the least confidence of the lanes found by each method."""
    least: dict[str, Confidence] = {}
    for steps in found:
        least[steps.method] = min(steps.confidence, least.get(steps.method, "high"), key=CONFIDENCES.index)
    return least


def _detection(steps: Detected, confidence: dict[str, Confidence], requests_from: RequestsFrom | None) -> StepDetection:
    """Return how the steps of a lane were found; no surer than the least sure of the lanes found the same way."""
    return StepDetection(steps.method, confidence[steps.method], steps.mark, steps.rival, requests_from)


def _not_there(method: str, pattern: str) -> CannotAnswerError:
    if method == "nvtx" and pattern:
        return CannotAnswerError(
            f"no NVTX range that matches {pattern!r} launches work on a GPU",
            hint="`bubblefinder doctor` lists the ranges that repeat",
        )
    asked = f"{method}:{pattern}" if pattern else method
    return CannotAnswerError(
        f"no steps by {asked}: it doesn't repeat in this capture", hint="leave --step-by out, or try another method"
    )


def _parse(step_by: str | None) -> tuple[str | None, str]:
    method, _, pattern = (step_by or "").partition(":")
    if not step_by:
        return None, ""
    numbered = pattern and method in ("cadence", "sequence")
    if method not in METHODS or (method == "kernel") > bool(pattern) or (numbered and not pattern.isdecimal()):
        raise UsageError(
            f"--step-by {step_by!r} is not a method",
            hint="use nvtx:REGEX, kernel:REGEX, nvtx, cadence, sequence, or sequence:N for about N steps",
        )
    return method, pattern


def _none(timeline: Timeline) -> Steps:
    windows = pl.DataFrame(schema=WINDOWS)
    missing = missing_work(timeline.mode, timeline.trace.notes)
    said = f"no steps are counted, since {missing.why}: {missing.hint}" if missing else _NOTHING
    note = QualityNote("no-steps", "warn", said)
    return Steps({}, windows, _replay_frame(timeline, [], windows), (note,))


def _replay_frame(timeline: Timeline, found: list[Detected], windows: pl.DataFrame) -> pl.DataFrame:
    """Return window_index, role and position of every replay, in the timeline's order."""
    schema = pl.Schema({"replay_index": pl.UInt32, "role": pl.String, "position": pl.Int64})
    roles = pl.concat([pl.DataFrame(schema=schema), *(steps.roles.cast(schema) for steps in found)])
    place = np.full(len(timeline.replays), NOWHERE)
    place[roles["replay_index"].to_numpy()] = np.arange(len(roles))
    return pl.DataFrame([window_of_replays(timeline, windows), *taken(roles[["role", "position"]], place)])


def _notes(found: list[Detected]) -> tuple[QualityNote, ...]:
    others = {steps.method for steps in found} - {found[0].method}
    if not others:
        return ()
    return (
        QualityNote(
            "mixed-step-methods",
            "warn",
            f"steps were found by {found[0].method} on GPU {found[0].lane.gpu} and by {', '.join(sorted(others))} "
            "elsewhere: compare ranks with care",
            len(found),
        ),
    )
