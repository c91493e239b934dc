"""Corrected steps: the ledger of every decode step, the roles and the shares, once blocks and seams have moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.overhead.device import SEAM_CLASSES, Work, work_of
from bubblefinder.overhead.host import Host, host_of
from bubblefinder.overhead.model import Shares
from bubblefinder.overhead.shift import Shifted, shift
from bubblefinder.timeline.model import IdleClass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.overhead.model import Costs
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

    Floats = NDArray[np.float64]

INTER: Final = ("host_late", "launching", "queued", "unattributed")
CLASSES: Final = ("busy", "intra_graph", *INTER, "unrecorded", "profiler")
COLUMNS: Final = ("duration_ns", *(f"{name}_ns" for name in CLASSES))


@dataclass(frozen=True, slots=True)
class RankLedger:
    """The decode steps of one process on one GPU, and all that ran there.

    Attributes:
        gpu: physical GPU.
        rows: raw ledger, one row a decode step: index, start_ns, end_ns and `COLUMNS`.
        replays: start_ns, end_ns and role of the replays in these steps.
        work: the GPU's blocks and seams.
        host: the calls of its processes.
    """

    gpu: int
    rows: pl.DataFrame
    replays: pl.DataFrame
    work: Work
    host: Host


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


def lane_of(timeline: Timeline, steps: Steps, rows: pl.DataFrame) -> RankLedger:
    """Collect what a lane's decode steps consist of.

    Args:
        timeline: the timeline.
        steps: its steps.
        rows: the lane's decode steps with their raw ledger: gpu, process, index, start_ns, end_ns and `COLUMNS`.
    """
    gpu, process = rows.select("gpu", "process").row(0)
    return RankLedger(
        gpu, rows, replays_in(timeline, steps, rows, process), work_of(timeline, gpu), host_of(timeline, gpu)
    )


def replays_in(timeline: Timeline, steps: Steps, rows: pl.DataFrame, process: int) -> pl.DataFrame:
    """Return start_ns, end_ns, role and step (position in `rows`) of the process's replays in the steps."""
    gpu, starts, ends = int(rows["gpu"][0]), rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy()
    mine = timeline.replays.hstack(steps.replays.select("role", "position")).filter(
        (pl.col("gpu") == gpu) & (pl.col("process") == process) & pl.col("role").is_not_null()
    )
    step = np.searchsorted(starts, mine["start_ns"].to_numpy(), side="right") - 1
    within = (step >= 0) & (mine["start_ns"].to_numpy() < ends[np.maximum(step, 0)])
    return mine.with_columns(step=pl.Series(step)).filter(pl.Series(within, dtype=pl.Boolean))


def correct_lane(lane: RankLedger, costs: Costs, factor: float = 1.0) -> Corrected:
    """Return the lane's decode steps with `factor` times the costs taken off."""
    shifted = shift(lane.work, lane.host, costs, factor)
    rows = _rows(lane, shifted)
    lengths = _moved(lane.work, shifted, lane.replays["end_ns"]) - _moved(lane.work, shifted, lane.replays["start_ns"])
    unplaced = _per_row(lane, lane.work.starts, shifted.added.unplaced_ns)
    return Corrected(rows, role_medians(lane.replays, lengths), round(float(np.median(unplaced))))


def role_medians(replays: pl.DataFrame, lengths: Floats) -> dict[str, int | None]:
    """Return the median length of the replays of each role, in order of place in the step."""
    grouped = (
        replays.with_columns(length=pl.Series(lengths, dtype=pl.Float64))
        .group_by("role", maintain_order=True)
        .agg(pl.col("length").median(), pl.col("position").median())
        .sort("position", nulls_last=True, maintain_order=True)
    )
    return {role: round(length) for role, length in grouped.select("role", "length").iter_rows()}


def _moved(work: Work, shifted: Shifted, times: pl.Series) -> Floats:
    """Return where moments of the recording lie now; inside a block the loss is spread evenly."""
    origin = int(work.starts[0])
    recorded = np.column_stack((work.starts, work.ends)).ravel() - origin
    now = np.column_stack((shifted.starts, shifted.ends)).ravel() - origin
    moved: Floats = np.interp(times.to_numpy() - origin, recorded, now)
    return moved


