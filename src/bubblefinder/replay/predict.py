"""How long the step would be after some changes, and what bounds it then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.replay.changes import HostSpeed, RemoveTracing, edit
from bubblefinder.replay.critical_path import Bound, bound_of
from bubblefinder.replay.model import EdgeKind
from bubblefinder.replay.run import replay
from bubblefinder.timeline.rank import Rank
from bubblefinder.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import polars as pl
    from numpy.typing import NDArray

    from bubblefinder.intervals import Ints
    from bubblefinder.replay.changes import Change, EditedGraph
    from bubblefinder.replay.model import Model

HOST_NOISE: Final = 0.125
"""How far the host work of two captures of one program lies from the middle: five captures spread over a quarter."""
_SIGMA: Final = 1.4826
"""Standard deviation over median absolute deviation, of a normal distribution."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The median decode step of one process on one GPU after some changes.

    Attributes:
        gpu: physical GPU.
        process: process key.
        now_ns: the recorded median step.
        step_ns: the predicted one, never longer. The host is taken to be slower than recorded by as
            much as its work varies from step to step, so that noise isn't promised as a gain.
        low_ns: the step with a host as fast as another capture may show it.
        high_ns: with one as slow, never longer than now.
        bound: what bounds the step afterwards.
        notes: what the prediction rests on that the capture doesn't show.
    """

    gpu: int
    process: int
    now_ns: int
    step_ns: int
    low_ns: int
    high_ns: int
    bound: Bound
    notes: tuple[str, ...] = ()

    @property
    def recoverable_ns(self) -> int:
        """What the median step loses."""
        return self.now_ns - self.step_ns


def predict(model: Model, changes: Sequence[Change]) -> dict[Rank, Prediction]:
    """Return the step of every process and GPU with decode steps after all the changes together."""
    edited, times = _cautious(model, changes)
    best, worst = _extreme(model, changes, 1 + HOST_NOISE), _extreme(model, changes, 1 - HOST_NOISE)
    notes = (*edited.notes, *_notes(model))
    found = {}
    for rank, windows in _windows(model).items():
        least = _least(model, edited, windows)
        now, step, low, high = (_step(windows, moved, least) for moved in (model.recorded, times, best, worst))
        found[rank] = Prediction(
            gpu=rank.gpu,
            process=rank.process,
            now_ns=now,
            step_ns=min(step, now),
            low_ns=min(low, step, now),
            high_ns=min(max(high, step), now),
            bound=Bound.GPU if step > _step(windows, times) else _bound(edited, times, windows),
            notes=notes,
        )
    return found


def steps_after(model: Model, changes: Sequence[Change]) -> dict[Rank, int]:
    """Return only the predicted steps."""
    edited, times = _cautious(model, changes)
    return {
        rank: min(_step(windows, times, _least(model, edited, windows)), _step(windows, model.recorded))
        for rank, windows in _windows(model).items()
    }


def _windows(model: Model) -> dict[Rank, pl.DataFrame]:
    parts = model.windows.partition_by("gpu", "process", as_dict=True, maintain_order=True)
    return {Rank(int(gpu), int(process)): windows for (gpu, process), windows in parts.items()}


def _cautious(model: Model, changes: Sequence[Change]) -> tuple[EditedGraph, Ints]:
    """Replay the changes with the host as slow as its own variation allows.

    Unchanged, or only without the profiler, nothing is promised that noise could take back.
    """
    cures = [change for change in changes if not isinstance(change, RemoveTracing)]
    caution = host_spread(model) if cures else 0.0
    edited = edit(model, [*changes, HostSpeed(1 / (1 + caution))])
    return edited, replay(model, edited.lag, edited.keep)


def host_spread(model: Model) -> float:
    """Return how much the host's work varies from step to step: a standard deviation over the median, by medians.

    The steadiest process counts, since the others may just wait for it.
    """
    host = np.isin(model.edges.kind, (EdgeKind.SEGMENT, EdgeKind.CALL))
    node, work = model.edges.target[host], model.edges.lag[host]
    process = model.calls["process"].to_numpy()[model.edges.owner[host]]
    spreads = []
    for rank, windows in _windows(model).items():
        mine = process == rank.process
        edges = np.append(windows["begin"].to_numpy(), windows["end"].to_numpy()[-1])
        step = np.searchsorted(edges, node[mine], side="right") - 1
        inside = (step >= 0) & (step < len(windows))
        sums = np.bincount(step[inside], weights=work[mine][inside], minlength=len(windows))
        middle = float(np.median(sums))
        spreads.append(_SIGMA * float(np.median(np.abs(sums - middle))) / middle if middle else 0.0)
    return min(spreads, default=0.0)


def _extreme(model: Model, changes: Sequence[Change], speed: float) -> Ints:
    """Return the nodes with a host of another speed, and the profiler's costs at that end of their range.

    With the fast one, what only the order seen tells is dropped.
    """
    ends = [
        change.ends[speed < 1] if isinstance(change, RemoveTracing) and change.ends else change for change in changes
    ]
    edited: EditedGraph = edit(model, [*ends, HostSpeed(speed)])
    if speed > 1 and changes:
        edited.keep &= model.edges.kind != EdgeKind.SEEN
    return replay(model, edited.lag, edited.keep)


def _step(windows: pl.DataFrame, times: Ints, least: Ints | int = 0) -> int:
    """Return the median step, none of which is shorter than its `least`."""
    length = times[windows["end"].to_numpy()] - times[windows["begin"].to_numpy()]
    return _median(np.maximum(length, least))


def _least(model: Model, edited: EditedGraph, windows: pl.DataFrame) -> Ints:
    """Return how long the GPU works in each step after the changes, if no more of its work overlaps than was recorded.

    Streams that had the GPU in turns would share it. Nothing is said of ranks that wait for each other at work.
    """
    edges = np.flatnonzero(np.isin(model.edges.kind, (EdgeKind.WORK, EdgeKind.MEET)))
    edges = edges[model.blocks["gpu"].to_numpy()[model.edges.owner[edges]] == windows["gpu"][0]]
    if (model.edges.kind[edges] == EdgeKind.MEET).any():
        return np.zeros(len(windows), np.int64)
    begins, ends = (model.recorded[windows[side].to_numpy()] for side in ("begin", "end"))
    starts = model.blocks["start_ns"].to_numpy()[model.edges.owner[edges]]
    step = np.searchsorted(begins, starts, side="right") - 1
    inside = (step >= 0) & (starts < ends[np.maximum(step, 0)])
    taken = np.bincount(step[inside], weights=(model.edges.lag - edited.lag)[edges][inside], minlength=len(windows))
    least: Ints = np.maximum(windows["busy_ns"].to_numpy() - taken.astype(np.int64), 0)
    return least


def _median(values: NDArray[np.int64]) -> int:
    return round(float(np.median(values)))


def _bound(edited: EditedGraph, times: Ints, windows: pl.DataFrame) -> Bound:
    return bound_of(edited, times, int(windows["begin"][0]), int(windows["end"][-1]), len(windows))


def _notes(model: Model) -> Iterator[str]:
    if model.guesses:
        orders = plural(model.guesses, "order between streams or waits is", "orders between streams or waits are")
        yield f"{orders} told by the times seen alone"
    if model.left_out:
        yield f"{len(model.windows):,} of {len(model.windows) + model.left_out:,} steps are replayed, from the middle"
