"""Waits that hold the host one after the other: an addition to report/1 that readers may ignore."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bubblefinder.causes.facts import SiteFacts
from bubblefinder.replay.fixes import fix_name
from bubblefinder.report.sentences import plain
from bubblefinder.timeline.rank import Rank
from bubblefinder.units import duration, plural, share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bubblefinder.replay.predict import Prediction
    from bubblefinder.replay.recoverable import Recoverable
    from bubblefinder.rules.model import Match


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """The median step after a change, by the what-if replay: `range_ns` is its low and its high end."""

    recoverable_ns: int
    step_after_ns: int
    range_ns: list[int]
    bound_after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """One wait of a chain.

    Attributes:
        rule: the finding about it; null where no selected rule has one.
        title: that finding's title, or the call.
        recoverable_ns: what the median step loses without this wait alone: the next one then waits instead.
        in_turn_ns: what it loses when the links before this one are gone too; they sum to what all together give.
        moves_to: position of the link that waits in its place when it alone is gone; null if none does.
    """

    rule: str | None
    title: str
    recoverable_ns: int
    in_turn_ns: int
    moves_to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitChainReport:
    """The waits that hold a rank's launching thread one after the other, and what removing them together gives.

    From the return of the first the host works for `preparing_ns`, until it is ahead of the GPU or waits in it again;
    for `idle_ns` of that the GPU has nothing to do; both are medians. `joint` is the step without any of the waits,
    `half_work` the step with a host that needs half the time for its own work, `both` the step with neither the waits
    nor that half. Without the waits and without the profiler the step lies in `untraced_range_ns`, as wide as what is
    known of the profiler's cost and of hosts' speed; null where nothing is known of that cost.
    """

    gpu: int
    pid: int
    joint: Predicted
    half_work: Predicted
    both: Predicted
    links: list[ChainLink] = field(default_factory=list)
    preparing_ns: int | None = None
    idle_ns: int | None = None
    untraced_range_ns: list[int] | None = None


def chain_reports(cured: Recoverable, matches: Iterable[Match]) -> list[WaitChainReport]:
    """Return the chain of every rank that has one."""
    named = {site: match for match in matches for site in match.sites}
    return [
        WaitChainReport(
            gpu=rank.gpu,
            pid=rank.pid,
            joint=_predicted(chain.joint),
            half_work=_predicted(chain.half_work),
            both=_predicted(chain.both),
            links=[
                ChainLink(
                    rule=match.rule if (match := named.get(link.site.sites[0])) else None,
                    title=match.title if match else link.site.api,
                    recoverable_ns=link.alone.recoverable_ns,
                    in_turn_ns=link.in_turn_ns,
                    moves_to=link.moves_to,
                )
                for link in chain.links
            ],
            preparing_ns=chain.preparing_ns,
            idle_ns=chain.idle_ns,
            untraced_range_ns=list(chain.untraced_ns) if chain.untraced_ns else None,
        )
        for rank, chain in cured.chains.items()
    ]


def in_turn_ns(subject: object) -> int | None:
    """Return what a wait of a chain gives in its turn; None for anything else."""
    known = subject.in_turn_ns if isinstance(subject, SiteFacts) else None
    return None if known is None else round(known)


def chain_words(subject: object, cured: Recoverable) -> Iterator[str]:
    """Yield the sentence that says which place a wait has in its chain and what all of it gives."""
    if not isinstance(subject, SiteFacts) or subject.in_turn_ns is None:
        return
    chain = cured.chains[Rank(subject.gpu, subject.process)]
    place = 1 + next(i for i, link in enumerate(chain.links) if not set(link.site.sites).isdisjoint(subject.sites))
    yield (
        f"It is number {place} of {plural(len(chain.links), 'wait')} in a row: without one, the next holds the host. "
        f"In its turn it gives {duration(subject.in_turn_ns)}, all of them together {_gain(chain.joint)}."
    )
    next_one = chain.links[place - 1].moves_to
    if next_one is not None:
        name = plain(fix_name(chain.links[next_one].site))
        yield f"Taken away alone, the wait moves to number {next_one + 1}, {name}."
    if place == 1:
        yield (
            f"The host starts preparing only when it returns; that takes {duration(chain.preparing_ns)}, and for "
            f"{duration(chain.idle_ns)} of it the GPU has nothing to do."
        )
        yield f"Half the host's own work gives {_gain(chain.half_work)}, both {_gain(chain.both)}."


def _gain(then: Prediction) -> str:
    part = share(then.recoverable_ns / then.now_ns)
    return f"{duration(then.recoverable_ns)} ({part}; the step then takes {duration(then.step_ns)})"


def _predicted(then: Prediction) -> Predicted:
    return Predicted(
        recoverable_ns=then.recoverable_ns,
        step_after_ns=then.step_ns,
        range_ns=[then.low_ns, then.high_ns],
        bound_after=then.bound.value,
    )
