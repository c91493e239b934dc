"""Waits that hold the host one after the other, as a report says them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubblefinder.causes.facts import SiteFacts
from bubblefinder.replay.doubt import Doubt, Estimate
from bubblefinder.replay.fixes import fix_name
from bubblefinder.report.found import ChainLink, Predicted, WaitChainReport
from bubblefinder.report.prediction_sentences import between, between_words, in_words
from bubblefinder.report.sentences import plain
from bubblefinder.units import duration, plural, share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bubblefinder.replay.predict import Prediction
    from bubblefinder.replay.recoverable import Recoverable
    from bubblefinder.replay.wait_chains import Link, WaitChain
    from bubblefinder.rules.model import Match
    from bubblefinder.timeline.rank import Rank

_Gain = tuple[int | None, list[int] | None]
"""What a cure gives in ns, and the least and the most of it; null where that isn't known."""


def chain_reports(cured: Recoverable, matches: Iterable[Match]) -> list[WaitChainReport]:
    """Return the chain of every rank that has one; ranges alone where the profiler's part can't be told."""
    named = {site: match for match in matches for site in match.sites}
    return [_chain(chain, rank, cured.doubt(rank), named) for rank, chain in cured.chains.items()]


def _chain(chain: WaitChain, rank: Rank, doubt: Doubt, named: Mapping[int, Match]) -> WaitChainReport:
    joint, half, both = (_predicted(gives) for gives in _three(chain, doubt))
    return WaitChainReport(
        gpu=rank.gpu,
        pid=rank.pid,
        step_ns=chain.joint.now_ns,
        joint=joint,
        half_work=half,
        both=both,
        links=[_link(link, named.get(link.site.sites[0]), Doubt(doubt.profilers_ns)) for link in chain.links],
        preparing_ns=chain.preparing_ns,
        idle_ns=chain.idle_ns,
        untraced_range_ns=_untraced(chain, doubt),
    )


def _untraced(chain: WaitChain, doubt: Doubt) -> list[int] | None:
    """Return what the step may be without waits and profiler: where that can't be told, no longer than with waits."""
    if chain.untraced_ns is None:
        return None
    low, high = chain.untraced_ns
    return [min(low, chain.joint.now_ns - (doubt.profilers_ns or 0)), high]


def _three(chain: WaitChain, doubt: Doubt) -> tuple[Estimate, Estimate, Estimate]:
    """Return what a chain gives without its waits, with half the host's work, and with both, as far as it is known."""
    joint = Estimate(chain.joint, Doubt(doubt.profilers_ns))
    return joint, Estimate(chain.half_work, doubt), Estimate(chain.both, doubt)


def _link(link: Link, match: Match | None, doubt: Doubt) -> ChainLink:
    (alone, alone_range), (turn, turn_range) = (_told(then, doubt) for then in (link.alone, link.in_turn))
    return ChainLink(
        rule=match.rule if match else None,
        title=match.title if match else link.site.api,
        api=link.site.api,
        recoverable_ns=alone,
        in_turn_ns=turn,
        moves_to=link.moves_to,
        recoverable_range_ns=alone_range,
        in_turn_range_ns=turn_range,
    )


def in_turn(subject: object, cured: Recoverable) -> _Gain:
    """Return what a wait of a chain gives in its turn, a range alone where the profiler's part can't be told."""
    link = cured.link(subject) if isinstance(subject, SiteFacts) else None
    return _told(link.in_turn, Doubt(cured.untold_ns)) if link else (None, None)


def _told(then: Prediction, doubt: Doubt) -> _Gain:
    return then.recoverable_ns if doubt.told else None, list(doubt.gains(then))


def chain_words(subject: object, cured: Recoverable) -> Iterator[str]:
    """Yield the sentence that says which place a wait has in its chain and what all of it gives."""
    if not isinstance(subject, SiteFacts) or subject.in_turn_ns is None:
        return
    rank = subject.rank
    chain = cured.chains[rank]
    place = 1 + next(i for i, link in enumerate(chain.links) if not set(link.site.sites).isdisjoint(subject.sites))
    link = chain.links[place - 1]
    own = in_words(*in_turn(subject, cured))
    joint, half, both = (_gain(gives) for gives in _three(chain, cured.doubt(rank)))
    yield (
        f"It is number {place} of {plural(len(chain.links), 'wait')} in a row: without one, the next holds the host. "
        f"In its turn it gives {own}, all of them together {joint}."
    )
    if link.moves_to is not None:
        name = plain(fix_name(chain.links[link.moves_to].site))
        yield f"Taken away alone, the wait moves to number {link.moves_to + 1}, {name}."
    if place == 1:
        yield from _behind(link, chain)
        yield f"Half the host's own work gives {half}, both {both}."


def _behind(link: Link, chain: WaitChain) -> Iterator[str]:
    """Yield what the host does behind the first wait."""
    if link.site.awaits and chain.preparing_ns:
        yield (
            f"The host starts preparing only when it returns; that takes {duration(chain.preparing_ns)}, and for "
            f"{duration(chain.idle_ns)} of it the GPU has nothing to do."
        )


def _gain(estimate: Estimate) -> str:
    then = estimate.value
    if then is None:
        return between(estimate.gain_range_ns)
    part = share(then.recoverable_ns / then.now_ns)
    left = duration(then.step_ns) + between_words(then.range_ns)
    return f"{duration(then.recoverable_ns)} ({part}; the step then takes {left})"


def _predicted(estimate: Estimate) -> Predicted:
    told = estimate.value
    return Predicted(
        recoverable_ns=told.recoverable_ns if told else None,
        step_after_ns=told.step_ns if told else None,
        range_ns=list(estimate.step_range_ns),
        recoverable_range_ns=list(estimate.gain_range_ns),
        bound_after=told.bound.value if told else None,
    )
