"""What removing each cause would give: the predictions behind `recoverable_ns`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from bubblefinder.causes.facts import SiteFacts, StepFacts
from bubblefinder.causes.step_parts import HoleFacts, QueueFacts, RoleFacts, SkewFacts
from bubblefinder.replay.changes import NEVER_LATE, CaptureEager, ReleaseQueue, RemovePauses, RemoveWaits
from bubblefinder.replay.doubt import SURE, Doubt
from bubblefinder.replay.predict import Prediction, predict
from bubblefinder.replay.wait_chains import on_every_rank

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bubblefinder.causes.facts import Facts
    from bubblefinder.causes.model import Causes
    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.host_parts import Shortening
    from bubblefinder.replay.model import Model
    from bubblefinder.replay.wait_chains import Link, WaitChain
    from bubblefinder.timeline.rank import Rank

_Priced = TypeVar("_Priced", SiteFacts, HoleFacts, QueueFacts, RoleFacts)


@dataclass(frozen=True, slots=True)
class Recoverable:
    """Predictions by what would be cured, each for the process and GPU that it belongs to.

    Attributes:
        sites: by the sites of a finding, as in `SiteFacts.sites`: without their waits, on every rank.
        hosts: by rank: with a host that is never late.
        roles: by rank and role: with an eager phase captured as a graph.
        shorter: by rank: the parts of a late host's work that cost the step most.
        chains: by rank: the waits that hold the host one after the other.
        pauses: by the pauses of a finding, as in `HoleFacts.pauses`: without them.
        queues: by the work held back of a finding, as in `QueueFacts.ended_by`: with nothing to hold it back.
        together: by rank: without the waits, pauses and held queues of all findings.
        left: by rank: which part of what a late host costs surely remains without the profiler.
        lateness: by rank: which part of what other ranks wait for it does.
        untold_ns: how much of the step may be the profiler's, where that can't be told; null where it can.
    """

    sites: dict[tuple[int, ...], Prediction] = field(default_factory=dict)
    hosts: dict[Rank, Prediction] = field(default_factory=dict)
    roles: dict[tuple[Rank, str], Prediction] = field(default_factory=dict)
    pauses: dict[tuple[int, ...], Prediction] = field(default_factory=dict)
    queues: dict[tuple[int, ...], Prediction] = field(default_factory=dict)
    together: dict[Rank, Prediction] = field(default_factory=dict)
    shorter: dict[Rank, tuple[Shortening, ...]] = field(default_factory=dict)
    chains: dict[Rank, WaitChain] = field(default_factory=dict)
    left: dict[Rank, float] = field(default_factory=dict)
    lateness: dict[Rank, float] = field(default_factory=dict)
    untold_ns: int | None = None

    def fill(self, facts: Facts) -> Facts:
        """Return the facts with what is recoverable of each, and with the waits of chains that drained nothing."""
        known = {number for site in facts.sites for number in site.sites}
        links = (link.site for chain in self.chains.values() for link in chain.links)
        held = (site for site in links if known.isdisjoint(site.sites))
        return replace(
            facts,
            sites=tuple(self._filled(site) for site in (*facts.sites, *held)),
            steps=tuple(self._filled_step(step) for step in facts.steps),
        )

    def of(self, subject: object) -> Prediction | None:
        """Return the prediction for one of the facts, None where there is none."""
        if isinstance(subject, SiteFacts):
            link = self.link(subject)
            return self.sites.get(subject.sites, link.alone if link else None)
        if isinstance(subject, StepFacts):
            return _no_more_than(self.hosts.get(subject.rank), subject.host_slow_p50_ns)
        if isinstance(subject, HoleFacts):
            return self.pauses.get(subject.pauses)
        if isinstance(subject, QueueFacts):
            return self.queues.get(subject.ended_by)
        return self.roles.get((subject.rank, subject.role)) if isinstance(subject, RoleFacts) else None

    def link(self, site: SiteFacts) -> Link | None:
        """Return the link of its rank's chain that a site is."""
        chain = self.chains.get(site.rank)
        links = chain.links if chain else ()
        return next((link for link in links if not set(link.site.sites).isdisjoint(site.sites)), None)

    def doubt(self, rank: Rank | None) -> Doubt:
        """Return how much of what a faster host would give a rank may be the profiler's."""
        return Doubt(self.untold_ns, self.left.get(rank, 1.0) if rank else 1.0)

    def _filled(self, site: SiteFacts) -> SiteFacts:
        link = self.link(site)
        return replace(self._priced(site), in_turn_ns=link.in_turn.recoverable_ns if link else None)

    def _priced(self, subject: _Priced) -> _Priced:
        found = self.of(subject)
        return replace(subject, recoverable_ns=found.recoverable_ns) if found else subject

    def _filled_step(self, step: StepFacts) -> StepFacts:
        found = self.of(step)
        doubt = self.doubt(step.rank)
        filled = replace(
            step,
            holes=tuple(map(self._priced, step.holes)),
            queues=tuple(map(self._priced, step.queues)),
            roles=tuple(map(self._priced, step.roles)),
            skews=tuple(_left_of(skew, self.lateness.get(step.rank, 1.0)) for skew in step.skews),
            host_shorten=tuple(part.text(doubt) for part in self.shorter.get(step.rank, ())),
            host_slow_recoverable_ns=found.recoverable_ns if found else None,
        )
        return _left(filled, self.left.get(step.rank, 1.0))


