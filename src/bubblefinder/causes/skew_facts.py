"""Where ranks wait for each other: which one comes late to a collective, or to a replay that all leave together."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import polars as pl

from bubblefinder.causes.collectives import find_collectives, find_joint_replays
from bubblefinder.causes.decode import operation_rows, p50
from bubblefinder.causes.step_parts import SkewFacts
from bubblefinder.lookup import where
from bubblefinder.timeline.model import LATE
from bubblefinder.trace.model import GRAPH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.causes.decode import RankSteps
    from bubblefinder.causes.model import Causes
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline


class Met(NamedTuple):
    """Where ranks meet, see `causes.collectives`: in collectives, or in replays that were recorded as one block.

    Attributes:
        collectives: of all ranks.
        late_in_collectives: those of the rank that came last to each, by time, with the role of their replay, the rank
            that waited longest (`waiting_gpu`) and how much longer (`skew`).
        late_in_replays: the same of replays.
    """

    collectives: pl.DataFrame
    late_in_collectives: pl.DataFrame
    late_in_replays: pl.DataFrame


def find_met(timeline: Timeline, steps: Steps, causes: Causes) -> Met:
    """Return where the ranks of a capture meet, and who came last."""
    met = late = find_collectives(timeline)
    if len(met):
        roles = causes.submitted[["replay_index", "gpu", "role"]].drop_nulls()
        late = _late(met.join(roles, on=["replay_index", "gpu"], how="left"))
    replays = find_joint_replays(timeline, steps.replays["role"])
    return Met(met, late, _late(_with_rows(timeline, replays)) if len(replays) else replays)


def skew_facts(timeline: Timeline, lane: RankSteps, every: list[RankSteps], met: Met) -> Iterator[SkewFacts]:
    """Yield what other ranks wait in for this one: its own collectives, or replays, are the shortest there."""
    if len(met.late_in_collectives):
        late = lane.rows_of(met.late_in_collectives)
        for (name, role), same in late.partition_by("name", "role", as_dict=True, maintain_order=True).items():
            yield _skew(timeline, lane, every, same, str(timeline.trace.names.get(name, "?")), role)
    if len(met.late_in_replays):
        late = lane.rows_of(met.late_in_replays)
        for (role,), same in late.partition_by("role", as_dict=True, maintain_order=True).items():
            yield _skew(timeline, lane, every, same, None, role)


def _late(met: pl.DataFrame) -> pl.DataFrame:
    """Return what the rank did that came last each time, with the rank that waited longest there and how long."""
    met = met.with_columns(length=pl.col("end_ns") - pl.col("start_ns"))
    longest = met.sort("length", descending=True).unique("collective", keep="first", maintain_order=True)
    shortest = met.sort("length").unique("collective", keep="first", maintain_order=True)
    waiting = longest.select_seq("collective", waiting_gpu="gpu", longest="length")
    pairs = met.join(shortest[["collective", "gpu"]], on=["collective", "gpu"]).join(waiting, on="collective")
    return pairs.with_columns(skew=pl.col("longest") - pl.col("length")).sort("start_ns")


def _with_rows(timeline: Timeline, replays: pl.DataFrame) -> pl.DataFrame:
    """Return replays with the position of the operation that stands for each."""
    rows = timeline.operations[["kind", "replay_index"]].with_row_index("op_index")
    blocks = rows.pipe(where, (pl.col("kind") == GRAPH) & pl.col("replay_index").is_not_null())
    return replays.join(blocks[["op_index", "replay_index"]], on="replay_index")


def _skew(
    timeline: Timeline, lane: RankSteps, every: list[RankSteps], pairs: pl.DataFrame, name: str | None, role: str | None
) -> SkewFacts:
    waiting = int(pairs["waiting_gpu"].mode().sort()[0])
    skew = lane.per_step(lane.windows(pairs["start_ns"].to_numpy()), pairs["skew"].to_numpy())
    rank = next((other for other in every if other.gpu == waiting), lane)
    return SkewFacts(
        gpu=lane.gpu,
        process=lane.process,
        collective=name,
        inside=name is None,
        role=role,
        waiting_gpu=waiting,
        skew_p50_ns=p50(skew),
        skew_share=rank.share(skew.sum()),
        host_more_p50_ns=_host_more(lane, rank),
        evidence=operation_rows(timeline, pairs.sort("skew", descending=True)["op_index"].head(20)),
    )


def _host_more(late: RankSteps, waiting: RankSteps) -> float | None:
    """Return how much longer a late rank's GPU idles for its host in a step than the other's; null if it doesn't."""
    mine, theirs = (p50(lane.idle(np.isin(lane.pieces.idle_class, LATE))) for lane in (late, waiting))
    more = (mine or 0.0) - (theirs or 0.0)
    return more if more > 0 else None
