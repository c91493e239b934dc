"""Waits that hold the host one after the other, as a report says them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubblefinder.causes.facts import SiteFacts
from bubblefinder.replay.fixes import fix_name
from bubblefinder.replay.host_parts import Doubt
from bubblefinder.report.found import ChainLink, Predicted, WaitChainReport
from bubblefinder.report.prediction_sentences import between, between_words
from bubblefinder.report.sentences import plain
from bubblefinder.timeline.rank import Rank
from bubblefinder.units import duration, plural, share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bubblefinder.replay.predict import Prediction
    from bubblefinder.replay.recoverable import Recoverable
    from bubblefinder.replay.wait_chains import Link, WaitChain
    from bubblefinder.rules.model import Match


def chain_reports(
    cured: Recoverable, matches: Iterable[Match], profilers_ns: int | None = None
) -> list[WaitChainReport]:
    """Return the chain of every rank that has one; ranges alone where so much of the step may be the profiler's."""
    named = {site: match for match in matches for site in match.sites}
    return [
        WaitChainReport(
            gpu=rank.gpu,
            pid=rank.pid,
            step_ns=chain.joint.now_ns,
            joint=_predicted(chain.joint, profilers_ns),
            half_work=_predicted(chain.half_work, profilers_ns),
            both=_predicted(chain.both, profilers_ns),
            links=[_link(link, named.get(link.site.sites[0]), profilers_ns) for link in chain.links],
            preparing_ns=chain.preparing_ns,
            idle_ns=chain.idle_ns,
            untraced_range_ns=list(chain.untraced_ns) if chain.untraced_ns else None,
        )
        for rank, chain in cured.chains.items()
    ]


def _link(link: Link, match: Match | None, profilers_ns: int | None) -> ChainLink:
    alone, told = link.alone, profilers_ns is None
    return ChainLink(
        rule=match.rule if match else None,
        title=match.title if match else link.site.api,
        recoverable_ns=alone.recoverable_ns if told else None,
        in_turn_ns=link.in_turn_ns if told else None,
        moves_to=link.moves_to,
        recoverable_range_ns=_gains(alone, profilers_ns),
        in_turn_range_ns=_less(link.in_turn_range_ns, profilers_ns),
    )


def _gains(then: Prediction, profilers_ns: int | None) -> list[int]:
    return list(Doubt(profilers_ns).gains(then))


def _less(ends: tuple[int, int], profilers_ns: int | None) -> list[int]:
    """Return what a cure gives at least and at most, where so much of it may be the profiler's time."""
    return [max(ends[0] - (profilers_ns or 0), 0), ends[1]]


@dataclass(frozen=True, slots=True)
class InTurn:
    """What a wait of a chain gives in its turn, and the least and the most of it; null for anything else."""

    ns: int | None = None
    range_ns: list[int] | None = None


def in_turn(subject: object, cured: Recoverable, profilers_ns: int | None) -> InTurn:
    """Return what a wait of a chain gives in its turn, a range alone where the profiler's part can't be told."""
    link = cured.link(subject) if isinstance(subject, SiteFacts) else None
    if link is None:
        return InTurn()
    return InTurn(link.in_turn_ns if profilers_ns is None else None, _less(link.in_turn_range_ns, profilers_ns))


def chain_words(subject: object, cured: Recoverable, profilers_ns: int | None) -> Iterator[str]:
    """Yield the sentence that says which place a wait has in its chain and what all of it gives."""
    if not isinstance(subject, SiteFacts) or subject.in_turn_ns is None:
        return
    chain = cured.chains[Rank(subject.gpu, subject.process)]
    place = 1 + next(i for i, link in enumerate(chain.links) if not set(link.site.sites).isdisjoint(subject.sites))
    link = chain.links[place - 1]
    turn = in_turn(subject, cured, profilers_ns)
    own = between(turn.range_ns) if turn.ns is None else duration(turn.ns) + between_words(turn.range_ns)
    yield (
        f"It is number {place} of {plural(len(chain.links), 'wait')} in a row: without one, the next holds the host. "
        f"In its turn it gives {own}, all of them together {_gain(chain.joint, profilers_ns)}."
    )
    if link.moves_to is not None:
        name = plain(fix_name(chain.links[link.moves_to].site))
        yield f"Taken away alone, the wait moves to number {link.moves_to + 1}, {name}."
    if place == 1:
        yield from _behind(link, chain, profilers_ns)


def _behind(link: Link, chain: WaitChain, profilers_ns: int | None) -> Iterator[str]:
    """Yield what the host does behind the first wait, and what half of its work would give."""
    if link.site.awaits and chain.preparing_ns:
        yield (
            f"The host starts preparing only when it returns; that takes {duration(chain.preparing_ns)}, and for "
            f"{duration(chain.idle_ns)} of it the GPU has nothing to do."
        )
    half, both = (_gain(then, profilers_ns) for then in (chain.half_work, chain.both))
    yield f"Half the host's own work gives {half}, both {both}."


def _gain(then: Prediction, profilers_ns: int | None) -> str:
    if profilers_ns is not None:
        return between(_gains(then, profilers_ns))
    part = share(then.recoverable_ns / then.now_ns)
    left = duration(then.step_ns) + between_words((then.low_ns, then.high_ns))
    return f"{duration(then.recoverable_ns)} ({part}; the step then takes {left})"


def _predicted(then: Prediction, profilers_ns: int | None) -> Predicted:
    told = profilers_ns is None
    return Predicted(
        recoverable_ns=then.recoverable_ns if told else None,
        step_after_ns=then.step_ns if told else None,
        range_ns=[max(then.low_ns - (profilers_ns or 0), 0), then.high_ns],
        recoverable_range_ns=_gains(then, profilers_ns),
        bound_after=then.bound.value,
    )
