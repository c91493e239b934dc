"""Waits that hold the host one after the other: take one away, and the next one waits instead.

A wait that returns while queued work still runs opens no gap under itself, and yet the host goes on only then; so the
work behind it is late, and a wait further on finds the GPU dry. What such waits cost shows only when all of them go.
The gain of all together is shared out in the order of the step: each gets what it gives when those before it are gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.causes.decode import lanes
from bubblefinder.causes.recurring import recurring_groups
from bubblefinder.causes.site_facts import facts_of_sites
from bubblefinder.replay.changes import HostSpeed, RemoveWaits
from bubblefinder.replay.handing_on import blocked, moved_to, preparing_of
from bubblefinder.replay.predict import predict, steps_after
from bubblefinder.replay.untraced import without_tracing
from bubblefinder.timeline.rank import Rank

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bubblefinder.causes.decode import RankSteps
    from bubblefinder.causes.facts import SiteFacts
    from bubblefinder.causes.model import Causes
    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.model import Model
    from bubblefinder.replay.predict import Prediction
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline

LEAST: Final = 0.005
"""A wait that gives less of the step, alone or with the others gone, is no link."""
WORTHWHILE: Final = 0.01
"""Waits that together give less of the step are no chain."""
LEADING: Final = 0.5
"""A wait that gives so much of what the best one gives by itself may lead the chain."""
HALF_THE_WORK: Final = HostSpeed(2.0)


@dataclass(frozen=True, slots=True)
class Link:
    """One wait of a chain.

    Attributes:
        site: what is known of it.
        alone: the step without it.
        in_turn: the step without the links up to it, where those before it are gone already; what these give sums to
            what all give.
        moves_to: position of the link that waits in its place when it alone is gone, null if none does.
    """

    site: SiteFacts
    alone: Prediction
    in_turn: Prediction
    moves_to: int | None


@dataclass(frozen=True, slots=True)
class WaitChain:
    """The waits of a rank's launching thread that hold it one after the other, in the order of the step.

    Attributes:
        links: the first is the one that gives most by itself.
        preparing_ns: how long the host works from the first one's return until it is ahead of the GPU or waits in it
            again: to the begin of the last launch call for which the GPU waited, a median.
        idle_ns: for how much of that the GPU waited, a median; the rest was covered by work.
        joint: the step without any of them.
        half_work: the step with them and a host that needs half the time for its own work.
        both: the step with neither the waits nor that half.
        untraced_ns: the shortest and the longest step with neither the waits nor the profiler; None if nothing is
            known of what that costs.
    """

    links: tuple[Link, ...]
    preparing_ns: int
    idle_ns: int
    joint: Prediction
    half_work: Prediction
    both: Prediction
    untraced_ns: tuple[int, int] | None


def wait_chains(
    timeline: Timeline, steps: Steps, causes: Causes, model: Model, late: frozenset[Rank]
) -> dict[Rank, WaitChain]:
    """Return the chain of each rank whose GPU idles for a late host, where there is one."""
    timed = set(Rank.in_rows(model.windows))
    found: dict[Rank, WaitChain] = {}
    for mine in lanes(timeline, steps, causes):
        if mine.rank in timed & late and (chain := _chain(timeline, causes, model, mine)):
            found[mine.rank] = chain
    return found


def _chain(timeline: Timeline, causes: Causes, model: Model, mine: RankSteps) -> WaitChain | None:
    rank = mine.rank
    gains = _Gains(causes, model, rank)
    ordered = _linked(causes, model, rank, recurring_groups(causes, mine), gains)
    if len(ordered) < 2:  # noqa: PLR2004 - one wait is no chain
        return None
    removed = RemoveWaits(on_every_rank(causes, (site for part in ordered for site in part)))
    gone, links, held = frozenset[int](), list[Link](), blocked(model, rank)
    before = predict(model, [])[rank]
    for part in ordered:
        gone |= set(part)
        alone, so_far = (RemoveWaits(on_every_rank(causes, sites)) for sites in (part, gone))
        next_one = moved_to(ordered, part, held, blocked(model, rank, alone))
        facts = facts_of_sites(timeline, causes, mine, part)
        then = predict(model, [so_far])[rank].no_longer_than(before)
        links.append(Link(facts, predict(model, [alone])[rank], _in_turn(before, then), next_one))
        before = then
    preparing, idle = preparing_of(model, rank, ordered[0])
    return WaitChain(
        links=tuple(links),
        preparing_ns=preparing,
        idle_ns=idle,
        joint=predict(model, [removed])[rank],
        half_work=predict(model, [HALF_THE_WORK])[rank],
        both=predict(model, [removed, HALF_THE_WORK])[rank],
        untraced_ns=without_tracing(timeline, model, rank, [removed]),
    )


def _in_turn(before: Prediction, then: Prediction) -> Prediction:
    """Return a prediction on top of another, on each of the hosts."""
    steps = zip(before.runs, then.runs, strict=True)
    return replace(then, runs=tuple((earlier, later) for (_, earlier), (_, later) in steps))


def _linked(
    causes: Causes, model: Model, rank: Rank, parts: list[tuple[int, ...]], now: _Gains
) -> list[tuple[int, ...]]:
    """Return the parts that hold the host, alone or with the others gone, as recorded or if it were twice as fast.

    The first is the one that holds the host longest of those that give about as much as any by itself. A traced host
    is slower than it is, and a slow host hides what holds it.
    """
    speeds = (now, _Gains(causes, model, rank, HALF_THE_WORK))
    every = frozenset(site for part in parts for site in part)
    if len(parts) < 2 or all(gains.of(every) < WORTHWHILE * gains.now for gains in speeds):  # noqa: PLR2004
        return []

    def holds(part: tuple[int, ...]) -> bool:
        return any(
            gains.of(every) - gains.of(every - set(part)) >= LEAST * gains.now
            or gains.of(frozenset(part)) >= LEAST * gains.now
            for gains in speeds
        )

    linked = [part for part in parts if holds(part)]
    blocked_ns = dict(causes.waits.group_by("site").agg(pl.col("blocked_ns").sum()).iter_rows())
    own = [now.of(frozenset(part)) for part in linked]
    leading = [number for number, gain in enumerate(own) if gain >= LEADING * max(own)]
    first = max(leading, key=lambda number: sum(blocked_ns.get(site, 0) for site in linked[number]), default=0)
    return linked[first:] + linked[:first]


class _Gains:
    """What the median step of a rank loses without some sites, after other changes; each set is replayed once."""

    def __init__(self, causes: Causes, model: Model, rank: Rank, *others: Change) -> None:
        self._now = cache(lambda: steps_after(model, others)[rank])
        self._replayed = cache(
            lambda sites: steps_after(model, [RemoveWaits(on_every_rank(causes, sites)), *others])[rank]
        )

    @property
    def now(self) -> int:
        return self._now()

    def of(self, sites: frozenset[int]) -> int:
        return self.now - self._replayed(sites) if sites else 0


def on_every_rank(causes: Causes, sites: Iterable[int]) -> frozenset[int]:
    """Return some sites and the same of other ranks."""
    return frozenset[int]().union(*(causes.on_every_rank[site] for site in sites))
