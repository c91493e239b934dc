"""Small kernels that follow each other again and again inside a replay: what fusing them could give at most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.causes.thresholds import FEWEST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.intervals import Ints

_MOST: Final = 4
_TRIED: Final = 16
"""Pairs of names that are looked at, those with most to give first."""


@dataclass(frozen=True, slots=True)
class Tandem:
    """Two kernels that run one behind the other: how often in a span, and what fusing each time gives there at most."""

    first: str
    second: str
    count: float
    saved_ns: float


def find_tandems(kernels: pl.DataFrame, small_ns: int, spans: int, node_ns: float) -> tuple[Tandem, ...]:
    """Return the tandems that come often in a span, those that could give most first; no kernel is in two of them.

    A fused kernel takes at least as long as the longer of the two, so that fusing saves at most the gap between them
    and the shorter one.

    Args:
        kernels: the kernels of some spans in order: span, stream, start_ns, end_ns, length, name (as people read it).
        small_ns: only kernels shorter than that, and less apart: what comes later waits for something else.
        spans: how many spans these are.
        node_ns: what the profiler adds to a kernel of its own, which isn't there to be saved.
    """
    both = ("span", "stream")
    gap = (pl.col("start_ns") - pl.col("end_ns").shift(1).over(both)).clip(lower_bound=0)
    shorter, longer = (
        choose("length", pl.col("length").shift(1).over(both)) for choose in (pl.min_horizontal, pl.max_horizontal)
    )
    rows = kernels.sort(*both, "start_ns").select(
        "name",
        before=pl.col("name").shift(1).over(both),
        near=(longer < small_ns) & (gap < small_ns),
        saved=(gap + shorter - node_ns).clip(lower_bound=0),
    )
    rows = rows.with_row_index("second").filter(pl.col("before").is_not_null() & pl.col("near"))
    totals = rows.group_by("before", "name").agg(pl.len(), pl.col("saved").sum())
    often = totals.filter(pl.col("len") >= FEWEST * spans).sort(
        "saved", "before", "name", descending=[True, False, False]
    )
    found = _apart(rows, often.head(_TRIED), len(kernels), spans)
    return tuple(sorted(found, key=lambda one: -one.saved_ns)[:_MOST])


def _apart(rows: pl.DataFrame, pairs: pl.DataFrame, kernels: int, spans: int) -> Iterator[Tandem]:
    """Yield the pairs, each kernel given to the first that wants it."""
    taken = np.zeros(kernels, np.bool_)
    for before, name in pairs.select("before", "name").iter_rows():
        mine = rows.filter((pl.col("before") == before) & (pl.col("name") == name))
        second = mine["second"].to_numpy().astype(np.int64)
        chosen = _every_other(second[~taken[second] & ~taken[second - 1]])
        if len(chosen) < FEWEST * spans:
            continue
        taken[chosen] = taken[chosen - 1] = True
        saved = float(mine["saved"].to_numpy()[np.isin(second, chosen)].sum())
        yield Tandem(before, name, len(chosen) / spans, saved / spans)


def _every_other(second: Ints) -> Ints:
    """Leave out what overlaps the pair before: of a run of one kernel every second pair stays."""
    run = np.cumsum(np.diff(second, prepend=-2) != 1)
    first = np.searchsorted(run, run)
    chosen: Ints = second[(np.arange(len(second)) - first) % 2 == 0]
    return chosen
