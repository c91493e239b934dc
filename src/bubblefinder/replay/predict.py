"""How long the step would be after some changes, and what bounds it then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from bubblefinder.intervals import median
from bubblefinder.replay.changes import CaptureEager, HostSpeed, RemoveTracing, RemoveWaits, edit
from bubblefinder.replay.critical_path import Bound, bound_of, decisive_edges
from bubblefinder.replay.model import EdgeKind
from bubblefinder.replay.run import replay
from bubblefinder.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from numpy.typing import NDArray

    from bubblefinder.intervals import Ints
    from bubblefinder.replay.changes import Change, EditedGraph
    from bubblefinder.replay.model import Model, RankSteps
    from bubblefinder.timeline.rank import Rank

T = TypeVar("T")

HOST_NOISE: Final = 0.125
"""How far the host work of two captures of one program lies from the middle: five captures spread over a quarter."""
_MOST_NOISE: Final = 0.5
"""No host is taken to be faster or slower by more, however its work varies."""


def host_noise(model: Model) -> float:
    """Return how far the host's work may lie from the recorded one without the profiler.

    A host whose work varies from step to step shares its cores, with the profiler's own threads as well: beside 24 busy
    processes SGLang's step took 14.6 ms traced and 9.1 untraced, with a deviation of 21 %; alone it is 3 to 7 %.
    """
    return min(max(HOST_NOISE, 2 * model.host_spread), _MOST_NOISE)


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


_BY_VALUE: Final = (RemoveWaits, HostSpeed, CaptureEager)
"""Changes that are small and equal where they mean the same: what they give is remembered, since stages and ranks ask
for the same ones."""


def _once(
    model: Model, ask: Callable[[Model, Sequence[Change]], dict[Rank, T]], changes: Sequence[Change]
) -> dict[Rank, T]:
    if not all(isinstance(change, _BY_VALUE) for change in changes):
        return ask(model, changes)
    if (key := (ask, *changes)) not in model.remembered:
        model.remembered[key] = ask(model, changes)
    found: dict[Rank, T] = model.remembered[key]
    return found


def predict(model: Model, changes: Sequence[Change], ranks: Collection[Rank] | None = None) -> dict[Rank, Prediction]:
    """Return the step of every process and GPU with decode steps, or of these, after all the changes together."""
    return _once(model, _predicted, changes) if ranks is None else _predicted(model, changes, ranks)


def _predicted(
    model: Model, changes: Sequence[Change], ranks: Collection[Rank] | None = None
) -> dict[Rank, Prediction]:
    edited, times = _cautious(model, changes)
    best, worst = _extreme(model, changes, 1 + HOST_NOISE), _extreme(model, changes, 1 - HOST_NOISE)
    notes, decisive = (*edited.notes, *_notes(model)), decisive_edges(edited, times)
    least, most = _least(model, edited), _least(model, edited, shared=False)
    found = {}
    for rank in model.steps if ranks is None else ranks:
        steps = model.steps[rank]
        now, step, low = (_step(steps, moved, least) for moved in (model.recorded, times, best))
        high = _step(steps, worst, most)
        found[rank] = Prediction(
            gpu=rank.gpu,
            process=rank.process,
            now_ns=now,
            step_ns=min(step, now),
            low_ns=min(low, step, now),
            high_ns=min(max(high, step), now),
            bound=Bound.GPU if step > _step(steps, times) else bound_of(decisive, steps),
            notes=notes,
        )
    return found


def steps_after(model: Model, changes: Sequence[Change]) -> dict[Rank, int]:
    """Return only the predicted steps."""
    return _once(model, _steps_after, changes)


def _steps_after(model: Model, changes: Sequence[Change]) -> dict[Rank, int]:
    edited, times = _cautious(model, changes)
    least = _least(model, edited)
    return {rank: min(_step(steps, times, least), _step(steps, model.recorded)) for rank, steps in model.steps.items()}


def steps_at(model: Model, changes: Sequence[Change], speed: float) -> dict[Rank, int]:
    """Return the predicted steps on a host of another speed, with none of the caution with which a gain is promised."""
    edited = edit(model, [*changes, HostSpeed(speed)])
    times, least = replay(model, edited.lag, edited.keep), _least(model, edited)
    return {rank: min(_step(steps, times, least), _step(steps, model.recorded)) for rank, steps in model.steps.items()}


def _cautious(model: Model, changes: Sequence[Change]) -> tuple[EditedGraph, Ints]:
    """Replay the changes with the host as slow as its own variation allows.

    Unchanged, or only without the profiler, nothing is promised that noise could take back.
    """
    cures = [change for change in changes if not isinstance(change, RemoveTracing)]
    caution = model.host_spread if cures else 0.0
    edited = edit(model, [*changes, HostSpeed(1 / (1 + caution))])
    return edited, replay(model, edited.lag, edited.keep)


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


def _step(steps: RankSteps, times: Ints, least: Ints | None = None) -> int:
    """Return the median step, none of which is shorter than its `least`."""
    length = times[steps.end] - times[steps.begin]
    return _median(length if least is None else np.maximum(length, least[steps.rows]))


def _least(model: Model, edited: EditedGraph, *, shared: bool = True) -> Ints:
    """Return how long the GPU works in each step after the changes.

    No more of its work overlaps than was recorded: streams that had the GPU in turns would share it. Work of streams
    that ran beside others for most of it may do so for the rest, unless nothing is to be `shared` but what was. Nothing
    is said of ranks that wait for each other at work.
    """
    work = model.work
    less = (model.edges.lag - edited.lag)[work.edges]
    taken = np.bincount(work.window, weights=less, minlength=len(model.windows))
    occupied = model.windows["occupied_ns"].to_numpy() - (model.windows["alone_ns"].to_numpy() if shared else 0)
    least: Ints = np.maximum(occupied - taken.astype(np.int64), 0)
    least[work.meets] = 0
    return least


def _median(values: NDArray[np.int64]) -> int:
    return round(median(values))


def _notes(model: Model) -> Iterator[str]:
    if model.guesses:
        orders = plural(model.guesses, "order between streams or waits is", "orders between streams or waits are")
        yield f"{orders} told by the times seen alone"
    if model.left_out:
        yield f"{len(model.windows):,} of {len(model.windows) + model.left_out:,} steps are replayed, from the middle"