def _no_more_than(found: Prediction | None, most_ns: float | None) -> Prediction | None:
    """Return a prediction that gives back so much at most.

    A host that is never late does away with the idle behind waits too; that is theirs.
    """
    if found is None or most_ns is None or found.recoverable_ns <= most_ns:
        return found
    return replace(found, runs=tuple((now, max(then, now - round(most_ns))) for now, then in found.runs))


def _left(step: StepFacts, left: float) -> StepFacts:
    """Return a step whose idle for a late host remains by so much without the profiler: that outside its replays."""
    return replace(
        step,
        left_share=left,
        roles=tuple(replace(role, left_share=left) if role.eager else role for role in step.roles),
        seams=tuple(replace(seam, left_share=left) for seam in step.seams),
    )


def _left_of(skew: SkewFacts, left: float) -> SkewFacts:
    """Return what ranks wait for a late one with the part that remains without the profiler."""
    told = None if left >= SURE or skew.skew_p50_ns is None else left * skew.skew_p50_ns
    return replace(skew, left_share=left, left_p50_ns=told)


def recoverable(
    model: Model | None, causes: Causes, facts: Facts, chains: dict[Rank, WaitChain] | None = None
) -> Recoverable:
    """Return what the median step would lose without each cause; nothing where no step can be timed."""
    if model is None or model.windows.is_empty():
        return Recoverable()
    held = Recoverable(chains=chains or {})
    return Recoverable(
        sites=dict(_by_site(model, causes, facts)),
        hosts=predict(model, [NEVER_LATE]),
        roles=dict(_by_role(model, facts)),
        pauses=dict(_by_pause(model, causes, facts)),
        queues=dict(_by_queue(model, facts)),
        together=_together(model, causes, held.fill(facts)),
        chains=held.chains,
    )


def _by_pause(model: Model, causes: Causes, facts: Facts) -> Iterable[tuple[tuple[int, ...], Prediction]]:
    for step in facts.steps:
        for hole in step.holes:
            found = predict(model, [_without(causes, hole)]).get(step.rank)
            if found:
                yield hole.pauses, found


def _by_queue(model: Model, facts: Facts) -> Iterable[tuple[tuple[int, ...], Prediction]]:
    for step in facts.steps:
        for queue in _released(step):
            found = predict(model, [ReleaseQueue(queue.ended_by)]).get(step.rank)
            if found:
                yield queue.ended_by, found


def _released(step: StepFacts) -> Iterable[QueueFacts]:
    """Yield the queues whose release can be replayed: with a full one, launch calls waited for room in it."""
    return (queue for queue in step.queues if queue.pending is None)


def _without(causes: Causes, hole: HoleFacts) -> RemovePauses:
    pauses = causes.pauses[list(hole.pauses)]
    return RemovePauses(*(tuple(pauses[name]) for name in ("thread", "start_ns", "end_ns")))


def _together(model: Model, causes: Causes, facts: Facts) -> dict[Rank, Prediction]:
    """Return the step without all waits, pauses and held queues, if there are several: gains don't add up."""
    sites = frozenset[int]().union(*(everywhere(causes, site.sites) for site in facts.sites))
    pauses = [_without(causes, hole) for step in facts.steps for hole in step.holes]
    queues = [ReleaseQueue(queue.ended_by) for step in facts.steps for queue in _released(step)]
    changes: list[Change] = [*([RemoveWaits(sites)] if sites else []), *pauses, *queues]
    return predict(model, changes) if len(facts.sites) + len(pauses) + len(queues) > 1 else {}


def _by_site(model: Model, causes: Causes, facts: Facts) -> Iterable[tuple[tuple[int, ...], Prediction]]:
    for site in facts.sites:
        found = predict(model, [RemoveWaits(everywhere(causes, site.sites))]).get(site.rank)
        if found:
            yield site.sites, found


def _by_role(model: Model, facts: Facts) -> Iterable[tuple[tuple[Rank, str], Prediction]]:
    for step in facts.steps:
        for role in step.roles:
            found = predict(model, [CaptureEager(role.role)]).get(step.rank) if role.capturable else None
            if found:
                yield (step.rank, role.role), found


def everywhere(causes: Causes, sites: tuple[int, ...]) -> frozenset[int]:
    """Return some sites, the same of other ranks, and the blocking copies of their groups: one cure removes all."""
    group_of = dict(zip(causes.sites["site"], causes.sites["group"], strict=True))
    groups = {group_of[site] for site in sites}
    copies = (site for site, group in group_of.items() if group in groups and site in causes.copying)
    return on_every_rank(causes, (*sites, *copies))
