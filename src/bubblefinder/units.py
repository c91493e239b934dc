"""The only place where numbers become words."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

NS_PER_US: Final = 1_000
NS_PER_MS: Final = 1_000_000
NS_PER_S: Final = 1_000_000_000

_SECONDS: Final = {"ns": 1, "us": NS_PER_US, "µs": NS_PER_US, "ms": NS_PER_MS, "s": NS_PER_S, "": NS_PER_S}
_TIME: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(ns|us|µs|ms|s|)\s*")
_BRACKETS: Final = re.compile(r"([<>()])")
_PARTNERS: Final = {">": "<", ")": "("}
_DOTTED: Final = re.compile(r"\w+(?:\.\w+){2,}")
_CONTROL: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)

NUMBER: Final = re.compile(r"(?<![^\W_])\d+")
"""A number in a name, not one that ends a word: `llama3` is a name."""
UNKNOWN: Final = "–"
_MANY: Final = 1_000


def duration(ns: float | None) -> str:
    """Return a time with three significant digits and its unit; an en dash for unknown."""
    if ns is None:
        return UNKNOWN
    size = abs(ns)
    if size < NS_PER_US:
        return f"{ns:.0f} ns"
    for unit, scale in (("us", NS_PER_US), ("ms", NS_PER_MS)):
        if size < scale * 999.5:
            return f"{_significant(ns / scale)} {unit}"
    return f"{_significant(ns / NS_PER_S)} s"


def signed(ns: float | None) -> str:
    """Return the same with a sign before what is above zero."""
    return f"+{duration(ns)}" if ns is not None and ns > 0 else duration(ns)


def milliseconds(ns: float | None, digits: int = 3) -> str:
    """Return a time in milliseconds without unit, for table columns."""
    return UNKNOWN if ns is None else f"{ns / NS_PER_MS:.{digits}f}"


def share(ratio: float | None, digits: int = 1) -> str:
    """Return a ratio as a percentage; an en dash for unknown."""
    return UNKNOWN if ratio is None else f"{100 * ratio:.{digits}f} %"


def count(number: float | None) -> str:
    """Return a count with thousands separators, with one decimal only when it isn't whole and below a thousand."""
    if number is None:
        return UNKNOWN
    return f"{number:,.0f}" if float(number).is_integer() or abs(number) >= _MANY else f"{number:,.1f}"


def plural(number: int, noun: str, nouns: str = "") -> str:
    """Return ``1 step`` or ``3 steps``."""
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def parse_time(text: str) -> int | None:
    """Return nanoseconds for ``1.2s``, ``300ms``, ``5us`` or ``1.5`` (seconds); null if it is none."""
    match = _TIME.fullmatch(text)
    return round(float(match[1]) * _SECONDS[match[2]]) if match else None


def printable(text: str, limit: int = 200) -> str:
    """Return a name from a capture without control characters and no longer than `limit`."""
    clean = _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text[: limit * 4])
    return clean if len(clean) <= limit else clean[: limit - 1] + "…"


@lru_cache(maxsize=1 << 14)
def kernel_name(name: str) -> str:
    """Return a kernel's name without template arguments and parameters, which can be pages long.

    A bracket that has no partner stays; each is looked at once, however deep they nest. A namespace without a name, as
    in ``void <unnamed>::all_reduce_kernel<...>``, leaves nothing.
    """
    kept: list[str] = []
    opened: dict[str, list[int]] = {"<": [], "(": []}
    for part in _BRACKETS.split(name):
        partner = _PARTNERS.get(part)
        if partner and opened[partner]:
            start = opened[partner].pop()
            del kept[start:]
            _forget(opened["<"], start)
            _forget(opened["("], start)
            continue
        if part in opened:
            opened[part].append(len(kept))
        kept.append(part)
    return "".join(kept).removeprefix("void ").replace("::::", "::").strip().removeprefix("::")


def _forget(places: list[int], start: int) -> None:
    """Drop the brackets that were removed with what stood between others."""
    while places and places[-1] >= start:
        places.pop()


def code_name(name: str) -> str:
    """Return a function's dotted name without its module: ``Class.method`` of ``package.module.Class.method``."""
    return ".".join(name.split(".")[-2:]) if _DOTTED.fullmatch(name) else name


def _significant(value: float) -> str:
    size = abs(value)
    digits = 2 if size < 10 else 1 if size < 100 else 0  # noqa: PLR2004 - three significant digits
    return f"{value:.{digits}f}"


def numberless(text: str) -> str:
    """Return a name without the numbers that change from step to step; one that ends a word belongs to the name."""
    return NUMBER.sub("#", text)
