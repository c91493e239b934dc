"""What the replay predicts, in words that every format shows: a gain with its range beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.units import duration

_HANDED: Final = 1.2
"""A wait that gives so many times more in its turn only hands the wait on when it goes alone."""

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.report.found import Finding


def gain_words(finding: Finding) -> str:
    """Return what the median step loses without the cause of a finding, with the range, or the range alone.

    Of a wait in a row that gives more once those before it are gone, that.
    """
    if not is_handed_on(finding):
        return alone_words(finding)
    return in_cell(finding.in_turn_ns, finding.in_turn_range_ns)


def alone_words(finding: Finding) -> str:
    """Return what the median step loses without the cause of a finding and with all others there."""
    return in_cell(finding.recoverable_ns, finding.recoverable_range_ns)


def to_recover_words(finding: Finding) -> str:
    """Return the same as what is to recover a step."""
    about = "" if finding.recoverable_ns is None else "about "
    return f"{about}{gain} a step to recover{in_turn_words(finding)}" if (gain := gain_words(finding)) else ""


def in_turn_words(finding: Finding) -> str:
    """Return when a wait in a row gives its gain, and what it gives alone; empty for all others."""
    if not is_handed_on(finding):
        return ""
    alone = alone_words(finding)
    return f" once the waits before it are gone{alone and f', alone {alone}'}"


def is_handed_on(finding: Finding) -> bool:
    """Return whether a wait in a row gives much more once those before it are gone."""
    alone, turn = finding.recoverable_range_ns, finding.in_turn_range_ns
    if finding.in_turn_ns is None:
        return turn is not None and turn[1] > _HANDED * (alone[1] if alone else 0)
    return finding.in_turn_ns > _HANDED * (finding.recoverable_ns or 0)


def in_cell(value: float | None, ends: Sequence[float] | None) -> str:
    """Return a value with its range behind it, or else the range alone, for a table; empty where neither is known."""
    if value is None:
        return f"{duration(ends[0])} to {duration(ends[1])}" if ends else ""
    return duration(value) + between_words(ends)


def in_words(value: float | None, ends: Sequence[float] | None) -> str:
    """Return the same for a sentence."""
    return between(ends) if value is None else in_cell(value, ends)


def between(ends: Sequence[float] | None) -> str:
    """Return a range that stands for a value which can't be told."""
    return f"between {duration(ends[0])} and {duration(ends[1])}" if ends else ""


def between_words(ends: Sequence[float] | None) -> str:
    """Return a range in brackets, behind a space; empty where both ends look the same."""
    low, high = (duration(end) for end in ends or (0, 0))
    return "" if low == high else f" ({low} to {high})"
