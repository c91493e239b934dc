"""Texts of rules with the figures of a subject in them.

``{bubble_p50_ns}`` is replaced by the field, written with its unit. A piece in square brackets disappears
when a field in it is unknown: ``Blocking read[ after {after_role}]``.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from bubblefinder import units

if TYPE_CHECKING:
    from bubblefinder.rules.subjects import Subject

_FIELD: Final = re.compile(r"\{(\w*)\}")
_KERNELS: Final = frozenset(
    {"collective", "glue_names", "small_runs", "long_kernels", "kernels_before", "kernels_after"}
)
_OPTIONAL: Final = re.compile(r"\[([^\[\]]*)\]")


def names(text: str) -> list[str]:
    """Return the fields that a text asks for."""
    return _FIELD.findall(text)


def fill(text: str, subject: Subject) -> str:
    """Return the text with the subject's figures; names from a capture lose their control characters."""

    def optional(piece: re.Match[str]) -> str:
        known = all(getattr(subject, name) not in (None, ()) for name in names(piece[1]))
        return piece[1] if known else ""

    def field(match: re.Match[str]) -> str:
        return written(match[1], getattr(subject, match[1]))

    return _FIELD.sub(field, _OPTIONAL.sub(optional, text))


_COUNTS: Final = frozenset({"glue_kernels", "nodes"})
"""Medians of things that are counted: one between two of them is no number of kernels."""


def bare(text: str) -> str:
    """Return the text without optional pieces and with an ellipsis for every field, for lists of rules."""
    return _FIELD.sub("…", _OPTIONAL.sub("", text))


def written(name: str, value: object) -> str:
    """Return a field's value as a person reads it: times with units, shares as percentages."""
    if value is None:
        return "unknown"
    if isinstance(value, tuple):
        return ", ".join(dict.fromkeys(written(name, item) for item in value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return units.printable(units.kernel_name(str(value)) if name in _KERNELS else str(value), 120)
    if name.endswith("_ns"):
        return units.duration(value)
    if name.endswith("_share"):
        return units.share(value)
    number = units.count(value)
    if name in _COUNTS and value % 1:
        number = f"{math.floor(value)} to {math.ceil(value)}"
    return f"{number} B" if name == "bytes" else number
