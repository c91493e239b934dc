"""How late a rank comes to where ranks meet, and how much of that remains without the profiler."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.intervals import LONG_AGO, NEVER
from bubblefinder.overhead.calibration import likely_costs
from bubblefinder.replay.changes import edit
from bubblefinder.replay.correct import in_a_program
from bubblefinder.replay.model import EdgeKind
from bubblefinder.replay.run import replay
from bubblefinder.replay.tracing import remove_tracing, tracing_of

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.replay.model import Model
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.timeline.rank import Rank


def lateness_left(timeline: Timeline, model: Model) -> dict[Rank, float]:
    """Return by rank which part of what others wait for it surely remains without the profiler, where that is known.

    Tracing slows hosts, and the others then wait for the rank whose host makes more calls. All that a rank is late by
    counts together: without the profiler it may come late to another of the step's collectives.
    """
    meet = model.steps and (model.edges.kind == EdgeKind.MEET).any()
    costs = likely_costs(timeline, min(rank.gpu for rank in model.steps)) if meet else None
    if costs is None:
        return {}
    tracing = tracing_of(timeline, model)
    ends = [edit(model, [remove_tracing(tracing, end)]) for end in (costs.least(), in_a_program(costs.most()))]
    recorded, *left = (
        late_ns(model, at) for at in (model.recorded, *(replay(model, one.lag, one.keep) for one in ends))
    )
    return {rank: min(least[rank] for least in (*left, recorded)) / late for rank, late in recorded.items() if late}


def late_ns(model: Model, times: Ints) -> dict[Rank, int]:
    """Return by rank how long others wait for it in all: from the first arrival where ranks meet to its own, the last.

    Args:
        model: the recorded run.
        times: when each of its nodes comes.
    """
    edges, meet = model.edges, model.edges.kind == EdgeKind.MEET
    work, inside = edges.kind == EdgeKind.WORK, np.full(len(times), -1)
    inside[edges.target[work]] = edges.owner[work]
    source, end, block = (column[meet] for column in (edges.source, edges.target, edges.owner))
    first, last = np.full(len(times), NEVER), np.full(len(times), LONG_AGO)
    np.minimum.at(first, end, times[source])
    np.maximum.at(last, end, times[source])
    own = inside[source] == block
    arrived, end = times[source[own]], end[own]
    late = np.where(arrived == last[end], arrived - first[end], 0)
    rows = model.blocks[["gpu", "process"]][block[own]]
    return {rank: int(late[rank.is_of(rows).to_numpy()].sum()) for rank in model.steps}
