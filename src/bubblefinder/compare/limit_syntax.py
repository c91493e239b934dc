"""Limits as people write them: `7.4 ms`, `12 %`, `3`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from bubblefinder.units import count, duration, parse_time, share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.compare.metrics import Unit

_QUOTED: Final[Sequence[Unit]] = ("ns", "ratio")
"""Units in which limits are written in quotes."""


def parse_limit(text: str | float, unit: Unit) -> float:
    """Return a limit in the metric's unit: nanoseconds, a ratio, or a count.

    Raises:
        ValueError: it isn't one; the message says how to write it.
    """
    if unit == "ratio":
        return parse_share(text)
    if unit == "count":
        if isinstance(text, str):
            raise ValueError(f"{text!r} is no count; write a number without quotes, as in 3")
        return float(text)
    nanoseconds = parse_time(text) if isinstance(text, str) and text.strip()[-1:].isalpha() else None
    if nanoseconds is None:
        raise ValueError(f'{text!r} is no time; write one with its unit, as in "7.4 ms" or "350 us"')
    return float(nanoseconds)


def check_any(text: str | float) -> None:
    """Refuse what is no limit in any unit.

    Raises:
        ValueError: it isn't one; the message says how to write it.
    """
    if not isinstance(text, str):
        return
    for unit in _QUOTED:
        with suppress(ValueError):
            parse_limit(text, unit)
            return
    raise ValueError(f'{text!r} is no time, share or count; write "7.4 ms", "12 %" or 3')


def parse_share(text: str | float) -> float:
    """Return a ratio for `0.12` or `"12 %"`.

    Raises:
        ValueError: it isn't one.
    """
    try:
        if isinstance(text, str) and text.rstrip().endswith("%"):
            return float(text.rstrip()[:-1]) / 100
        return float(text)
    except ValueError:
        raise ValueError(f'{text!r} is no share; write 0.12 or "12 %"') from None


def format_limit(number: float, unit: Unit) -> str:
    """Return a limit as it reads in a sentence."""
    if unit == "ns":
        return duration(number)
    return share(number) if unit == "ratio" else count(number)
