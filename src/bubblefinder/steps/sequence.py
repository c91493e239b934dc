"""The cadence of eager programs: the sequence of operations and blocking reads that repeats once a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.trace.model import COPY_KINDS, KERNEL, MEMCPY

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.lane import Lane

_FEWEST: Final = 3
_REGULAR: Final = 0.8
_COVERS: Final = 0.5
_SLACK: Final = 0.1
_SAME_PERIOD: Final = 0.05
_OFTEN: Final = 1.5
_TO_HOST: Final = 2
_MIGRATIONS: Final = [kind for kind, name in COPY_KINDS.items() if name.startswith("UVM")]


@dataclass(frozen=True, slots=True)
class Sequence:
    """Where each cycle of an eager program begins, and how sure that is.

    Attributes:
        cuts: first operation of each cycle, ns.
        regularity: share of cycles of the usual length in operations.
        read: a blocking read ends each of them.
        within: blocking reads come more often than the cycles, which may hold several steps.
    """

    cuts: Ints
    regularity: float
    read: bool
    within: bool


def find_sequence(lane: Lane) -> Sequence | None:
    """Return the repeating sequence of a lane's operations, or none.

    An operation that comes once a step keeps its distance, in operations, from one step to the next.
    Among all that do, those with the longest distance come once a step (others come once a layer);
    a blocking read among them ends the step, else the first of them begins it. Copies alone make no steps.
    """
    operations = lane.operations.filter(pl.col("copy_kind").is_in(_MIGRATIONS).not_().fill_null(value=True))
    marked = _symbols(operations)
    regular = _regular_symbols(marked)
    if regular.is_empty():
        return None
    once = regular.filter(pl.col("distance") >= (1 - _SAME_PERIOD) * pl.col("distance").max())
    anchor = once.sort("read", "regular", "first", descending=[True, True, False]).row(0, named=True)
    places = marked.filter(pl.col("symbol") == anchor["symbol"])["place"].to_numpy().astype(np.int64)
    first = places + 1 if anchor["read"] else places
    first = _reach_back(first, marked["symbol"].to_numpy(), round(anchor["distance"]))
    first = first[first < len(marked)]
    kernels = np.flatnonzero((operations["kind"] == KERNEL).to_numpy())
    with_kernels = len(np.unique(np.searchsorted(first, kernels, side="right")))
    if len(first) < 2 or with_kernels < _COVERS * len(first):  # noqa: PLR2004 - one closed step at least
        return None
    reads = marked.filter("read").group_by("symbol").len()["len"].to_list()
    within = max(reads, default=0) > _OFTEN * len(first)
    cuts = operations["start_ns"].to_numpy()[first]
    return Sequence(cuts, float(anchor["regular"]), bool(anchor["read"]), within)


def _symbols(operations: pl.DataFrame) -> pl.DataFrame:
    """Return place and symbol of every operation: what it does, and to how many bytes if it is a copy."""
    size = pl.when(pl.col("kind") == MEMCPY).then(pl.col("bytes"))
    return (
        operations.select("kind", "name", "copy_kind", "blocking", size=size)
        .with_columns(symbol=pl.struct("kind", "name", "copy_kind", "blocking", "size").rank("dense"))
        .select("symbol", read=pl.col("blocking") & (pl.col("copy_kind") == _TO_HOST).fill_null(value=False))
        .with_row_index("place")
    )


def _regular_symbols(marked: pl.DataFrame) -> pl.DataFrame:
    """Return symbols that come often and at an even distance: symbol, distance, regular, read, first."""
    spaced = marked.with_columns(distance=pl.col("place").cast(pl.Int64).diff().over("symbol"))
    spaced = spaced.with_columns(median=pl.col("distance").median().over("symbol"))
    return (
        spaced.group_by("symbol")
        .agg(
            pl.len().alias("count"),
            distance=pl.col("median").first(),
            regular=((pl.col("distance") - pl.col("median")).abs() <= _SLACK * pl.col("median")).drop_nulls().mean(),
            read=pl.col("read").first(),
            first=pl.col("place").first(),
        )
        .filter(
            (pl.col("count") >= _FEWEST)
            & (pl.col("regular") >= _REGULAR)
            & (pl.col("distance") > 1)
            & (pl.col("distance") * pl.col("count") >= _COVERS * len(marked)),
        )
    )


def _reach_back(first: Ints, symbols: Ints, distance: int) -> Ints:
    """Add the step before the first cut if it is whole: about one distance earlier lies the same operation."""
    if not len(first) or first[0] >= len(symbols):
        return first
    slack = int(_SLACK * distance)
    low, high = max(int(first[0]) - distance - slack, 0), max(int(first[0]) - distance + slack + 1, 0)
    same = low + np.flatnonzero(symbols[low:high] == symbols[first[0]])
    if not len(same):
        return first
    return np.concatenate(([same[np.argmin(np.abs(same - (first[0] - distance)))]], first))
