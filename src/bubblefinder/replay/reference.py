"""Correction by a reference: the same workload captured in graph mode, which costs the GPU next to nothing."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bubblefinder.causes.find import find_causes
from bubblefinder.errors import CannotAnswerError
from bubblefinder.intervals import begin_and_end, covered_before
from bubblefinder.lookup import kept, on_gpu
from bubblefinder.overhead.model import Cost, Costs, Overhead
from bubblefinder.replay.build import build_model
from bubblefinder.replay.corrected import Corrected, TracedSteps, replays_in, role_medians
from bubblefinder.replay.ledger import COLUMNS
from bubblefinder.replay.summary import summarise
from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.ledger import cover_of, window_ledger
from bubblefinder.timeline.model import CaptureMode, IdleClass
from bubblefinder.units import milliseconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.replay.model import Model
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import Trace

    Floats = NDArray[np.float64]

_GUESS = Cost(1.0, 0.0, 1.0)
_LONGER = 1.05


@dataclass(frozen=True, slots=True)
class Reference:
    """A graph-mode capture of the same workload.

    Attributes:
        timeline: the capture.
        steps: its steps.
        rows: the decode steps of one of its ranks: gpu, process, start_ns, end_ns, and their ledger.
        replays: the replays in these, as `replays_in` has them.
    """

    timeline: Timeline
    steps: Steps
    rows: pl.DataFrame
    replays: pl.DataFrame

    @property
    def model(self) -> Model:
        """Its recorded run."""
        return build_model(self.timeline, self.steps, find_causes(self.timeline, self.steps))


def correct_by_reference(timeline: Timeline, ours: TracedSteps, given: Reference, measured: Costs | None) -> Overhead:
    """Return the correction of decode steps by a graph-mode capture of the same workload.

    Step lengths, gaps between replays and replay lengths are the reference's. The inside of each replay is the node
    capture's, brought to the reference's length: what a replay lost comes out of its gaps, in the part that the
    calibration measured.

    Raises:
        CannotAnswerError: the reference plays other roles.
    """
    rows, replays = given.rows, given.replays
    _check_roles(ours.replays, replays)
    share = measured.gap_share if measured else _GUESS
    idle = _idle_by_role(timeline, ours) if timeline.mode is CaptureMode.NODE else None
    middle, *ends = (_filled(rows, replays, ours.replays, idle, part) for part in (share.value, share.low, share.high))
    parameters = _parameters(given.timeline.trace, rows, share)
    overhead = summarise(ours, middle, ends, "reference_capture", parameters)
    spread = np.percentile(rows["duration_ns"].to_numpy(), (25, 75))
    said = (
        f"The traced step of {milliseconds(overhead.traced_step_ns)} ms takes "
        f"{milliseconds(overhead.corrected_step_ns)} ms in the reference, a graph-mode capture of the same workload: "
        "step, gaps between replays and replay lengths are the reference's."
    )
    if (overhead.corrected_step_ns or 0) > _LONGER * (overhead.traced_step_ns or 0):
        said += " That is longer than the traced step: the workload or the host differs between the two."
    return replace(overhead, range_ns=(round(spread[0]), round(spread[1])), message=said)


def _parameters(trace: Trace, rows: pl.DataFrame, share: Cost) -> dict[str, object]:
    return {
        "reference": trace.info.name,
        "reference_steps": len(rows),
        "gap_share": asdict(share),
        "from": "a graph-mode capture of the same workload",
    }


def read_reference(trace: Trace, gpu: int) -> Reference:
    """Return a reference with its decode steps on a GPU, or on the first that has some.

    Raises:
        CannotAnswerError: it is no graph-mode capture, or holds no decode steps.
    """
    timeline = build_timeline(trace)
    if timeline.mode is not CaptureMode.GRAPH:
        raise CannotAnswerError(
            f"the reference {trace.info.name} was captured in {timeline.mode} mode",
            hint="capture it with --cuda-graph-trace=graph",
        )
    steps = find_steps(timeline)
    decode = kept(steps.windows, steps.decode).with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))
    if decode.is_empty():
        raise CannotAnswerError(
            f"the reference {trace.info.name} holds no decode steps", hint="capture more steps of the same workload"
        )
    same = kept(decode, decode["gpu"] == gpu)
    lane = (same if len(same) else decode).partition_by("gpu", "process", maintain_order=True)[0]
    used, process = lane[["gpu", "process"]].row(0)
    ledger = window_ledger(timeline, used, *begin_and_end(lane))
    return Reference(timeline, steps, lane.hstack(ledger), replays_in(timeline, steps, lane, process))


def _check_roles(ours: pl.DataFrame, theirs: pl.DataFrame) -> None:
    played, reference = set(ours["role"].unique()), set(theirs["role"].unique())
    if played != reference:
        raise CannotAnswerError(
            f"the reference plays {_listed(reference)}, the capture {_listed(played)}",
            hint="capture the same workload in both modes",
        )


def _listed(roles: set[str]) -> str:
    return ", ".join(sorted(roles)) or "no graphs"


def _idle_by_role(timeline: Timeline, ours: TracedSteps) -> dict[str, tuple[float, float]]:
    """Return median length and median idle time inside the replays of each role of the node capture."""
    pieces = on_gpu(timeline.pieces, ours.gpu).select("start_ns", "end_ns", "idle_class")
    cover = cover_of(kept(pieces, pieces["idle_class"] == int(IdleClass.INTRA_GRAPH)))
    starts, ends = begin_and_end(ours.replays)
    idle = covered_before(ends, cover) - covered_before(starts, cover)
    medians = (
        ours.replays.with_columns(idle=pl.Series(idle), length=pl.Series(ends - starts))
        .group_by("role")
        .agg(pl.col("length").median(), pl.col("idle").median())
    )
    return {role: (length, gaps) for role, length, gaps in medians[["role", "length", "idle"]].iter_rows()}


def _filled(
    rows: pl.DataFrame,
    replays: pl.DataFrame,
    ours: pl.DataFrame,
    idle: dict[str, tuple[float, float]] | None,
    share: float,
) -> Corrected:
    """Return the reference's ledger with the replays' inside filled in from the node capture."""
    lengths = (replays["end_ns"] - replays["start_ns"]).to_numpy().astype(float)
    ledger = rows.select(COLUMNS)
    if idle is None or ours.is_empty():
        ledger = ledger.with_columns(intra_graph_ns=pl.lit(None, pl.Int64))
    else:
        inside = np.bincount(
            replays["step"].to_numpy(), weights=_inside(replays["role"], lengths, idle, share), minlength=len(rows)
        )
        gaps = pl.Series(np.rint(inside)).cast(pl.Int64)
        ledger = ledger.with_columns(intra_graph_ns=gaps, busy_ns=pl.col("busy_ns") - gaps)
    return Corrected(ledger, role_medians(replays, lengths), 0)


def _inside(roles: pl.Series, lengths: Floats, idle: dict[str, tuple[float, float]], share: float) -> Floats:
    recorded = np.array([idle[role] for role in roles.to_list()])
    return np.clip(recorded[:, 1] - share * (recorded[:, 0] - lengths), 0.0, lengths)
