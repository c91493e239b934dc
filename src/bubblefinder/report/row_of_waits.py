"""What waits that hold the host one after the other give, in a verdict's words: together, and each in its turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.report.prediction_sentences import in_words
from bubblefinder.report.sentences import plain
from bubblefinder.units import duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.report.found import ChainLink, WaitChainReport

BEYOND: Final = 1.2
"""A cure that gives so many times what another, or its own cause's idle time, is good for gives more than that."""
_TITLE: Final = 100
_CALL: Final = 40


def row_words(chain: WaitChainReport) -> str:
    """Return the waits, each with the share of the step that it gives in its turn, and the calls that they wait in.

    Where no title names its call all calls are told at once, before the waits; else each behind its title.
    """
    *calls, last = dict.fromkeys(_call(link) for link in chain.links)
    named = " and ".join([", ".join(calls), last] if calls else [last]) if all([*calls, last]) else ""
    at_once = f", in {named}" if named else ""
    return f"{len(chain.links)} waits in a row{at_once}: {'; '.join(_members(chain, with_call=not at_once))}"


def _call(link: ChainLink) -> str:
    """Return the call that a wait stands in; empty where its title names it."""
    return "" if link.api is None or link.api in link.title else plain(link.api, _CALL)


def together_words(chain: WaitChainReport) -> str:
    """Return what all of them give, and what they give in all when each goes alone, where that is much less."""
    gain = chain.joint.recoverable_ns
    together = in_words(gain, chain.joint.recoverable_range_ns)
    if gain is None:
        return f"{together} a step"
    return f"{together} a step, {share(gain / chain.step_ns)} of the median step{_one_by_one(chain, gain)}"


def _one_by_one(chain: WaitChainReport, gain: int) -> str:
    """Return what they give in all when each goes alone, where that is much less than together."""
    alone = sum(link.recoverable_ns or 0 for link in chain.links)
    handed_on = f"; one by one {duration(alone)}, since without one the next holds the host"
    return handed_on if BEYOND * alone <= gain else ""


def _members(chain: WaitChainReport, *, with_call: bool) -> Iterator[str]:
    """Yield each with the share of the step that it gives in its turn, those of one title once."""
    named: dict[str, list[tuple[int, ChainLink]]] = {}
    for place, link in enumerate(chain.links, start=1):
        call = f" ({call})" if with_call and (call := _call(link)) else ""
        named.setdefault(f"{plain(link.title, _TITLE)}{call}", []).append((place, link))
    for title, placed in named.items():
        most = max((link.in_turn_range_ns or [0, 0])[1] for _, link in placed)
        told = [link.in_turn_ns for _, link in placed if link.in_turn_ns is not None]
        each = "each " if len(placed) > 1 else ""
        gives = share(sum(told) / chain.step_ns) if told else f"{each}up to {share(most / chain.step_ns)}"
        yield f"{' and '.join(str(place) for place, _ in placed)}. {title}, {gives}"
