"""The ledger of replayed steps: what the recorded one becomes when blocks and calls have moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import held_by
from bubblefinder.lookup import NOWHERE, kept, on_gpu, places
from bubblefinder.replay.record import by_block
from bubblefinder.timeline.ledger import COLUMNS as IDLE_COLUMNS
from bubblefinder.timeline.ledger import window_ledger
from bubblefinder.timeline.model import EXPLAINED, LEDGER_CLASSES, IdleClass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.replay.changes import RemoveTracing
    from bubblefinder.replay.model import Model
    from bubblefinder.timeline.model import Timeline

    Floats = NDArray[np.float64]

COLUMNS: Final = ("duration_ns", *(f"{name}_ns" for name in LEDGER_CLASSES))


@dataclass(frozen=True, slots=True)
class Recorded:
    """The replayed steps of one process on one GPU as they were recorded.

    Attributes:
        rows: one row a step: `COLUMNS`, null where not measured.
        begin: number of the event that begins each step.
        end: of the one that begins the next.
        blocks: positions of the GPU's blocks, by recorded start.
        idle_ns: one row such a block, one column an `IdleClass`: the idle that it ended.
        launched: which of these blocks ended idle that their launch call and the queue explain, or none.
    """

    rows: pl.DataFrame
    begin: Ints
    end: Ints
    blocks: Ints
    idle_ns: Ints
    launched: Bools

    def per_step(self, model: Model, values: Floats) -> Floats:
        """Add up the values of all the model's blocks over those that begin in each step."""
        starts = model.recorded[model.blocks["begin"].to_numpy()[self.blocks]]
        step = held_by(starts, model.recorded[self.begin], model.recorded[self.end])
        return np.bincount(step + 1, weights=values[self.blocks], minlength=len(self.rows) + 1)[1:].astype(np.float64)


def recorded_steps(timeline: Timeline, model: Model, rows: pl.DataFrame) -> Recorded:
    """Return the recorded ledger of the steps among these that are replayed.

    Args:
        timeline: the timeline.
        model: the recorded run.
        rows: decode steps of one process on one GPU: gpu, process, start_ns.
    """
    gpu = int(rows["gpu"][0])
    windows = model.windows.with_columns(start_ns=pl.Series(model.recorded[model.windows["begin"].to_numpy()]))
    windows = windows.join(rows[["gpu", "process", "start_ns"]], on=["gpu", "process", "start_ns"], how="semi")
    begin, end = (windows[side].to_numpy() for side in ("begin", "end"))
    ledger = window_ledger(timeline, gpu, model.recorded[begin], model.recorded[end])
    if not kept(timeline.replays, timeline.replays["gpu"] == gpu)["nodes"].count():
        ledger = ledger.with_columns(intra_graph_ns=pl.lit(None, pl.Int64))
    idle = _idle_before(timeline, model, gpu)
    blocks = np.flatnonzero((model.blocks["gpu"] == gpu).to_numpy())
    known = places(model.blocks["call"])[blocks] != NOWHERE
    explained = idle[blocks][:, [int(part) for part in EXPLAINED]].sum(axis=1) == idle[blocks].sum(axis=1)
    rows = ledger.hstack([pl.Series("duration_ns", model.recorded[end] - model.recorded[begin])])
    return Recorded(rows[list(COLUMNS)], begin, end, blocks, idle[blocks], known & explained)


def _idle_before(timeline: Timeline, model: Model, gpu: int) -> Ints:
    """Return the idle before each block that its operations ended on a GPU, by class; idle inside it is its own."""
    mine = _pieces_before(timeline, model, gpu)
    pieces = mine.select_seq("idle_class", "end_ns", idle_ns=pl.col("end_ns") - pl.col("start_ns"))
    rows = by_block(timeline.operations, model.blocks, pieces, timeline.gaps["after_index"][mine["gap_index"]])
    rows = kept(rows, rows["end_ns"] <= model.blocks["start_ns"][rows["block"]])
    result = np.zeros((len(model.blocks), len(IdleClass)), np.int64)
    np.add.at(result, (rows["block"].to_numpy(), rows["idle_class"].to_numpy()), rows["idle_ns"].to_numpy())
    return result


def _pieces_before(timeline: Timeline, model: Model, gpu: int) -> pl.DataFrame:
    """Return the pieces of the gaps that end while there are blocks: of a long capture few."""
    pieces, gaps = on_gpu(timeline.pieces, gpu), on_gpu(timeline.gaps, gpu)["end_ns"].to_numpy()
    if pieces.is_empty() or model.blocks.is_empty():
        return pieces.clear()
    low = np.searchsorted(gaps, model.blocks["start_ns"].to_numpy().min())
    high = np.searchsorted(gaps, model.blocks["end_ns"].to_numpy().max(), side="right")
    number = pieces["gap_index"].to_numpy()
    first, last = np.searchsorted(number, (number[0] + np.array((low, high))).astype(number.dtype))
    return pieces[int(first) : int(last)]