def _per_row(lane: RankLedger, starts: NDArray[np.int64], values: Floats) -> Floats:
    """Add up what begins in each decode step."""
    row = np.searchsorted(lane.rows["start_ns"].to_numpy(), starts, side="right") - 1
    inside = (row >= 0) & (starts < lane.rows["end_ns"].to_numpy()[np.maximum(row, 0)])
    return np.bincount(row[inside], weights=values[inside], minlength=len(lane.rows)).astype(np.float64)


def _rows(lane: RankLedger, shifted: Shifted) -> pl.DataFrame:
    """Return the corrected ledger: seams by class, the rest of the step split as measured; each row sums exactly."""
    work, raw = lane.work, lane.rows
    seam_starts = np.concatenate((work.starts[:1] - 1, work.ends[:-1]))
    duration = np.rint(_moved(work, shifted, raw["end_ns"])) - np.rint(_moved(work, shifted, raw["start_ns"]))
    columns: dict[str, Floats] = {"duration_ns": duration}
    change, seams = np.zeros(len(raw)), np.zeros(len(raw))
    for number, idle_class in enumerate(SEAM_CLASSES):
        if idle_class is IdleClass.INTRA_GRAPH:
            continue
        before = _per_row(lane, seam_starts, work.seam_ns[:, number].astype(float))
        after = np.rint(_per_row(lane, seam_starts, shifted.seam_ns[:, number]))
        name = f"{idle_class.name.lower()}_ns"
        columns[name] = np.maximum(_known(raw, name) + after - before, 0.0)
        seams += columns[name]
        change += _known(raw, name)
    _fit(columns, seams - duration)
    inner = np.maximum(duration - seams, 0.0)
    lost = raw["duration_ns"].to_numpy() - change - inner
    columns |= _inner(lane, shifted, inner, lost)
    filled = pl.DataFrame({name: pl.Series(columns[name]).cast(pl.Int64) for name in COLUMNS})
    unknown = [name for name in COLUMNS if raw[name].null_count()]
    return raw.select("index").hstack(filled.with_columns(pl.lit(None, pl.Int64).alias(name) for name in unknown))


def _fit(columns: dict[str, Floats], excess: Floats) -> None:
    """Shorten the seams of steps that hold less than them: those whose edge lies inside a gap."""
    for name in COLUMNS[1:]:
        if name in columns:
            taken = np.clip(excess, 0.0, columns[name])
            columns[name] -= taken
            excess = excess - taken


def _known(raw: pl.DataFrame, name: str) -> Floats:
    return raw[name].fill_null(0).to_numpy().astype(float)


def _inner(lane: RankLedger, shifted: Shifted, inner: Floats, lost: Floats) -> dict[str, Floats]:
    """Split what is left of each step into busy time and intra-graph gaps: each loses what was taken off it."""
    gaps = _per_row(lane, lane.work.starts, shifted.added.gaps_ns)
    both = gaps + _per_row(lane, lane.work.starts, shifted.added.busy_ns)
    part = np.divide(gaps, both, out=np.zeros(len(both)), where=both != 0)
    intra = np.clip(np.rint(_known(lane.rows, "intra_graph_ns") - lost * part), 0.0, inner)
    return {"busy_ns": inner - intra, "intra_graph_ns": intra}


def shares_of(rows: pl.DataFrame, *, has_replays: bool) -> Shares:
    """Return idle over duration, totals over the steps; null where the inside of graphs was not measured."""
    total = int(rows["duration_ns"].sum())
    if not total or rows["host_late_ns"].null_count():
        return Shares()
    inter = sum(int(rows[f"{name}_ns"].sum()) for name in INTER)
    if rows["intra_graph_ns"].null_count():
        return Shares(inter_graph=inter / total, total=None if has_replays else inter / total)
    intra = int(rows["intra_graph_ns"].sum())
    return Shares(intra_graph=intra / total, inter_graph=inter / total, total=(inter + intra) / total)
