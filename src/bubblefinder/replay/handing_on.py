"""How the waits of a chain hand on: which waits in the place of another, and what the host does behind the first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import distinct, held_by
from bubblefinder.lookup import NOWHERE
from bubblefinder.replay.changes import edit
from bubblefinder.replay.model import EdgeKind
from bubblefinder.replay.run import replay

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.replay.changes import RemoveWaits
    from bubblefinder.replay.model import Model
    from bubblefinder.timeline.rank import Rank

    Part = tuple[int, ...]

MOVED: Final = 0.5
"""So much of the time that a wait blocked has to turn up at another one for the wait to have moved there."""


def moved_to(parts: Sequence[Part], part: Part, before: Mapping[int, int], after: Mapping[int, int]) -> int | None:
    """Return the position of the part of a chain that waits in the place of one that is gone, null if none does.

    Args:
        parts: the sites of each wait of the chain.
        part: those of the one that is gone.
        before: from `blocked`, with it.
        after: the same without it.
    """
    more = {
        position: sum(after.get(site, 0) - before.get(site, 0) for site in other)
        for position, other in enumerate(parts)
        if other != part
    }
    next_one = max(more, key=more.__getitem__)
    return next_one if more[next_one] >= MOVED * sum(before.get(site, 0) for site in part) > 0 else None


def blocked(model: Model, rank: Rank, change: RemoveWaits | None = None) -> dict[int, int]:
    """Return how long the waits of each site block a rank's steps in all, as replayed after a change."""
    edited = edit(model, [change] if change else [])
    times = replay(model, edited.lag, edited.keep)
    inside = model.edges.kind == EdgeKind.CALL
    own = np.zeros(len(model.calls), np.int64)
    own[model.edges.owner[inside]] = edited.lag[inside]
    begin, end = (times[model.calls[side].to_numpy()] for side in ("begin", "end"))
    call = model.waits["call"].cast(pl.Int64).to_numpy()
    rows = model.waits.select("site", blocked=pl.Series((end - begin - own)[call]))
    mine = rows.filter(pl.Series(_in_steps(model, rank), dtype=pl.Boolean))
    return dict(mine.group_by("site").agg(pl.col("blocked").sum()).iter_rows())


def _in_steps(model: Model, rank: Rank) -> Bools:
    """Tell which waits of the model begin in a timed step of a rank."""
    windows = model.windows.filter(rank.mine)
    begins, ends = (model.recorded[windows[side].to_numpy()] for side in ("begin", "end"))
    at = model.waits["start_ns"].to_numpy()
    inside: Bools = held_by(at, begins, ends) != NOWHERE
    return inside


def preparing_of(model: Model, rank: Rank, head: Part) -> tuple[int, int]:
    """Return how long the host works behind a wait until it is ahead again, and for how much of it the GPU waits.

    That is from the wait's return to the begin of the last launch call, before the next such wait, that began after the
    end of all work launched before it; medians over the steps, 0 where the host is ahead at once. What the GPU waits
    before the return is no part of either.
    """
    chosen = model.waits["site"].is_in(list(head)).to_numpy() & _in_steps(model, rank)
    calls = distinct(model.waits["call"].cast(pl.Int64).to_numpy()[chosen])
    launch, begun, since = _late(model, rank)
    returned, thread = (model.calls[name].to_numpy() for name in ("end_ns", "thread"))
    lengths, waited = [0], [0]
    for call, end in zip(calls[:-1].tolist(), returned[calls][1:].tolist(), strict=True):
        first, last = np.searchsorted(begun, (returned[call], end))
        mine = np.flatnonzero(thread[launch[first:last]] == thread[call])
        if len(mine):
            until = int(first) + int(mine[-1])
            lengths.append(int(begun[until] - returned[call]))
            idle = begun[first : until + 1] - np.maximum(since[first : until + 1], returned[call])
            waited.append(int(idle.sum()))
    return round(float(np.median(lengths[1:] or lengths))), round(float(np.median(waited[1:] or waited)))


def _late(model: Model, rank: Rank) -> tuple[Ints, Ints, Ints]:
    """Return the launch calls that began after the end of all work launched before: call, begin, and that end."""
    mine = model.blocks.filter((pl.col("gpu") == rank.gpu) & pl.col("call").is_not_null())
    launch = mine["call"].cast(pl.Int64).to_numpy()
    begun = model.calls["start_ns"].to_numpy()[launch]
    order = np.argsort(begun, kind="stable")
    launch, begun, ends = launch[order], begun[order], mine["end_ns"].to_numpy()[order]
    reach = np.concatenate((begun[:1], np.maximum.accumulate(ends)[:-1]))
    late = np.flatnonzero(begun > reach)
    return launch[late], begun[late], reach[late]
