"""Find the decode steps of every lane, the way asked for or the best there is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.errors import CannotAnswerError, UsageError
from bubblefinder.steps.boundaries import seam_boundaries
from bubblefinder.steps.by_cadence import Cadence, find_cadence
from bubblefinder.steps.by_nvtx import Mark, asked_mark, find_mark
from bubblefinder.steps.by_sequence import find_sequence
from bubblefinder.steps.kept import take_up
from bubblefinder.steps.lane import RankWork, lanes
from bubblefinder.steps.model import StepDetection, Steps
from bubblefinder.steps.roles import replay_roles, role_frame
from bubblefinder.steps.signatures import replay_signatures
from bubblefinder.steps.windows import lane_windows
from bubblefinder.timeline.rank import Rank
from bubblefinder.trace.model import KERNEL, QualityNote

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.model import Confidence
    from bubblefinder.timeline.model import Timeline

METHODS: Final = ("nvtx", "cadence", "sequence", "kernel")
_CONFIDENT: Final = 0.95
_FAIR: Final = 0.8
_MANY: Final = 5
_FEW: Final = 2
_ORDER: Final = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class _Found:
    """The steps of one lane before they are laid beside the others.

    `anchors` are moments surely inside each step; marks that come more or less often than trusted steps are refused.
    """

    lane: RankWork
    method: str
    confidence: Confidence
    mark: str | None
    boundaries: Ints
    anchors: Ints
    roles: pl.DataFrame
    trusted: bool = False


def find_steps(timeline: Timeline, step_by: str | None = None) -> Steps:
    """Return the decode steps of a timeline.

    Args:
        timeline: the timeline.
        step_by: ``nvtx:REGEX``, ``kernel:REGEX``, ``nvtx``, ``cadence``, ``sequence``, or null for the
            best there is: the steps that a part of a capture keeps, else a good NVTX mark, else graph
            launches, else the sequence of operations.

    Raises:
        UsageError: `step_by` is none of these.
        CannotAnswerError: what was asked for isn't in the capture.
    """
    part = timeline.trace.part
    if part is not None and part.ranks.height and not step_by:
        return take_up(timeline, part)
    method, pattern = _parse(step_by)
    found = [steps for lane in lanes(timeline) if (steps := _find(timeline, lane, method, pattern)) is not None]
    if not found:
        if method:
            raise _not_there(method, pattern)
        return _none(timeline)
    windows = pl.concat([lane_windows(timeline, steps.lane, steps.boundaries, steps.roles) for steps in found])
    return Steps(
        detections={Rank(steps.lane.gpu, steps.lane.process): _detection(steps, found) for steps in found},
        windows=windows,
        replays=_replay_frame(timeline, found, windows),
        notes=_notes(found),
    )


def _detection(steps: _Found, found: list[_Found]) -> StepDetection:
    """Return how the steps of a lane were found; no surer than the least sure of the lanes found the same way."""
    alike = (other.confidence for other in found if other.method == steps.method)
    return StepDetection(steps.method, min(alike, key=_ORDER.index), steps.mark)


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
    if method not in METHODS or (method == "kernel") > bool(pattern) or (pattern and method in ("cadence", "sequence")):
        raise UsageError(
            f"--step-by {step_by!r} is not a method", hint="use nvtx:REGEX, kernel:REGEX, nvtx, cadence or sequence"
        )
    return method, pattern


def _find(timeline: Timeline, lane: RankWork, method: str | None, pattern: str) -> _Found | None:
    if method == "kernel":
        return _by_kernel(timeline, lane, pattern)
    cadence = find_cadence(replay_signatures(timeline, lane)) if len(lane.replays) > 1 else None
    roles = role_frame(lane, replay_roles(timeline, lane, cadence), cadence) if cadence else _no_roles(lane)
    if pattern:
        asked = asked_mark(timeline, lane, pattern)
        return (
            _Found(lane, "nvtx", asked.confidence, asked.text, asked.boundaries, asked.boundaries, roles)
            if asked
            else None
        )
    cycles = None if method == "sequence" else _by_cadence(timeline, lane, cadence, roles)
    eager = method == "sequence" or (method != "cadence" and not _mostly_replays(lane))
    cycles = cycles or (_by_sequence(lane, roles) if eager else None)
    if method in (None, "nvtx"):
        anchors = cycles.anchors if cycles else np.empty(0, np.int64)
        trusted = cycles is not None and cycles.trusted
        recurring = cycles is not None and cycles.method == "cadence"
        mark_found = find_mark(timeline, lane, anchors, trusted=trusted, recurring=recurring)
        if mark_found and (method or _better(mark_found, cycles)):
            return _Found(
                lane,
                "nvtx",
                mark_found.confidence,
                mark_found.text,
                mark_found.boundaries,
                mark_found.boundaries,
                roles,
            )
    return None if method == "nvtx" else cycles


def _better(mark: Mark, cycles: _Found | None) -> bool:
    """Tell whether to take a mark rather than cycles; one that nothing bears out may mark the layers of a step."""
    if cycles is None or mark.confidence != "low":
        return True
    return cycles.confidence == "low" and len(mark.boundaries) <= len(cycles.boundaries)


def _by_cadence(timeline: Timeline, lane: RankWork, cadence: Cadence | None, roles: pl.DataFrame) -> _Found | None:
    if cadence is None or len(starts := cadence.starts) < 2:  # noqa: PLR2004 - one closed step at least
        return None
    regular = cadence.score >= _CONFIDENT and len(starts) >= _MANY
    fair: Confidence = "high" if regular else "medium"
    confidence: Confidence = fair if cadence.sure and cadence.score >= _FAIR and len(starts) > _FEW else "low"
    return _Found(
        lane,
        "cadence",
        confidence,
        None,
        seam_boundaries(timeline, lane, starts),
        lane.replays["start_ns"].to_numpy()[starts],
        roles,
        trusted=confidence == "high",
    )


def _mostly_replays(lane: RankWork) -> bool:
    """Tell a lane that spends more time in replays than outside: the sequence of the rest says nothing of its steps."""
    outside = pl.col("replay_index").is_null() & (pl.col("kind") == KERNEL)
    inside = lane.replays.select((pl.col("end_ns") - pl.col("start_ns")).sum()).item()
    return bool(inside > lane.operations.filter(outside).select((pl.col("end_ns") - pl.col("start_ns")).sum()).item())


def _by_sequence(lane: RankWork, roles: pl.DataFrame) -> _Found | None:
    sequence = find_sequence(lane)
    if sequence is None:
        return None
    sure = sequence.regularity >= _CONFIDENT and len(sequence.boundaries) >= _MANY and sequence.sure
    confidence: Confidence = "medium" if sure else "low"
    trusted = sure and sequence.bounded
    return _Found(lane, "sequence", confidence, None, sequence.boundaries, sequence.boundaries, roles, trusted=trusted)


def _by_kernel(timeline: Timeline, lane: RankWork, pattern: str) -> _Found | None:
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"--step-by kernel: {pattern!r} is not a regular expression: {error}") from error
    wanted = [
        name
        for name in lane.operations["name"].unique().drop_nulls()
        if expression.search(timeline.trace.names.get(name, ""))
    ]
    boundaries = lane.operations.filter(pl.col("name").is_in(wanted))["start_ns"].unique().sort().to_numpy()
    return (
        _Found(lane, "kernel", _once(lane, boundaries), pattern, boundaries, boundaries, _no_roles(lane))
        if len(boundaries) > 1
        else None
    )


def _once(lane: RankWork, boundaries: Ints) -> Confidence:
    """Doubt a kernel that comes several times in one replay: it hardly comes once a step."""
    starts, ends = lane.replays["start_ns"].to_numpy(), lane.replays["end_ns"].to_numpy()
    inside = np.searchsorted(boundaries, ends) - np.searchsorted(boundaries, starts)
    return "low" if len(inside) and inside.max() > 1 else "medium"


def _no_roles(lane: RankWork) -> pl.DataFrame:
    return lane.replays.select(
        "replay_index", role=pl.lit(None, dtype=pl.String), position=pl.lit(None, dtype=pl.Int64)
    )


def _none(timeline: Timeline) -> Steps:
    windows = pl.DataFrame(
        schema={
            "index": pl.Int64,
            "gpu": pl.Int32,
            "process": pl.Int64,
            "start_ns": pl.Int64,
            "end_ns": pl.Int64,
            "excluded": pl.String,
        },
    )
    note = QualityNote(
        "no-steps",
        "warn",
        "no repeating decode step was found: the ledger covers the whole capture; name one with --step-by",
    )
    return Steps({}, windows, _replay_frame(timeline, [], windows), (note,))


def _replay_frame(timeline: Timeline, found: list[_Found], windows: pl.DataFrame) -> pl.DataFrame:
    """Return window_index, role and position of every replay, in the timeline's order."""
    replays = timeline.replays.select("gpu", "process", "start_ns").with_row_index("replay_index")
    spans = windows.select("gpu", "process", "start_ns").with_row_index("window_index").sort("start_ns")
    placed = replays.sort("start_ns").join_asof(spans, on="start_ns", by=["gpu", "process"], check_sortedness=False)
    empty = pl.DataFrame(schema={"replay_index": pl.UInt32, "role": pl.String, "position": pl.Int64})
    roles = pl.concat(
        [
            empty,
            *(
                steps.roles.select(pl.col("replay_index").cast(pl.UInt32), "role", pl.col("position").cast(pl.Int64))
                for steps in found
            ),
        ]
    )
    return (
        placed.join(roles, on="replay_index", how="left")
        .sort("replay_index")
        .select("window_index", "role", "position")
    )


def _notes(found: list[_Found]) -> tuple[QualityNote, ...]:
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