def ledger_of(model: Model, recorded: Recorded, times: Ints, removed: RemoveTracing) -> pl.DataFrame:
    """Return the ledger of the replayed steps, one row a step with `COLUMNS`; each row sums exactly.

    Args:
        model: the recorded run.
        recorded: the steps as recorded.
        times: when each event comes now.
        removed: what was taken off the blocks.
    """
    raw = recorded.rows
    duration = np.maximum(times[recorded.end] - times[recorded.begin], 0).astype(float)
    columns: dict[str, Floats] = {"duration_ns": duration}
    ended = recorded.idle_ns.astype(float)
    before = _per_step(recorded, model.recorded, *_idle_at(model, recorded, model.recorded, ended))
    ended[:, int(IdleClass.PROFILER)] = 0.0
    after = _per_step(recorded, times, *_idle_at(model, recorded, times, ended))
    for idle_class, name in zip(IdleClass, IDLE_COLUMNS, strict=True):
        if idle_class is not IdleClass.INTRA_GRAPH:
            columns[name] = np.maximum(_known(raw, name) + (after - before)[:, int(idle_class)], 0.0)
    _fit(columns, duration)
    outside = sum((values for name, values in columns.items() if name != "duration_ns"), np.zeros(len(raw)))
    columns |= _inside(recorded, duration - outside, recorded.per_step(model, removed.gaps_ns))
    filled = pl.DataFrame({name: pl.Series(columns[name]).cast(pl.Int64) for name in COLUMNS})
    unknown = [name for name in COLUMNS if raw[name].null_count()]
    return filled.with_columns(pl.lit(None, pl.Int64).alias(name) for name in unknown)


def _idle_at(model: Model, recorded: Recorded, times: Ints, ended: Floats) -> tuple[Ints, Floats]:
    """Return when the idle before each block begins, and its classes: by its launch call where that explains it.

    Idle of another kind has the classes of what the block ended when recorded, in proportion; of the profiler's own
    time none is left once its cost is taken away. The recorded times are asked too, so that what this can't tell of
    blocks that begin together, or of work that takes no time, cancels out.

    Args:
        model: the recorded run.
        recorded: the steps as recorded.
        times: when each event comes.
        ended: the idle that each block ended, by class; changes nothing where the launch call explains it.
    """
    blocks = model.blocks[recorded.blocks]
    begin, end = (times[blocks[side].to_numpy()] for side in ("begin", "end"))
    reach = _reach_before(begin, end, recorded.idle_ns.sum(axis=1))
    length = np.maximum(begin - reach, 0).astype(float)
    whole = ended.sum(axis=1)
    idle = ended * np.divide(length, whole, out=np.zeros(len(length)), where=whole > 0)[:, None]
    mine = np.flatnonzero(recorded.launched)
    call = blocks["call"][mine].cast(pl.Int64).to_numpy()
    begun, returned = (times[model.calls[side].to_numpy()[call]] - reach[mine] for side in ("begin", "end"))
    late = np.clip(begun, 0, length[mine])
    until = np.clip(returned, late, length[mine])
    idle[mine] = 0.0
    for part, values in zip(EXPLAINED, (late, until - late, length[mine] - until), strict=True):
        idle[mine, int(part)] = values
    return reach, idle


def _reach_before(begin: Ints, end: Ints, idle: Ints) -> Ints:
    """Return until when the GPU is busy before each block; of those begun together, the one that ended idle is first.

    What takes no time makes nothing busy, and ends no idle.
    """
    reach = begin.copy()
    lasting = np.flatnonzero(end > begin)
    order = lasting[np.lexsort((end[lasting], -idle[lasting], begin[lasting]))]
    reach[order[1:]] = np.maximum.accumulate(end[order])[:-1]
    return reach


def _per_step(recorded: Recorded, times: Ints, at: Ints, values: Floats) -> Floats:
    """Add up what begins in each step."""
    step = held_by(at, np.maximum.accumulate(times[recorded.begin]), times[recorded.end])
    total = np.zeros((len(recorded.begin) + 1, values.shape[1]))
    np.add.at(total, step + 1, values)
    return total[1:]


def _known(raw: pl.DataFrame, name: str) -> Floats:
    known: Floats = np.nan_to_num(raw[name].to_numpy().astype(float))
    return known


def _fit(columns: dict[str, Floats], duration: Floats) -> None:
    """Shorten the idle of steps that hold less than it, and round it."""
    left = duration
    for name in COLUMNS[1:]:
        if name in columns:
            columns[name] = np.clip(np.rint(columns[name]), 0.0, np.maximum(left, 0.0))
            left = left - columns[name]


def _inside(recorded: Recorded, inner: Floats, gaps: Floats) -> dict[str, Floats]:
    """Split what is left of each step into busy time and intra-graph gaps, which lose what was taken off them."""
    intra = np.clip(np.rint(_known(recorded.rows, "intra_graph_ns") - gaps), 0.0, inner)
    return {"busy_ns": inner - intra, "intra_graph_ns": intra}
