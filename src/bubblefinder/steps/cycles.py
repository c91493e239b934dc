"""The cadence of graph replays: how many make a cycle, and which part each of them plays in it.

Works on symbols, not on ids: graphs captured for another batch size have other ids but fall into
the same place. Survives missing, doubled and foreign launches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.steps.lane import eager_operations
from bubblefinder.trace.model import KERNEL, MEMCPY

if TYPE_CHECKING:
    from bubblefinder.intervals import Ints
    from bubblefinder.steps.lane import Lane

FOREIGN: Final = -1
_MAX_PERIOD: Final = 2048
_LENGTH_RATIO: Final = 1.5
_NODES_RATIO: Final = 1.25
_GOOD: Final = 0.5
_NEAR_BEST: Final = 0.85
_TRUST_IDS: Final = 0.9
_SURE: Final = 0.6
_TO_DEVICE: Final = 1
_TO_HOST: Final = 2


@dataclass(frozen=True, slots=True)
class Cadence:
    """A repeating cycle of replays.

    Attributes:
        period: replays per cycle.
        score: share of replays that recur one period later, averaged over the kinds of replay.
        phases: place of each replay in the cycle, 0 first; FOREIGN for replays that belong to none.
    """

    period: int
    score: float
    phases: Ints


def find_cadence(lane: Lane, host_work: Ints) -> Cadence | None:
    """Return the cadence of a lane's replays, or none if nothing recurs at least twice."""
    if len(lane.replays) < 2:  # noqa: PLR2004 - a cycle has to recur
        return None
    sizes = _size_classes(lane)
    looks = _symbols(np.column_stack((sizes, _eager_before(lane))))
    ids = _symbols(lane.replays["graph"].fill_null(-1).to_numpy().reshape(-1, 1))
    period, score, symbols = _choose_period(looks, ids)
    if not period:
        return None
    phases = _align(symbols, sizes, period)
    return Cadence(period, score, _rotated(lane, phases, period, host_work))


def _size_classes(lane: Lane) -> Ints:
    """Class each replay by the size of its graph: nodes where they were recorded, else median length.

    Another batch size hardly changes the nodes, but may well change the length. A class ends where the
    next size is larger by more than a ratio.
    """
    counted = not lane.replays["nodes"].null_count()
    size, ratio = (pl.col("nodes"), _NODES_RATIO) if counted else (pl.col("end_ns") - pl.col("start_ns"), _LENGTH_RATIO)
    medians = lane.replays.with_columns(size=size, graph=pl.col("graph").fill_null(-1)).select(
        "graph", median=pl.col("size").median().over("graph")
    )
    values = np.sort(medians.unique("graph")["median"].to_numpy())
    upper = values[1:][values[1:] > ratio * values[:-1]]
    return np.searchsorted(upper, medians["median"].to_numpy(), side="right").astype(np.int64)


def _eager_before(lane: Lane) -> Ints:
    """Return what ran eagerly between each replay and the one before, as bits: kernels, and copies by direction."""
    eager = eager_operations(lane)
    bit = (
        eager.select(
            pl.when(pl.col("kind") == KERNEL)
            .then(1)
            .when(pl.col("kind") != MEMCPY)
            .then(2)
            .when(pl.col("copy_kind") == _TO_DEVICE)
            .then(4)
            .when(pl.col("copy_kind") == _TO_HOST)
            .then(8)
            .otherwise(16),
        )
        .to_series()
        .to_numpy()
    )
    starts = lane.replays["start_ns"].to_numpy()
    seam = np.searchsorted(starts, eager["start_ns"].to_numpy(), side="left")
    bits = np.zeros(len(starts) + 1, np.int64)
    np.bitwise_or.at(bits, seam, bit)
    return bits[:-1]


def _symbols(rows: Ints) -> Ints:
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _choose_period(looks: Ints, ids: Ints) -> tuple[int, float, Ints]:
    """Return period, score and the symbols it was found in.

    Looks win over ids, since batch sizes change ids; but a run of graphs that all look alike and
    recur strictly by id are the pieces of one step (piecewise capture), not a step each.
    """
    by_look, look_score = _best_period(looks)
    by_id, id_score = _best_period(ids)
    pieces = by_id >= 3 * max(by_look, 1) and id_score >= _TRUST_IDS
    if pieces or (look_score < _SURE and id_score > look_score):
        return by_id, id_score, ids
    return by_look, look_score, looks


