"""Since when a metric moved: steps in its history, and what else changed with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from bubblefinder.compare.diff import GATE
from bubblefinder.compare.history import PastRun, runs, values
from bubblefinder.compare.metrics import METRICS, Metric, Where
from bubblefinder.compare.noise import Setting, line_between
from bubblefinder.errors import UsageError
from bubblefinder.units import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from sqlite_utils import Database

    from bubblefinder.compare.metrics import Key

MOST_RUNS: Final = 200
"""Steps are sought in at most so many runs: the search is quadratic."""
_STEP: Final = (GATE, (("rank", 0),))
_DEFINITIONS: Final = "definitions"
SHORTEST: Final = 2
"""Runs that make a level: one alone may be an outlier."""
_PENALTY: Final = 3.0
# The median of |x - y| for two draws of a normal distribution, over its standard deviation.
_MEDIAN_DIFFERENCE: Final = 0.954


@dataclass(frozen=True, slots=True)
class Point:
    """One run's value."""

    run: PastRun
    value: float


@dataclass(frozen=True, slots=True)
class Shift:
    """A step between two levels: the first run at the new level, the levels, and what else changed with it."""

    at: int
    before: float
    after: float
    changed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trend:
    """A metric over the runs of one label, oldest first. `Shift.at` is a position in `points`."""

    metric: Metric
    where: Where
    label: str
    points: tuple[Point, ...]
    shifts: tuple[Shift, ...]
    left_out: int = 0
    """Runs of older definitions than the newest: their numbers mean something else."""


def trend(database: Database, metric: str, label: str | None = None, where: Mapping[str, str] | None = None) -> Trend:
    """Return a metric's history with the runs since when it moved.

    Args:
        database: the history.
        metric: its id.
        label: whose runs; may be left out if the history has one label.
        where: the rank, role or severity; the first that the runs have if it is left out.

    Raises:
        UsageError: there is no such metric, label or value.
    """
    if metric not in METRICS:
        raise UsageError(f"there is no metric {metric!r}", hint="`bubblefinder metrics` lists them")
    chosen = _label(database, label)
    stored = [(run, values(database, run.id)) for run in runs(database, chosen)[-MOST_RUNS:]]
    key = _key(metric, where or {}, [table for _, table in stored])
    known = [(run, table) for run, table in stored if key in table]
    newest = max(int(run.facts[_DEFINITIONS]) for run, _ in known)
    told = [(run, table) for run, table in known if int(run.facts[_DEFINITIONS]) == newest]
    points = tuple(Point(run, table[key]) for run, table in told)
    setting = Setting(
        waiting=max(run.waiting for run, _ in told),
        step_ns=min(table.get(_STEP, table[key]) for _, table in told),
        ranks=1,
        reach=min(run.reach for run, _ in told),
    )
    return Trend(
        METRICS[metric], key[1], chosen, points, tuple(shifts(METRICS[metric], points, setting)), len(known) - len(told)
    )


def shifts(metric: Metric, points: Sequence[Point], setting: Setting) -> list[Shift]:
    """Return the steps that exceed the noise between captures."""
    return [
        Shift(at, before, after, tuple(_changed(points[at - 1].run, points[at].run)))
        for at, before, after in moves(metric, [point.value for point in points], setting)
    ]


def moves(metric: Metric, numbers: Sequence[float], setting: Setting) -> list[tuple[int, float, float]]:
    """Return where a new level begins that the noise between captures can't explain, and the means around it."""
    edges = [0, *_kept(metric, numbers, breaks(numbers), setting), len(numbers)]
    levels = [(begin, fmean(numbers[begin:end])) for begin, end in pairwise(edges)]
    return [(begin, before, after) for (_, before), (begin, after) in pairwise(levels)]


def breaks(numbers: Sequence[float]) -> list[int]:
    """Return where a piecewise constant fit breaks: least absolute deviations, and a price on every break.

    The price is a multiple of the scatter between neighbouring runs, so that noise alone buys none.
    """
    count = len(numbers)
    price = _PENALTY * _scatter(numbers) * math.log(max(count, 2))
    best = np.full(count + 1, np.inf)
    best[0] = -price
    last = [0] * (count + 1)
    costs = _deviations(np.asarray(numbers, np.float64))
    for end in range(SHORTEST, count + 1):
        starts = best[: end - SHORTEST + 1] + price + costs[: end - SHORTEST + 1, end]
        last[end] = int(starts.argmin())
        best[end] = starts[last[end]]
    found, at = list[int](), count
    while at > 0 and last[at] > 0:
        at = last[at]
        found.append(at)
    return found[::-1]


def _kept(metric: Metric, numbers: Sequence[float], found: list[int], setting: Setting) -> list[int]:
    """Drop the breaks between levels that differ by no more than the noise, smallest first."""
    kept = list(found)
    while kept:
        edges = [0, *kept, len(numbers)]
        sides = [(numbers[a:b], numbers[b:c]) for a, b, c in zip(edges, edges[1:], edges[2:], strict=False)]
        margins = [abs(fmean(r) - fmean(q)) - line_between(metric.noise, q, r, setting) for q, r in sides]
        least = min(range(len(kept)), key=margins.__getitem__)
        if margins[least] > 0:
            break
        del kept[least]
    return kept


def _deviations(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what numbers [start, end) deviate from their median in all, by start and end."""
    count = len(numbers)
    costs = np.zeros((count + 1, count + 1))
    for length in range(1, count + 1):
        parts = np.sort(sliding_window_view(numbers, length), axis=1)
        half = length // 2
        starts = np.arange(count - length + 1)
        costs[starts, starts + length] = parts[:, length - half :].sum(axis=1) - parts[:, :half].sum(axis=1)
    return costs


def _scatter(numbers: Sequence[float]) -> float:
    """Return the standard deviation between runs of one level, from neighbours so that steps don't count."""
    return median([abs(b - a) for a, b in pairwise(numbers)] or [0.0]) / _MEDIAN_DIFFERENCE


def _changed(before: PastRun, after: PastRun) -> list[str]:
    """Return what else differs between two runs, in words."""
    names = [name for name in before.facts | after.facts if before.facts.get(name) != after.facts.get(name)]
    return [f"{name}: {before.facts.get(name, UNKNOWN)} to {after.facts.get(name, UNKNOWN)}" for name in names]


def _label(database: Database, label: str | None) -> str:
    known = {run.label for run in runs(database)}
    if not known:
        raise UsageError("the history holds no runs", hint="`bubblefinder history add` stores one")
    if label is None and len(known) == 1:
        return known.pop()
    if label not in known:
        said = "there are several labels" if label is None else f"there are no runs labelled {label!r}"
        raise UsageError(said, hint=f"give one with --label: {', '.join(sorted(known))}")
    return label


def _key(metric: str, where: Mapping[str, str], tables: Sequence[Mapping[Key, float]]) -> Key:
    keys = dict.fromkeys(key for table in tables for key in table if key[0] == metric)
    fitting = [key for key in keys if all(str(dict(key[1]).get(name)) == value for name, value in where.items())]
    if not fitting:
        of = "".join(f" of {name} {value}" for name, value in where.items())
        raise UsageError(f"no run has {metric}{of}", hint="`bubblefinder history show RUN` lists what a run has")
    return fitting[0]
