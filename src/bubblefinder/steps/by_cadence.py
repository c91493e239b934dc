"""The cadence of graph replays: how many make a cycle, and which part each of them plays in it.

Works on signatures, not on ids: graphs captured for another batch size have other ids but fall into
the same place. Survives missing, doubled and foreign launches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.steps import thresholds
from bubblefinder.steps.signatures import TO_HOST, symbols
from bubblefinder.steps.subperiods import steps_in_cycle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.signatures import Signatures

FOREIGN: Final = -1


@dataclass(frozen=True, slots=True)
class Cadence:
    """A repeating cycle of replays.

    Attributes:
        period: replays per cycle; a graph replayed again at once counts once.
        score: share of replays that recur one period later, averaged over the kinds of replay.
        phases: place of each replay in the cycle, 0 first; FOREIGN for replays that belong to none.
        starts: position of the first replay of each cycle.
    """

    period: int
    score: float
    phases: Ints
    starts: Ints


def find_cadence(signatures: Signatures) -> Cadence | None:
    """Return the cadence of a lane's replays, or none if nothing recurs at least twice.

    A speculative step drafts as often as it likes: a graph replayed again at once is one place of the cycle.
    """
    whole = _cadence(signatures)
    kept = ~_again(signatures)
    if kept.all():
        return whole
    once = _cadence(signatures.at(kept))
    if once is None or once.period == 1 or (whole and once.score < thresholds.NEAR_BEST * whole.score):
        return whole
    phases = once.phases[np.cumsum(kept) - 1]
    return Cadence(once.period, once.score, phases, np.flatnonzero(kept)[once.starts])


def _again(signatures: Signatures) -> Bools:
    """Tell replays of the graph that was replayed just before, without the read that came before the first of them.

    What came before the first replay of all the capture doesn't show.
    """
    again = np.zeros(len(signatures.ids), np.bool_)
    seams = signatures.seams
    read = (seams & TO_HOST) > 0
    read[0] |= read.any()
    first = 0
    for position in (np.flatnonzero(signatures.ids[1:] == signatures.ids[:-1]) + 1).tolist():
        if not again[position - 1]:
            first = position - 1
        within = seams[position] & seams[first] == seams[position] and not read[position]
        again[position] = read[first] and within
    return again


def _cadence(signatures: Signatures) -> Cadence | None:
    if len(signatures.kinds) < 2:  # noqa: PLR2004 - a cycle has to recur
        return None
    period, score, found = _choose_period(signatures)
    if not period:
        return None
    phases = _rotated(signatures, _align(signatures, found, period), period)
    if (alike := steps_in_cycle(signatures, phases, period)) > 1:
        period //= alike
        phases = _by_kind(signatures, np.where(phases == FOREIGN, FOREIGN, phases % period), period)
    return Cadence(period, score, phases, _cycle_starts(signatures, phases, period))


def _choose_period(signatures: Signatures) -> tuple[int, float, Ints]:
    """Return period, score, and the symbols it was found in.

    Signatures win over ids, since batch sizes change ids; but a run of graphs that all look alike and
    recur strictly by id are the pieces of one step (piecewise capture), not a step each.
    """
    seen, ids = symbols(np.column_stack((signatures.kinds, signatures.seams))), symbols(signatures.ids.reshape(-1, 1))
    by_look, look_score = _best_period(seen)
    by_id, id_score = _best_period(ids)
    pieces = by_id >= 3 * max(by_look, 1) and id_score >= thresholds.TRUST_IDS
    if pieces or (look_score < thresholds.SURE_PERIOD and id_score > look_score):
        return by_id, id_score, ids
    return by_look, look_score, seen


def _best_period(symbols: Ints) -> tuple[int, float]:
    """Return the shortest period whose score is near the best, and that score; 0 if nothing recurs.

    Of a long capture a stretch from the middle is enough to tell. A period that the capture holds only a few times
    has recurred less often, so it needs a better score.
    """
    middle = len(symbols) // 2
    symbols = symbols[max(middle - thresholds.PERIOD_STRETCH, 0) : middle + thresholds.PERIOD_STRETCH]
    longest = min(len(symbols) // 2, thresholds.MAX_PERIOD)
    trust = 1 - np.arange(1, longest + 2) / max(len(symbols), 1)
    scores: list[float] = []
    best = 0.0
    for score in _scores(symbols, longest):
        best = max(best, score * trust[len(scores)])
        scores.append(score)
        if best >= max(trust[len(scores)], thresholds.GOOD_PERIOD):  # which no longer period can exceed
            break
    if max(scores, default=0.0) < thresholds.GOOD_PERIOD:
        return 0, 0.0
    borne_out = np.array(scores) * trust[: len(scores)]
    period = int(np.flatnonzero(borne_out >= thresholds.NEAR_BEST * borne_out.max())[0]) + 1
    return period, scores[period - 1]


def _scores(symbols: Ints, longest: int) -> Iterator[float]:
    """Yield for each period, from 1 on, the average over the symbols of how many of them recur one period later.

    A symbol that comes once a cycle counts for less than one that comes often, but not in proportion: else the
    many alike pieces of a step would hide its end.
    """
    small = symbols.astype(np.min_scalar_type(int(symbols.max(initial=0))))
    seen = np.bincount(symbols)
    for period in range(1, longest + 1):
        seen[symbols[-period]] -= 1
        early = small[:-period]
        again = np.bincount(early[early == small[period:]], minlength=len(seen))
        often = seen >= max(1, min(2, len(symbols) // (4 * period)))
        weights = seen[often] ** thresholds.RARE_WEIGHT
        yield float((again[often] / seen[often]) @ weights / weights.sum()) if len(weights) else 0.0


def _align(signatures: Signatures, found: Ints, period: int) -> Ints:
    """Give every replay its place in the cycle: by its symbol, else by its order, else by its kind."""
    start = _commonest_window(found, period)
    accepted = [{int(symbol)} for symbol in found[start : start + period]]
    offset = -start % period
    phases = _walk(found, accepted, offset)
    if learned := _learn(signatures, found, phases, period):
        for symbol, place in learned.items():
            accepted[place].add(symbol)
        phases = _walk(found, accepted, offset)
    phases = _in_order(signatures, phases, period)
    return _by_id(signatures.ids, _by_kind(signatures, phases, period), period)


def _commonest_window(symbols: Ints, period: int) -> int:
    """Return where the sequence of `period` symbols that comes most often comes first."""
    weights = np.random.default_rng(0).integers(1, 2**62, period)
    hashes = np.zeros(len(symbols) - period + 1, np.int64)
    for place, weight in enumerate(weights):
        hashes += weight * symbols[place : place + len(hashes)]
    _, first, counts = np.unique(hashes, return_index=True, return_counts=True)
    return int(first[np.argmax(counts)])


def _walk(symbols: Ints, accepted: list[set[int]], expected: int) -> Ints:
    phases = []
    listed = symbols.tolist()
    for symbol, following in zip(listed, [*listed[1:], None], strict=True):
        place = expected if symbol in accepted[expected] else _place(symbol, following, accepted, expected)
        phases.append(place)
        if place != FOREIGN:
            expected = (place + 1) % len(accepted)
    return np.array(phases, np.int64)


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


def _learn(signatures: Signatures, found: Ints, phases: Ints, period: int) -> dict[int, int]:
    """Find symbols of no place that recur with the period: graphs of another batch size."""
    votes: dict[int, Counter[int]] = {}
    before = _last_known(phases)
    sizes = _usual(signatures.sizes, phases, period)
    for position in np.flatnonzero(phases == FOREIGN).tolist():
        last = int(before[position])
        recurs = any(
            0 <= other < len(found) and found[other] == found[position]
            for other in (position - period, position + period)
        )
        if last >= 0 and recurs:
            place = (int(phases[last]) + position - last) % period
            if _may_be(signatures.sizes[position], sizes[place]):
                votes.setdefault(int(found[position]), Counter())[place] += 1
    return {symbol: count.most_common(1)[0][0] for symbol, count in votes.items() if count.total() > 1}


def _usual(values: Ints, phases: Ints, period: int) -> Ints:
    """Return the median of each place, 0 where it has no replay."""
    of_place = [values[phases == place] for place in range(period)]
    return np.array([round(float(np.median(found))) if len(found) else 0 for found in of_place], np.int64)


def _may_be(size: int | Ints, usual: int | Ints) -> bool:
    """Tell whether graphs may be of another batch size: none grows by more than a factor."""
    larger, smaller = np.maximum(size, usual), np.minimum(size, usual)
    return bool(np.all((larger <= thresholds.ANOTHER_SIZE * smaller) | (np.asarray(usual) == 0)))


def _last_known(phases: Ints) -> Ints:
    """Return the position of the last replay with a place up to each replay, -1 if there is none."""
    return np.maximum.accumulate(np.where(phases == FOREIGN, -1, np.arange(len(phases))))


def _in_order(signatures: Signatures, phases: Ints, period: int) -> Ints:
    """Place runs of unknown replays that fit between their neighbours and have before them what such places have.

    So a batch size seen only once is placed by its order in the step.
    """
    of_place = [signatures.seams[phases == place] for place in range(period)]
    usual = np.array([np.bincount(bits).argmax() if len(bits) else -1 for bits in of_place])
    sizes = _usual(signatures.sizes, phases, period)
    placed = phases.copy()
    unknown = np.flatnonzero(phases == FOREIGN)
    for run in np.split(unknown, np.flatnonzero(np.diff(unknown) > 1) + 1):
        if not len(run) or run[0] == 0:
            continue
        places = (phases[run[0] - 1] + 1 + np.arange(len(run))) % period
        fits = run[-1] + 1 == len(phases) or phases[run[-1] + 1] == (places[-1] + 1) % period
        if fits and (usual[places] == signatures.seams[run]).all() and _may_be(signatures.sizes[run], sizes[places]):
            placed[run] = places
    return placed


def _by_kind(signatures: Signatures, phases: Ints, period: int) -> Ints:
    """Place what is left by its kind alone: a replay whose neighbour was lost or doubled, or the first of all.

    Where a cycle is one replay, a doubled one is told from a step by the host's work before it.
    """
    accepted = [set(signatures.kinds[phases == place].tolist()) for place in range(period)]
    following = [*signatures.kinds[1:].tolist(), None]
    worked = _as_before_a_step(signatures.host_work, phases)
    if period == 1:
        usual = _usual(signatures.sizes, phases, period)[0]
        begun = np.isin(signatures.kinds, list(accepted[0])) | (np.arange(len(phases)) > np.argmax(phases != FOREIGN))
        begins = worked & begun & np.array([_may_be(size, usual) for size in signatures.sizes.tolist()])
        begins[0] |= signatures.kinds[0] in accepted[0]
        return np.where(begins, 0, phases)
    if (phases != FOREIGN).all():
        return phases
    placed = [*phases.tolist(), FOREIGN]
    last = FOREIGN
    for position, kind in enumerate(signatures.kinds.tolist()):
        if placed[position] == FOREIGN:
            after = placed[position + 1]
            expected = (after - 1 if last == FOREIGN and after != FOREIGN else last + 1) % period
            placed[position] = _place(kind, following[position], accepted, expected)
        last = placed[position] if placed[position] != FOREIGN else last
    return np.array(placed[:-1])


def _by_id(ids: Ints, phases: Ints, period: int) -> Ints:
    """Move the replays of a graph that nearly always has one place to that place.

    The first replays of a capture, and those after a loss, may look like those of another place.
    """
    graph = np.unique(ids, return_inverse=True)[1].reshape(-1)
    pairs = graph * (period + 1) + phases + 1
    seen, count = np.unique(pairs, return_counts=True)
    order = np.argsort(count, kind="stable")
    commonest, times = np.full(graph.max() + 1, FOREIGN), np.zeros(graph.max() + 1, np.int64)
    owner = seen[order] // (period + 1)
    commonest[owner], times[owner] = seen[order] % (period + 1) - 1, count[order]
    settled = (times >= thresholds.FEWEST) & (times >= thresholds.SETTLED * np.bincount(graph)) & (commonest != FOREIGN)
    return np.where((phases != FOREIGN) & settled[graph], commonest[graph], phases)


def _as_before_a_step(host_work: Ints, phases: Ints) -> Bools:
    """Tell the replays before which the host worked about as long as it does before a cycle."""
    usual = host_work[(phases == 0) & (host_work >= 0)]
    return host_work >= thresholds.COMPARABLE * np.median(usual) if len(usual) else np.zeros(len(phases), np.bool_)


def _rotated(signatures: Signatures, phases: Ints, period: int) -> Ints:
    """Turn the cycle so that it begins after its longest stretch of host work, else its widest gap."""
    if period == 1:
        return phases
    regular = np.zeros(len(phases), np.bool_)
    regular[1:] = (phases[1:] != FOREIGN) & (phases[1:] == (phases[:-1] + 1) % period)
    known = regular & (signatures.host_work >= 0)
    measure = signatures.host_work if known.any() else signatures.idle
    usable = known if known.any() else regular
    medians = [
        np.median(measure[usable & (phases == place)]) if (usable & (phases == place)).any() else -1
        for place in range(period)
    ]
    first = int(np.argmax(medians))
    return np.where(phases == FOREIGN, FOREIGN, (phases - first) % period)


def _cycle_starts(signatures: Signatures, phases: Ints, period: int) -> Ints:
    """Return the position of the first replay of each cycle.

    A replay of the same place again is a doubled launch of the same cycle, unless the host worked before it as
    before a cycle: then what lies between was lost. A first cycle that begins in its middle, be it that of its first
    replay, has no start: it precedes the steps.
    """
    matched = np.flatnonzero(phases != FOREIGN)
    places, worked = phases[matched], _as_before_a_step(signatures.host_work, phases)[matched]
    new = np.ones(len(matched), np.bool_)
    if period > 1:
        new[1:] = (places[1:] < places[:-1]) | ((places[1:] == places[:-1]) & worked[1:])
    new[:1] = (places[:1] == 0) & (signatures.whole or matched[0] > 0)
    return matched[new]
