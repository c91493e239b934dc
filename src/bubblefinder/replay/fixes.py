"""What can be fixed in a capture, one fix at a time, and the order in which fixes pay most."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.replay.changes import CaptureEager, HostSpeed, RemoveWaits
from bubblefinder.replay.doubt import Doubt
from bubblefinder.replay.predict import Prediction, predict, steps_after
from bubblefinder.replay.recoverable import everywhere
from bubblefinder.replay.wait_chains import on_every_rank

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bubblefinder.causes.facts import Facts, SiteFacts
    from bubblefinder.causes.model import Causes
    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.model import Model
    from bubblefinder.replay.recoverable import Recoverable
    from bubblefinder.replay.wait_chains import WaitChain
    from bubblefinder.timeline.rank import Rank

_NO_DOUBT: Final = Doubt()
WORTHWHILE: Final = 0.001
"""A further fix that gains less of the step ends the order."""
_LATE: Final = 0.01
"""A host that is late for this share of the steps without a wait is slow."""
_CANDIDATES: Final = 10
"""So many fixes, the best by themselves, are tried in every order."""


@dataclass(frozen=True, slots=True)
class Fix:
    """One cure, on every rank that needs it.

    Attributes:
        name: what a user calls it by: the NVTX range, the frame, or the API and its place in the step.
        text: what it is, in one line.
        change: what it does to the recorded run.
        subjects: the sites it removes, as in `SiteFacts.sites`, of each rank; empty for an eager phase.
        note: what has to be said of it.
    """

    name: str
    text: str
    change: Change
    subjects: tuple[tuple[int, ...], ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """One fix on top of those before it, and the step then."""

    fix: Fix
    then: Prediction


def find_fixes(causes: Causes, facts: Facts, cured: Recoverable) -> tuple[Fix, ...]:
    """Return what can be cured.

    That is: the waits that drained a GPU or hold the host in a chain, merged over ranks; the chains; the eager phases;
    and a faster host where it is late.
    """
    chains = tuple(cured.chains.values())
    return (
        *_waits(causes, cured.fill(facts), chains),
        *_chains(causes, chains),
        *_phases(facts),
        *_host(facts, chains),
    )


def _waits(causes: Causes, facts: Facts, chains: Iterable[WaitChain]) -> Iterator[Fix]:
    moves = {
        site: chain.links[link.moves_to].site
        for chain in chains
        for link in chain.links
        if link.moves_to is not None
        for site in link.site.sites
    }
    known: dict[frozenset[int], list[SiteFacts]] = {}
    for site in facts.sites:
        known.setdefault(everywhere(causes, site.sites), []).append(site)
    for removed, sites in known.items():
        first = sites[0]
        after = moves.get(first.sites[0])
        note = f"taken away alone, the wait moves to {fix_name(after)}" if after else ""
        yield Fix(fix_name(first), _text(first), RemoveWaits(removed), tuple(site.sites for site in sites), note)


def _chains(causes: Causes, chains: Iterable[WaitChain]) -> Iterator[Fix]:
    found: dict[frozenset[int], Fix] = {}
    for chain in chains:
        sites = tuple(link.site.sites for link in chain.links)
        removed = on_every_rank(causes, (site for part in sites for site in part))
        text = f"{len(chain.links)} waits in a row, each of which would take the place of another: {_named(chain)}"
        found.setdefault(removed, Fix("the chain of waits", text, RemoveWaits(removed), sites))
    yield from found.values()


def _named(chain: WaitChain) -> str:
    """Return the names of a chain's waits, as many as there are waits."""
    names = Counter(fix_name(link.site) for link in chain.links)
    often = {1: "", 2: " (twice)"}
    return ", ".join(f"{name}{often.get(times, f' ({times} times)')}" for name, times in names.items())


def _phases(facts: Facts) -> Iterator[Fix]:
    eager = {role.role: role for step in facts.steps for role in step.roles if role.capturable}
    for name, role in eager.items():
        launches = f"{role.nodes:.0f} launches" if role.nodes else "its launches"
        yield Fix(f"capture {name}", f"{launches} of {name} as one CUDA graph", CaptureEager(name))


def _host(facts: Facts, chains: tuple[WaitChain, ...]) -> Iterator[Fix]:
    if chains or any((step.host_slow_share or 0) >= _LATE for step in facts.steps):
        yield Fix("host twice as fast", "all the host does in a step takes half as long", HostSpeed(2))


def fix_name(site: SiteFacts) -> str:
    """Return what a user calls a wait by: the NVTX range, the frame, or the API and its place in the step."""
    place = f"after {site.after_role}" if site.after_role else f"before {site.before_role}" if site.before_role else ""
    return site.nvtx or site.frame or f"{site.api} {place}".strip()


def _text(site: SiteFacts) -> str:
    size = f"{site.bytes} B" if site.bytes is not None else ""
    copy = " ".join(part for part in (site.memory_kind, site.copy_kind, size) if part)
    count = f"{site.per_step_count:g} a step" if site.per_step_count else ""
    between = " and ".join(role for role in (site.after_role, site.before_role) if role)
    parts = (site.api, copy, count, f"between {between}" if site.after_role and site.before_role else "")
    return ", ".join(part for part in parts if part)


def best_order(model: Model, fixes: Sequence[Fix], rank: Rank, doubt: Doubt = _NO_DOUBT) -> tuple[Stage, ...]:
    """Return the fixes in the order in which each gains most on top of those before it, while it is worthwhile.

    Where `doubt` leaves a range of the gain alone, its upper end counts, then its lower: no value that isn't told.
    """

    def shown(*changes: Change) -> tuple[int, int]:
        return _shown(model, changes, rank, doubt.about(changes))

    alone = {fix: shown(fix.change) for fix in fixes}
    left = sorted(fixes, key=alone.__getitem__)[:_CANDIDATES]
    stages: list[Stage] = []
    changes: list[Change] = []
    step = steps_after(model, [])[rank]
    while left:
        steps = [shown(*changes, fix.change) for fix in left]
        best = min(range(len(left)), key=steps.__getitem__)
        if step - steps[best][0] < WORTHWHILE * step:
            break
        fix, step = left.pop(best), steps[best][0]
        changes.append(fix.change)
        stages.append(Stage(fix, predict(model, changes)[rank]))
    return tuple(stages)


def _shown(model: Model, changes: Sequence[Change], rank: Rank, doubt: Doubt) -> tuple[int, int]:
    """Return the step less what is said of the gain: its value, or the most and the least that it may be."""
    if doubt.told:
        step = steps_after(model, changes)[rank]
        return step, step
    then = predict(model, changes)[rank]
    least, most = doubt.gains(then)
    return then.now_ns - most, then.now_ns - least
