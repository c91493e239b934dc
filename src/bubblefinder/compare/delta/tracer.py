"""What the tracer adds to each capture beyond another: nodes that all begin later, whatever they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.delta.front import SEEN_NS, held_back, later_ns, overlap_changed
from bubblefinder.compare.delta.side import Side, account_of, shared_accounts, side_of
from bubblefinder.compare.metrics import Key, Measure, measure, ranks
from bubblefinder.compare.noise import HOST_BOUND_SHARE, waiting_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.report.model import Report

_STEP: Final = tuple(
    f"step.{name}.{statistic}" for name in ("duration", "intra_graph", "bubble") for statistic in ("mean", "p50", "p95")
)
_INSIDE: Final = frozenset(metric for metric in _STEP if ".intra_graph." in metric)
_ROLE: Final = ("role.duration.p50", "role.intra_graph.p50")
_SHARES: Final = {
    "bubble.share.total": 1.0,
    "bubble.share.intra_graph": 1.0,
    "bubble.share.inter_graph": 0.0,
}
"""Shares of the step's time, and which part of what the tracer adds lies in the time that they are of."""

WORTH: Final = 0.005
"""Of a step; half of what is ever called a difference."""


@dataclass(frozen=True, slots=True)
class Delay:
    """How much later every node of one rank begins in a capture than in that of all where they begin soonest.

    Attributes:
        base_ns: one time a capture of base; head_ns likewise.
        tracers: whether it is the tracer's beyond doubt: no more than tracing was seen to do, and no node began to
            overlap with the one before it, or ceased to.
    """

    base_ns: tuple[float, ...]
    head_ns: tuple[float, ...]
    tracers: bool

    @property
    def later_ns(self) -> float:
        """How much later a node begins on head; negative if sooner."""
        return fmean(self.head_ns) - fmean(self.base_ns)


def delays_of(base: Sequence[Report], head: Sequence[Report]) -> list[Delay]:
    """Return the delay of every rank that all captures have an account of."""
    return [_delay([side_of([one]) for one in known], len(base)) for known in shared_accounts([*base, *head])]


def _delay(sides: Sequence[Side], bases: int) -> Delay:
    later = [0.0, *(later_ns(sides[0], side) for side in sides[1:])]
    soonest = min(later)
    first, most = sides[later.index(soonest)], max(later) - soonest
    moved = [side for side, ns in zip(sides, later, strict=True) if ns > soonest]
    surely = most <= SEEN_NS and not any(overlap_changed(first, side, most) for side in moved)
    ns = tuple(one - soonest for one in later)
    return Delay(ns[:bases], ns[bases:], surely)


def added_by_tracer(side: Sequence[Report], times: Sequence[Sequence[float]]) -> list[dict[Key, float]]:
    """Return by metric what the delays of nodes, by rank and capture, add to each capture, in ns."""
    return [_added(report, [one[number] for one in times]) for number, report in enumerate(side)]


def _added(report: Report, times: Sequence[float]) -> dict[Key, float]:
    added: dict[Key, float] = {}
    for rank, ns in enumerate(times):
        account = account_of(report, rank) if ns else None
        if account is None:
            continue
        side = side_of([account])
        held = held_back(side, ns)
        inside = sum(held.values())
        whole = _of_the_step(inside, side, report)
        added |= {(metric, (("rank", rank),)): inside if metric in _INSIDE else whole for metric in _STEP}
        if rank == 0:
            added |= {(metric, ()): whole for metric in _SHARES}
            for role, more in held.items():
                replays = side.roles[role].replays
                if role and replays:
                    added |= {(metric, (("role", role),)): more / replays for metric in _ROLE}
    return added


def _of_the_step(inside_ns: float, side: Side, report: Report) -> float:
    """Return how much longer a step is for replays that take so much longer.

    As far as the host waits for the GPU: where it doesn't, it sets the pace and the GPU waits for it all the same. One
    that never waits at all is behind the GPU or ahead of it.
    """
    waits = [call.ns for (_, _, waits), call in side.calls.items() if waits]
    if waits:
        return min(inside_ns, sum(waits))
    return inside_ns if waiting_of(report) <= HOST_BOUND_SHARE else 0.0


def traced_as(report: Report, earlier: Sequence[Report]) -> list[dict[Key, float]]:
    """Return what to add to the metrics of each earlier report, each in its unit, had it been traced as this one was.

    Only what is worth a word: nothing where no step would be longer or shorter by more than WORTH, or where in doubt.
    """
    delays = delays_of(earlier, [report]) if earlier else []
    if not delays or not all(delay.tracers for delay in delays):
        return [{} for _ in earlier]
    added = added_by_tracer([*earlier, report], [(*delay.base_ns, *delay.head_ns) for delay in delays])
    *others, mine = (_parts(one, more) for one, more in zip((*earlier, report), added, strict=True))
    least = WORTH * (ranks(report)[0].per_step["duration"].mean or 0.0)
    apart = [{key: mine.get(key, 0.0) - one.get(key, 0.0) for key in mine | one} for one in others]
    return [
        more if any(abs(ns) > least for (name, _), ns in more.items() if name == _STEP[0]) else {} for more in apart
    ]


def _parts(report: Report, added: Mapping[Key, float]) -> dict[Key, float]:
    """Return what of each metric, in its own unit, is the tracer's."""
    parts = {}
    for one in measure(report) if added else ():
        own = without_tracer(one, report, added)
        if one.value is not None and own is not None and own.value is not None and own is not one:
            parts[one.key] = one.value - own.value
    return parts


def without_tracer(one: Measure | None, report: Report, added: Mapping[Key, float]) -> Measure | None:
    """Return a measure without what the tracer adds to it."""
    more = added.get(one.key) if one else None
    if one is None or not more or one.value is None:
        return one
    if one.metric.id in _SHARES:
        step = ranks(report)[0].per_step["duration"].mean or 0.0
        inside = _SHARES[one.metric.id] * more
        return replace(one, value=(one.value * step - inside) / (step - more) if step > more else None)
    return replace(one, value=one.value - more, samples=tuple(round(v - more) for v in one.samples))
