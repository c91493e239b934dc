"""First steps that are longer than all others: a capture that began before the program was warm."""

from __future__ import annotations

from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.metrics import decode_rows, ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.report.model import Report

STANDS_OUT: Final = 1.02
MADS: Final = 5
FEWEST: Final = 2
"""A single long first step is kept out of the statistics already."""


def warming_ns(base: Sequence[Report], head: Sequence[Report]) -> float:
    """Return what the first steps of head, in excess of base's, add to its mean step by being longer than the rest."""
    before, after = (fmean(_excess(report) for report in side) for side in (base, head))
    return after - before


def _excess(report: Report) -> float:
    lengths = [row.duration_ns for row in decode_rows(report, ranks(report)[0])]
    rest = lengths[len(lengths) // 2 :]
    middle = median(rest)
    line = max(STANDS_OUT * middle, middle + MADS * median(abs(length - middle) for length in rest))
    first = next((number for number, length in enumerate(lengths) if length <= line), len(lengths))
    if not FEWEST <= first <= len(lengths) // 2:
        return 0.0
    return sum(length - middle for length in lengths[:first]) / len(lengths)
