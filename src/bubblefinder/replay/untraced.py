"""What a step may be without the profiler, where the capture alone can't tell: by what tracing was seen to cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.overhead.calibration import likely_costs
from bubblefinder.overhead.model import Source
from bubblefinder.replay.changes import NEVER_LATE, edit
from bubblefinder.replay.correct import correct, in_a_program
from bubblefinder.replay.hosts import KERNEL_DRIFT, host_noise
from bubblefinder.replay.model import Host
from bubblefinder.replay.predict import steps_after, steps_on
from bubblefinder.replay.tracing import remove_tracing, tracing_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.model import Model
    from bubblefinder.replay.predict import Prediction
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.timeline.rank import Rank

_HOSTS: Final = 5
"""So many untraced hosts are tried, from the slowest to the fastest: what a change gives is most where the host just
keeps up without it, which lies between these."""


def with_untraced(timeline: Timeline, steps: Steps, model: Model, late: Iterable[Rank]) -> Model:
    """Return a run with the hosts that it may have without the profiler, where that can't be told of a late host."""
    for rank in late:
        if correct(timeline, steps, model, steps.decode_of(rank), Source()).untold_ns is not None:
            found = replace(model, untraced=untraced_hosts(timeline, model, rank.gpu))
            found.remembered.update(model.remembered)  # costs and corrections, which are the same on every host
            return found
    return model


def untraced_hosts(timeline: Timeline, model: Model, gpu: int) -> tuple[Host, ...]:
    """Return the hosts that a run may have without the profiler; none where nothing is known of what tracing costs.

    They reach from one slower than recorded, on which tracing cost the least that it was seen to cost, to one as much
    faster on which it cost the most.
    """
    costs = likely_costs(timeline, gpu)
    if costs is None:
        return ()
    tracing, noise = tracing_of(timeline, model), host_noise(model)
    least, most = (
        edit(model, [remove_tracing(tracing, end)]).lag for end in (costs.least(), in_a_program(costs.most()))
    )
    return tuple(
        Host(
            1 + noise * part, 1 - KERNEL_DRIFT * part, np.rint(least + (most - least) * (1 + part) / 2).astype(np.int64)
        )
        for part in np.linspace(-1, 1, _HOSTS).tolist()
    )


def without_tracing(timeline: Timeline, model: Model, rank: Rank, changes: Sequence[Change]) -> tuple[int, int] | None:
    """Return the shortest and longest step of a rank after changes, without the profiler; None if that is unknown."""
    hosts = model.untraced or untraced_hosts(timeline, model, rank.gpu)
    found = [steps_on(host, model, changes)[rank] for host in hosts]
    return (min(found), max(found)) if found else None


def left_without_tracing(timeline: Timeline, model: Model, hosts: Mapping[Rank, Prediction]) -> dict[Rank, float]:
    """Return by rank which part of what a late host costs surely remains without the profiler, where that is known."""
    found = {}
    for rank, never_late in hosts.items():
        costs = likely_costs(timeline, rank.gpu)
        if costs is None:
            continue
        untraced = remove_tracing(tracing_of(timeline, model), in_a_program(costs.most()))
        left = steps_after(model, [untraced])[rank] - steps_after(model, [untraced, NEVER_LATE])[rank]
        if never_late.recoverable_ns > 0:
            found[rank] = min(max(left, 0) / never_late.recoverable_ns, 1.0)
    return found
