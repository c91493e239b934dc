"""What would shorten the launching thread's step most: each part of its own work, priced by replaying without it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

from bubblefinder.causes.decode import lanes
from bubblefinder.causes.host_time import host_pieces, host_starts, main_thread
from bubblefinder.causes.places import general
from bubblefinder.intervals import NEVER, begin_and_end
from bubblefinder.lookup import kept, taken
from bubblefinder.replay.changes import ShortenHost
from bubblefinder.replay.islands import replayed_at_once
from bubblefinder.replay.predict import predict, steps_after
from bubblefinder.replay.sentences import NOTHING
from bubblefinder.units import code_name, duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.causes.decode import RankSteps
    from bubblefinder.causes.facts import Facts
    from bubblefinder.causes.host_record import HostTime
    from bubblefinder.causes.model import Causes
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.replay.doubt import Doubt
    from bubblefinder.replay.model import Model
    from bubblefinder.replay.predict import Prediction
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.timeline.rank import Rank

MOST: Final = 3
"""Parts that are named."""
HALF: Final = 0.5
"""How much of a phase's or a range's work goes; calls of one kind go altogether."""
LEAST_SHARE: Final = 0.01
"""A part that holds less of the host's step isn't tried, nor a host that is late for less of the step."""


@dataclass(frozen=True, slots=True)
class Shortening:
    """One part of the host's own work, and the step that less of it would give.

    Attributes:
        kind: ``phase`` (from the launch of one role to that of the next), ``range`` (an NVTX range's own time) or
            ``call`` (all calls of one API).
        name: ``verify to draft-extend``, the range, or the API.
        taken: the share of it that is taken away.
        work_ns: what the host spends on it in a step without waiting: the medians that the host's tables show; the
            mean of a part that they don't list.
        then: the step after that.
    """

    kind: str
    name: str
    taken: float
    work_ns: float
    then: Prediction

    def text(self, doubt: Doubt) -> str:
        """Return what to do and what it gives: between which ends, and where no part may be the profiler's a value."""
        how = f"no {self.name} calls" if self.kind == "call" else f"half the work in {code_name(self.name)}"
        low, high = (duration(end) for end in doubt.gains(self.then))
        if not doubt.told:
            gives = f"between {low} and {high}"
        else:
            gives = duration(self.then.recoverable_ns) + (f" ({low} to {high})" if low != high else "")
        return f"{how} ({duration(self.work_ns)} now): {gives} a step"


def late_hosts(facts: Facts) -> frozenset[Rank]:
    """Return the ranks whose GPU idles for a host that is late, with or without a wait to blame."""
    return frozenset(step.rank for step in facts.steps if (step.host_late_share or 0.0) >= LEAST_SHARE)


def shortenings(
    timeline: Timeline, steps: Steps, causes: Causes, model: Model, late: frozenset[Rank], facts: Facts
) -> dict[Rank, tuple[Shortening, ...]]:
    """Return, for each rank whose host is late, the parts of its work that cost the step most, the dearest first."""
    hosts = {step.rank: step.host for step in facts.steps}
    found: dict[Rank, list[_Part]] = {}
    for mine in lanes(timeline, steps, causes):
        thread = main_thread(causes, mine) if mine.rank in model.steps and mine.rank in late else None
        starts = _edges(causes, mine, model, thread)
        if thread is None or len(starts) < 2:  # noqa: PLR2004 - one step has two edges
            continue
        pieces = host_pieces(timeline, causes, mine, thread, starts)
        own = _owned(kept(pieces, ~pieces["waiting"]), model, thread)
        found[mine.rank] = _worthwhile_parts(own, len(starts) - 1)
    dearest = _dearest(model, found)
    return {rank: tuple(_as_listed(part, hosts.get(rank)) for part in parts) for rank, parts in dearest.items()}


def _edges(causes: Causes, mine: RankSteps, model: Model, thread: int | None) -> Ints:
    """Return when a thread began each of its steps, of those that are replayed."""
    starts = np.empty(0, np.int64) if thread is None else host_starts(causes, mine, thread)
    if not len(starts) or not model.left_out:
        return starts
    calls = kept(model.calls, model.calls["thread"] == thread)
    begin, end = begin_and_end(calls)
    replayed: Ints = starts[(starts >= begin.min(initial=NEVER)) & (starts <= end.max(initial=0))]
    return replayed


def _as_listed(part: Shortening, host: HostTime | None) -> Shortening:
    """Return the part with the work that the host's tables show for it."""
    if host is None:
        return part
    listed = {("phase", f"{phase.after_role} to {phase.before_role}"): phase.work_ns for phase in host.phases}
    listed |= {("range", _place(one.nvtx)): one.calls_p50_ns + one.between_p50_ns for one in host.ranges if one.nvtx}
    listed |= {("call", call.api): call.p50_ns for call in host.calls if not call.waits}
    name = _place(part.name) if part.kind == "range" else part.name
    return replace(part, work_ns=listed.get((part.kind, name), part.work_ns))


def _place(name: str) -> str:
    """Return a range's name as `general` has it."""
    return re.sub(r"\d+", "#", name)


def _owned(pieces: pl.DataFrame, model: Model, thread: int) -> pl.DataFrame:
    """Return the pieces with `owner`, the call of the model that each belongs to, and `inside` it or before it."""
    calls = model.calls[["thread", "start_ns", "end_ns", "waits"]].with_row_index("owner")
    mine = kept(calls, calls["thread"] == thread)
    position = np.searchsorted(mine["end_ns"].to_numpy(), pieces["start_ns"].to_numpy(), side="right")
    known = position < len(mine)
    placed, owners = kept(pieces, known), taken(mine[["owner", "start_ns"]], position[known])
    inside = (placed["start_ns"] >= owners["start_ns"]).rename("inside")
    return placed.hstack([owners["owner"].cast(pl.Int64), inside])


class _Part(NamedTuple):
    """A part of a host's work, and the change that takes some of it away."""

    kind: str
    name: str
    taken: float
    work_ns: float
    change: ShortenHost


def _worthwhile_parts(own: pl.DataFrame, steps: int) -> list[_Part]:
    """Return the parts of a host's work that are long enough to be tried."""
    least = LEAST_SHARE * float(own["ns"].sum())
    return [
        _Part(kind, name, share, float(rows["ns"].sum()) / steps, _change(rows, share))
        for kind, name, share, rows in _parts(own)
        if float(rows["ns"].sum()) >= least
    ]


def _dearest(model: Model, found: dict[Rank, list[_Part]]) -> dict[Rank, tuple[Shortening, ...]]:
    """Return the parts of each rank that cost its step most."""
    wanted = {rank: [part.change for part in parts] for rank, parts in found.items()}
    after = replayed_at_once(model, wanted, lambda change, _: steps_after(model, [change]))
    first: dict[Rank, list[_Part]] = {}
    for rank, parts in found.items():
        ordered = sorted(zip(after[rank], parts, strict=True), key=lambda one: (one[0], one[1].name))
        first[rank] = [part for _, part in ordered[:MOST]]
    wanted = {rank: [part.change for part in parts] for rank, parts in first.items()}
    priced = replayed_at_once(model, wanted, lambda change, ranks: predict(model, [change], ranks))
    return {rank: tuple(_worth(parts, priced[rank])) for rank, parts in first.items()}


def _worth(parts: list[_Part], priced: list[Prediction]) -> Iterator[Shortening]:
    for part, then in zip(parts, priced, strict=True):
        if then.recoverable_ns >= NOTHING * then.now_ns:
            yield Shortening(part.kind, part.name, part.taken, part.work_ns, then)


def _parts(own: pl.DataFrame) -> Iterator[tuple[str, str, float, pl.DataFrame]]:
    """Yield kind, name, the share to take, and the pieces of each part of the host's work."""
    between = own.drop_nulls(["after_role", "before_role"]).partition_by("after_role", "before_role")
    for rows in between if len(between) > 1 else ():
        yield "phase", f"{rows['after_role'][0]} to {rows['before_role'][0]}", HALF, rows
    if own["nvtx"].count():
        named = own.drop_nulls("nvtx").with_columns(place=general(pl.col("nvtx")))
        for rows in named.partition_by("place"):
            yield "range", str(rows["nvtx"].mode().sort()[0]), HALF, rows
    for rows in own.drop_nulls("api").partition_by("api"):
        yield "call", str(rows["api"][0]), 1.0, rows


def _change(rows: pl.DataFrame, share: float) -> ShortenHost:
    """Return the change that takes a share of some pieces away; it names the calls concerned, not all of the model."""
    calls, place = np.unique(rows["owner"].to_numpy(), return_inverse=True)

    def less(chosen: Bools) -> Ints:
        sums = np.bincount(place[chosen], weights=rows["ns"].to_numpy()[chosen], minlength=len(calls))
        whole: Ints = np.floor(sums * share).astype(np.int64)
        return whole

    inside = rows["inside"].to_numpy()
    return ShortenHost(calls, less(~inside), less(inside))
