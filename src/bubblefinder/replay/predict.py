"""How long the step would be after some changes, and what bounds it then."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from bubblefinder.intervals import median
from bubblefinder.replay.bound import Bound
from bubblefinder.replay.changes import CaptureEager, HostSpeed, RemoveWaits
from bubblefinder.replay.critical_path import bound_of, decisive_edges
from bubblefinder.replay.hosts import RECORDED, edited_on, hosts_of
from bubblefinder.replay.run import replay
from bubblefinder.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator, Sequence

    from numpy.typing import NDArray

    from bubblefinder.intervals import Ints
    from bubblefinder.replay.changes import Change, EditedGraph
    from bubblefinder.replay.model import Host, Model, TimedSteps
    from bubblefinder.timeline.rank import Rank

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Prediction:
    """The median decode step of one process on one GPU after some changes.

    Attributes:
        gpu: physical GPU.
        process: process key.
        runs: on each of the hosts that `hosts_of` gives, the step without the changes and with them, never longer; the
            first is the recorded host.
        untraced: whether hosts without the profiler are among them.
        bound: what bounds the step afterwards, on the recorded one.
        notes: what the prediction rests on that the capture doesn't show.
        corrected_range_ns: between which ends the step lies by the correction for the profiler, if that alone is taken
            away: a report gives the same, which allows for a slower host as well. Null for other changes.
    """

    gpu: int
    process: int
    runs: tuple[tuple[int, int], ...]
    bound: Bound
    untraced: bool = False
    notes: tuple[str, ...] = ()
    corrected_range_ns: tuple[int, int] | None = None

    @property
    def now_ns(self) -> int:
        """The recorded median step."""
        return self.runs[0][0]

    @property
    def step_ns(self) -> int:
        """The predicted one."""
        return self.runs[0][1]

    @property
    def recoverable_ns(self) -> int:
        """What the median step loses."""
        return self.now_ns - self.step_ns

    @property
    def range_ns(self) -> tuple[int, int]:
        """The shortest and the longest step that the changes leave on any of the hosts, never longer than now."""
        if self.corrected_range_ns is not None:
            return self.corrected_range_ns
        steps = [min(then, self.now_ns) for _, then in self.runs]
        return min(steps), max(steps)

    def no_longer_than(self, other: Prediction) -> Prediction:
        """Return it with no step longer than another's on the same host: what is taken away never costs time."""
        steps = zip(self.runs, other.runs, strict=True)
        return replace(self, runs=tuple((now, min(then, least)) for (now, then), (_, least) in steps))

    @property
    def gain_range_ns(self) -> tuple[int, int]:
        """The least and the most that the changes give on any one of the hosts."""
        gains = [max(now - then, 0) for now, then in self.runs]
        return min(gains), max(gains)


_BY_VALUE: Final = (RemoveWaits, HostSpeed, CaptureEager)
"""Changes that are small and equal where they mean the same: what they give is remembered, since stages and ranks ask
for the same ones."""


def _once(
    model: Model, changes: Sequence[Change], ask: Callable[..., dict[Rank, T]], *asked: Hashable
) -> dict[Rank, T]:
    if not all(isinstance(change, _BY_VALUE) for change in changes):
        return ask(*asked, model, changes)
    return model.once((ask, *asked, *changes), lambda: ask(*asked, model, changes))


def predict(model: Model, changes: Sequence[Change], ranks: Collection[Rank] | None = None) -> dict[Rank, Prediction]:
    """Return the step of every process and GPU with decode steps, or of these, after all the changes together."""
    return _once(model, changes, _predicted) if ranks is None else _predicted(model, changes, ranks)


def _predicted(
    model: Model, changes: Sequence[Change], ranks: Collection[Rank] | None = None
) -> dict[Rank, Prediction]:
    edited = edited_on(RECORDED, model, changes)
    times = replay(model, edited.lag, edited.keep)
    notes, decisive = (*edited.notes, *_notes(model)), decisive_edges(edited, times)
    others = [(steps_on(host, model, []), steps_on(host, model, changes)) for host in hosts_of(model, changes)[1:]]
    recorded = _medians(model, edited, times)
    found = {}
    for rank in model.steps if ranks is None else ranks:
        steps = model.steps[rank]
        now = _step(steps, model.recorded)
        runs = [(now, recorded[rank]), *((before[rank], after[rank]) for before, after in others)]
        found[rank] = Prediction(
            gpu=rank.gpu,
            process=rank.process,
            runs=tuple((before, min(before, after)) for before, after in runs),
            bound=Bound.GPU if recorded[rank] > _step(steps, times) else bound_of(decisive, steps),
            untraced=bool(model.untraced),
            notes=notes,
        )
    return found


def steps_after(model: Model, changes: Sequence[Change]) -> dict[Rank, int]:
    """Return only the predicted steps."""
    return {
        rank: min(step, _step(model.steps[rank], model.recorded))
        for rank, step in steps_on(RECORDED, model, changes).items()
    }


def steps_on(host: Host, model: Model, changes: Sequence[Change]) -> dict[Rank, int]:
    """Return the median steps after changes on a host."""
    return _once(model, changes, _steps_on, host)


def _steps_on(host: Host, model: Model, changes: Sequence[Change]) -> dict[Rank, int]:
    edited = edited_on(host, model, changes)
    return _medians(model, edited, replay(model, edited.lag, edited.keep), shared=host.speed >= 1)


def _medians(model: Model, edited: EditedGraph, times: Ints, *, shared: bool = True) -> dict[Rank, int]:
    least = _least(model, edited, shared=shared)
    return {rank: _step(steps, times, least) for rank, steps in model.steps.items()}


def _step(steps: TimedSteps, times: Ints, least: Ints | None = None) -> int:
    """Return the median step, none of which is shorter than its `least`."""
    length = times[steps.end] - times[steps.begin]
    return _median(length if least is None else np.maximum(length, least[steps.rows]))


def _least(model: Model, edited: EditedGraph, *, shared: bool) -> Ints:
    """Return how long the GPU works in each step after the changes.

    No more of its work overlaps than was recorded: streams that had the GPU in turns would share it. Work of streams
    that ran beside others for most of it may do so for the rest, unless nothing is to be `shared` but what was, as on a
    slower host. Nothing is said of ranks that wait for each other at work.
    """
    occupied = model.windows["occupied_ns"].to_numpy() - (model.windows["alone_ns"].to_numpy() if shared else 0)
    least: Ints = np.maximum(occupied - model.less_work(edited.lag), 0)
    least[model.work.meets] = 0
    return least


def _median(values: NDArray[np.int64]) -> int:
    return round(median(values))


def _notes(model: Model) -> Iterator[str]:
    if model.guesses:
        orders = plural(model.guesses, "order between streams or waits is", "orders between streams or waits are")
        yield f"{orders} told by the times seen alone"
    if model.left_out:
        yield f"{len(model.windows):,} of {len(model.windows) + model.left_out:,} steps are replayed, from the middle"
