"""What collectives cost a rank: their own work, told apart from the time spent waiting for other ranks in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from bubblefinder.causes.collective_names import is_collective
from bubblefinder.intervals import begin_and_end, overlap_with, union_of
from bubblefinder.lookup import on_gpu
from bubblefinder.units import kernel_name

if TYPE_CHECKING:
    from bubblefinder.causes.decode import RankSteps
    from bubblefinder.intervals import Ints
    from bubblefinder.timeline.model import Timeline

_MOST_NAMED: Final = 4
_FOLLOWED: Final = 0.9
"""Ranks don't begin and end a capture together: some collectives lack their partners at its edges."""


def collective_costs(timeline: Timeline, lane: RankSteps, met: pl.DataFrame) -> dict[str, Any]:
    """Return the shares of the decode time that collectives run alone, as fields of `StepFacts`.

    A collective ends on all ranks together, so that the shortest over the ranks is its own work and the rest is waiting
    for the last. What runs beside other work of the GPU costs nothing by itself. One that can't be followed to the
    other ranks may be either: then only the sum of both is told.

    Args:
        timeline: the timeline.
        lane: whose steps.
        met: from `collectives.find_collectives`.
    """
    names = {name: kernel_name(text) for name, text in timeline.trace.names.items() if is_collective(text)}
    if not names:
        return {}
    rows = timeline.operations[["gpu", "process", "name", "start_ns", "end_ns"]].with_row_index("op_index")
    rows = on_gpu(rows, lane.gpu)
    mine = (pl.col("process") == lane.process) & pl.col("name").is_in(list(names))
    window = lane.windows(rows["start_ns"].to_numpy())
    stepwise = pl.Series((window >= 0) & lane.decode[window])
    kernels, others = rows.filter(mine & stepwise), rows.filter(~mine.fill_null(value=False))
    if kernels.is_empty():
        return {}
    starts, ends = begin_and_end(kernels)
    beside = union_of(others)
    alone = ends - starts - overlap_with(starts, ends, beside)
    shortest = met.select("op_index", own=(pl.col("end_ns") - pl.col("start_ns")).min().over("collective"))
    known = kernels.join(shortest, on="op_index", how="left", maintain_order="left")["own"]
    follows = known.is_not_null().to_numpy()
    own = np.minimum(alone, known.fill_null(0).to_numpy())
    told = {"collectives": _costliest(kernels["name"].replace_strict(names, return_dtype=pl.String), alone, lane.steps)}
    if follows.mean() < _FOLLOWED:
        return {**told, "collective_most_share": lane.share(alone.sum())}
    return {
        **told,
        "collective_share": lane.share(own.sum()),
        "collective_wait_share": lane.share((alone - own)[follows].sum()),
    }


def _costliest(names: pl.Series, ns: Ints, steps: int) -> tuple[str, ...]:
    """Return the kernels that take most, each with its number a step: ``name x 2``."""
    each = pl.DataFrame({"name": names, "ns": ns}).group_by("name").agg(pl.len(), pl.col("ns").sum())
    most = each.sort("ns", "name", descending=[True, False]).rows()[:_MOST_NAMED]
    return tuple(f"{name} x {count / steps:.4g}" for name, count, _ in most)