def _best_period(symbols: Ints) -> tuple[int, float]:
    """Return the shortest period whose score is near the best, and that score; 0 if nothing recurs."""
    longest = min(len(symbols) // 2, _MAX_PERIOD)
    scores = np.array([_score(symbols, period) for period in range(1, longest + 1)])
    if not len(scores) or scores.max() < _GOOD:
        return 0, 0.0
    period = int(np.flatnonzero(scores >= _NEAR_BEST * scores.max())[0]) + 1
    return period, float(scores[period - 1])


def _score(symbols: Ints, period: int) -> float:
    """Average, over the symbols, the share of occurrences that recur one period later."""
    early, late = symbols[:-period], symbols[period:]
    seen = np.bincount(early, minlength=int(symbols.max()) + 1)
    again = np.bincount(early, weights=early == late, minlength=len(seen))
    often = seen >= max(1, min(2, len(symbols) // (4 * period)))
    return float((again[often] / seen[often]).mean()) if often.any() else 0.0


def _align(symbols: Ints, sizes: Ints, period: int) -> Ints:
    """Give every replay its place in the cycle."""
    windows = np.lib.stride_tricks.sliding_window_view(symbols, period)
    patterns, first, counts = np.unique(windows, axis=0, return_index=True, return_counts=True)
    best = int(np.argmax(counts))
    start = int(first[best])
    accepted = [{int(symbol)} for symbol in patterns[best]]
    by_size = [{int(sizes[start + place])} for place in range(period)]
    phases = _walk(symbols, sizes, accepted, by_size, start)
    learned = _learn(symbols, phases, period)
    if not learned:
        return phases
    for symbol, place in learned.items():
        accepted[place].add(symbol)
    return _walk(symbols, sizes, accepted, by_size, start)


def _walk(symbols: Ints, sizes: Ints, accepted: list[set[int]], by_size: list[set[int]], start: int) -> Ints:
    period = len(accepted)
    phases = np.full(len(symbols), FOREIGN, np.int64)
    expected = -start % period
    for position, (symbol, size) in enumerate(zip(symbols.tolist(), sizes.tolist(), strict=True)):
        following = int(symbols[position + 1]) if position + 1 < len(symbols) else None
        place = _place(symbol, following, accepted, expected)
        if place == FOREIGN:
            next_size = int(sizes[position + 1]) if position + 1 < len(symbols) else None
            place = _place(size, next_size, by_size, expected) if period > 1 or position == 0 else FOREIGN
        if place != FOREIGN:
            phases[position] = place
            expected = (place + 1) % period
    return phases


def _place(symbol: int, following: int | None, accepted: list[set[int]], expected: int) -> int:
    """Return the nearest place from `expected` on that takes the symbol and lets the next one follow."""
    period = len(accepted)
    if symbol in accepted[expected]:
        return expected
    for skip in range(1, period):
        place = (expected + skip) % period
        if symbol in accepted[place] and (following is None or following in accepted[(place + 1) % period]):
            return place
    return FOREIGN


def _learn(symbols: Ints, phases: Ints, period: int) -> dict[int, int]:
    """Find symbols of no place that recur with the period: graphs of another batch size."""
    votes: dict[int, Counter[int]] = {}
    last = FOREIGN
    for position in np.flatnonzero(phases == FOREIGN).tolist():
        known = np.flatnonzero(phases[:position] != FOREIGN)
        last = int(known[-1]) if len(known) else FOREIGN
        recurs = any(
            0 <= other < len(symbols) and symbols[other] == symbols[position]
            for other in (position - period, position + period)
        )
        if last != FOREIGN and recurs:
            place = (int(phases[last]) + position - last) % period
            votes.setdefault(int(symbols[position]), Counter())[place] += 1
    return {symbol: count.most_common(1)[0][0] for symbol, count in votes.items() if count.total() > 1}


def _rotated(lane: Lane, phases: Ints, period: int, host_work: Ints) -> Ints:
    """Turn the cycle so that it begins after its longest stretch of host work, else its widest gap."""
    if period == 1:
        return phases
    starts, ends = lane.replays["start_ns"].to_numpy(), lane.replays["end_ns"].to_numpy()
    gap = np.full(len(starts), -1, np.int64)
    gap[1:] = np.maximum(starts[1:] - np.maximum.accumulate(ends)[:-1], 0)
    regular = np.zeros(len(phases), np.bool_)
    regular[1:] = (phases[1:] != FOREIGN) & (phases[1:] == (phases[:-1] + 1) % period)
    known = regular & (host_work >= 0)
    measure = host_work if known.any() else gap
    usable = known if known.any() else regular
    medians = [
        np.median(measure[usable & (phases == place)]) if (usable & (phases == place)).any() else -1
        for place in range(period)
    ]
    first = int(np.argmax(medians))
    return np.where(phases == FOREIGN, FOREIGN, (phases - first) % period)


def cycle_starts(cadence: Cadence) -> Ints:
    """Return the position of the first replay of each cycle.

    A replay of the same place again is a doubled launch of the same cycle. A first cycle that
    begins in its middle has no start: it precedes the steps.
    """
    matched = np.flatnonzero(cadence.phases != FOREIGN)
    phases = cadence.phases[matched]
    new = np.ones(len(matched), np.bool_)
    new[1:] = (phases[1:] < phases[:-1]) if cadence.period > 1 else True
    new[:1] = phases[:1] == 0
    return matched[new]
