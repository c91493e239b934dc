"""Waits that hold the host one after the other, as a report says them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubblefinder.causes.facts import SiteFacts
from bubblefinder.replay.fixes import fix_name
from bubblefinder.report.found import ChainLink, Predicted, WaitChainReport
from bubblefinder.report.sentences import plain
from bubblefinder.timeline.rank import Rank
from bubblefinder.units import duration, plural, share

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bubblefinder.replay.predict import Prediction
    from bubblefinder.replay.recoverable import Recoverable
    from bubblefinder.rules.model import Match


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
