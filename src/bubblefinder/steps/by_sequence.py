"""The cadence of eager programs: the sequence of operations and reads of results that repeats once a step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from bubblefinder.trace.model import COPY_KINDS, KERNEL, MEMCPY

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.lane import RankWork

_FEWEST: Final = 3
_REGULAR: Final = 0.6
_COVERS: Final = 0.5
_SLACK: Final = 0.1
_SAME_PERIOD: Final = 0.05
_MOST_STEPS: Final = 8
_EVEN: Final = 0.25
_OFTEN: Final = 1.5
_TO_DEVICE: Final = 1
_TO_HOST: Final = 2
_MIGRATIONS: Final = [kind for kind, name in COPY_KINDS.items() if name.startswith("UVM")]


@dataclass(frozen=True, slots=True)
class Sequence:
    """Where each cycle of an eager program begins, and how sure that is.

    Attributes:
        boundaries: first operation of each cycle, ns.
        regularity: share of cycles of the usual length in operations.
        bounded: a read of results ends each of them, or an input begins it.
        sure: copies to or from the host come with the cycles, and none of them tells of shorter ones.
    """

    boundaries: Ints
    regularity: float
    bounded: bool
    sure: bool


def find_sequence(lane: RankWork) -> Sequence | None:
    """Return the repeating sequence of a lane's operations, or none.

    An operation that comes once a step keeps its distance, in operations, from one step to the next.
    Among all that do, those with the longest distance come once a step (others come once a layer);
    a read of results among them ends the step, or an input begins it. Copies alone make no steps.
    """
    operations = lane.operations.filter(pl.col("copy_kind").is_in(_MIGRATIONS).not_().fill_null(value=True))
    marked = _symbols(operations)
    regular = _regular_symbols(marked)
    if regular.is_empty():
        return None
    longest = float(regular["distance"].max())  # type: ignore[arg-type] # never null
    steps, copies = _steps_in(lane, regular, longest, len(marked))
    once = regular.filter(pl.col("distance") >= (1 - _SAME_PERIOD) * longest)
    anchor = _anchor(operations, marked, once)
    first = _after(marked, anchor) if steps == 1 else _by_copies(operations, copies)
    first = _reach_back(first, marked["symbol"].to_numpy(), round(longest / steps))
    first = first[first < len(marked)]
    kernels = np.flatnonzero((operations["kind"] == KERNEL).to_numpy())
    with_kernels = len(np.unique(np.searchsorted(first, kernels, side="right")))
    if len(first) < 2 or with_kernels < _COVERS * len(first):  # noqa: PLR2004 - one closed step at least
        return None
    boundaries = operations["start_ns"].to_numpy()[first]
    reads = marked.filter("read").group_by("symbol").len()["len"].to_list()
    sure = steps == 1 and max(reads, default=0) <= _OFTEN * len(first) and borne_out(lane, boundaries)
    return Sequence(boundaries, float(anchor["regular"]), anchor["pause"] is not None, sure)


def borne_out(lane: RankWork, boundaries: Ints) -> bool:
    """Tell whether most of the steps read results, or, where none are read, are given input: parts of a step don't."""
    copies = host_copies(lane)
    with_copies = len(np.unique(np.searchsorted(boundaries, copies[copies >= boundaries[0]], side="right")))
    return len(copies) < _FEWEST or with_copies >= _COVERS * len(boundaries)


def host_copies(lane: RankWork) -> Ints:
    """Return when results were copied to the host; where that never recurs, when input was copied to the GPU."""
    read, given = (
        lane.operations.filter(pl.col("copy_kind") == kind)["start_ns"].to_numpy() for kind in (_TO_HOST, _TO_DEVICE)
    )
    return read if len(read) >= _FEWEST else given


def _steps_in(lane: RankWork, regular: pl.DataFrame, longest: float, operations: int) -> tuple[int, int]:
    """Return how many shorter cycles the longest holds, and the copies in each: 1 and 0 if it is one.

    Batch sizes may alternate: then operations of no size come once in each of them, and as many copies.
    """
    each = len(host_copies(lane)) * longest / operations
    for steps in range(2, _MOST_STEPS + 1):
        shorter = regular.filter((pl.col("distance") * steps / longest - 1).abs() <= _SAME_PERIOD)
        copies = round(each / steps)
        if len(shorter) and copies and abs(each / steps - copies) <= _EVEN:
            return steps, copies
    return 1, 0


def _anchor(operations: pl.DataFrame, marked: pl.DataFrame, once: pl.DataFrame) -> dict[str, Any]:
    """Choose among what comes once a step: the read after which, or the input before which, the GPU pauses longest.

    Where the host neither reads nor gives anything, the first operation.
    """
    after = _pauses(operations)
    pause = pl.when("read").then(after).when("given").then(after.shift(1))
    pauses = marked.with_columns(pause=pause).group_by("symbol").agg(pl.col("pause").median())
    ranked = once.join(pauses, on="symbol")
    order = {"pause": True, "regular": True, "first": False}
    return ranked.sort(*order, descending=list(order.values()), nulls_last=True).row(0, named=True)


def _pauses(operations: pl.DataFrame) -> pl.Series:
    """Return the time from the end of each operation to the start of the next."""
    return operations["start_ns"].shift(-1) - operations["end_ns"]


def _after(marked: pl.DataFrame, anchor: dict[str, Any]) -> Ints:
    places = marked.filter(pl.col("symbol") == anchor["symbol"])["place"].to_numpy().astype(np.int64)
    return places + 1 if anchor["read"] else places


def _by_copies(operations: pl.DataFrame, copies: int) -> Ints:
    """Begin a step after every so many reads, or at every so many inputs: there the GPU pauses longest."""
    kinds = operations["copy_kind"].to_numpy()
    read = np.flatnonzero(kinds == _TO_HOST) + 1
    places = read if len(read) >= _FEWEST else np.flatnonzero(kinds == _TO_DEVICE)
    places = places[(places > 0) & (places < len(kinds))]
    pauses = _pauses(operations).to_numpy()[places - 1]
    best = max(range(copies), key=lambda offset: float(np.median(pauses[offset::copies])))
    return places[best::copies].astype(np.int64)


def _symbols(operations: pl.DataFrame) -> pl.DataFrame:
    """Return place and symbol of every operation: what it does, and to how many bytes if it is a copy."""
    size = pl.when(pl.col("kind") == MEMCPY).then(pl.col("bytes"))
    return (
        operations.select("kind", "name", "copy_kind", "blocking", size=size)
        .with_columns(symbol=pl.struct("kind", "name", "copy_kind", "blocking", "size").rank("dense"))
        .select(
            "symbol",
            read=(pl.col("copy_kind") == _TO_HOST).fill_null(value=False),
            given=(pl.col("copy_kind") == _TO_DEVICE).fill_null(value=False),
        )
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
    """Add the step before the first boundary if it is whole: a distance earlier the capture or a like step begins."""
    if not len(first) or first[0] >= len(symbols):
        return first
    slack = int(_SLACK * distance)
    if abs(int(first[0]) - distance) <= slack:
        return np.concatenate(([0], first))
    low, high = max(int(first[0]) - distance - slack, 0), max(int(first[0]) - distance + slack + 1, 0)
    same = low + np.flatnonzero(symbols[low:high] == symbols[first[0]])
    if not len(same):
        return first
    return np.concatenate(([same[np.argmin(np.abs(same - (first[0] - distance)))]], first))
