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
_STRETCH: Final = 8192
_LENGTH_RATIO: Final = 1.5
_NODES_RATIO: Final = 1.25
_GOOD: Final = 0.5
_NEAR_BEST: Final = 0.85
_TRUST_IDS: Final = 0.9
_SURE: Final = 0.6
_RARE: Final = 0.25
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
    seams = _eager_before(lane)
    looks = _symbols(np.column_stack((sizes, seams)))
    ids = _symbols(lane.replays["graph"].fill_null(-1).to_numpy().reshape(-1, 1))
    period, score, symbols = _choose_period(looks, ids)
    if not period:
        return None
    phases = _align(symbols, sizes, seams, period)
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
    """Return the shortest period whose score is near the best, and that score; 0 if nothing recurs.

    Of a long capture a stretch from the middle is enough to tell. A period that the capture holds only a few times
    has recurred less often, so it needs a better score.
    """
    middle = len(symbols) // 2
    symbols = symbols[max(middle - _STRETCH, 0) : middle + _STRETCH]
    longest = min(len(symbols) // 2, _MAX_PERIOD)
    scores = np.array([_score(symbols, period) for period in range(1, longest + 1)])
    if not len(scores) or scores.max() < _GOOD:
        return 0, 0.0
    borne_out = scores * (1 - np.arange(1, longest + 1) / len(symbols))
    period = int(np.flatnonzero(borne_out >= _NEAR_BEST * borne_out.max())[0]) + 1
    return period, float(scores[period - 1])


def _score(symbols: Ints, period: int) -> float:
    """Average, over the symbols, the share of occurrences that recur one period later.

    A symbol that comes once a cycle counts for less than one that comes often, but not in proportion: else the
    many alike pieces of a step would hide its end.
    """
    early, late = symbols[:-period], symbols[period:]
    seen = np.bincount(early, minlength=int(symbols.max()) + 1)
    again = np.bincount(early, weights=early == late, minlength=len(seen))
    often = seen >= max(1, min(2, len(symbols) // (4 * period)))
    if not often.any():
        return 0.0
    weights = seen[often] ** _RARE
    return float((again[often] / seen[often]) @ weights / weights.sum())


def _align(symbols: Ints, sizes: Ints, seams: Ints, period: int) -> Ints:
    """Give every replay its place in the cycle: by its symbol, else by its order, else by its size."""
    start = _commonest_window(symbols, period)
    accepted = [{int(symbol)} for symbol in symbols[start : start + period]]
    offset = -start % period
    phases = _walk(symbols, accepted, offset)
    for symbol, place in _learn(symbols, phases, period).items():
        accepted[place].add(symbol)
    phases = _in_order(_walk(symbols, accepted, offset), seams, period)
    return _by_size(phases, sizes, period)


def _commonest_window(symbols: Ints, period: int) -> int:
    """Return where the sequence of `period` symbols that comes most often comes first."""
    weights = np.random.default_rng(0).integers(1, 2**62, period)
    hashes = np.zeros(len(symbols) - period + 1, np.int64)
    for place, weight in enumerate(weights):
        hashes += weight * symbols[place : place + len(hashes)]
    _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    return int(first[np.argmax(counts)])


def _walk(symbols: Ints, accepted: list[set[int]], expected: int) -> Ints:
    phases = np.full(len(symbols), FOREIGN, np.int64)
    following = [*symbols[1:].tolist(), None]
    for position, symbol in enumerate(symbols.tolist()):
        place = _place(symbol, following[position], accepted, expected)
        if place != FOREIGN:
            phases[position] = place
            expected = (place + 1) % len(accepted)
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
    before = _last_known(phases)
    for position in np.flatnonzero(phases == FOREIGN).tolist():
        last = int(before[position])
        recurs = any(
            0 <= other < len(symbols) and symbols[other] == symbols[position]
            for other in (position - period, position + period)
        )
        if last >= 0 and recurs:
            place = (int(phases[last]) + position - last) % period
            votes.setdefault(int(symbols[position]), Counter())[place] += 1
    return {symbol: count.most_common(1)[0][0] for symbol, count in votes.items() if count.total() > 1}


def _last_known(phases: Ints) -> Ints:
    """Return the position of the last replay with a place up to each replay, -1 if there is none."""
    return np.maximum.accumulate(np.where(phases == FOREIGN, -1, np.arange(len(phases))))


def _in_order(phases: Ints, seams: Ints, period: int) -> Ints:
    """Place runs of unknown replays that fit between their neighbours and have before them what such places have.

    So a batch size seen only once is placed by its order in the step.
    """
    of_place = [seams[phases == place] for place in range(period)]
    usual = np.array([np.bincount(bits).argmax() if len(bits) else -1 for bits in of_place])
    placed = phases.copy()
    unknown = np.flatnonzero(phases == FOREIGN)
    for run in np.split(unknown, np.flatnonzero(np.diff(unknown) > 1) + 1):
        if not len(run) or run[0] == 0:
            continue
        places = (phases[run[0] - 1] + 1 + np.arange(len(run))) % period
        fits = run[-1] + 1 == len(phases) or phases[run[-1] + 1] == (places[-1] + 1) % period
        if fits and (usual[places] == seams[run]).all():
            placed[run] = places
    return placed


def _by_size(phases: Ints, sizes: Ints, period: int) -> Ints:
    """Place what is left by size alone: a replay whose neighbour was lost or doubled, or the first of all."""
    accepted = [set(sizes[phases == place].tolist()) for place in range(period)]
    following = [*sizes[1:].tolist(), None]
    placed = [*phases.tolist(), FOREIGN]
    last = FOREIGN
    for position, size in enumerate(sizes.tolist()):
        if placed[position] == FOREIGN and (period > 1 or position == 0):
            after = placed[position + 1]
            expected = (after - 1 if last == FOREIGN and after != FOREIGN else last + 1) % period
            placed[position] = _place(size, following[position], accepted, expected)
        last = placed[position] if placed[position] != FOREIGN else last
    return np.array(placed[:-1])


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
