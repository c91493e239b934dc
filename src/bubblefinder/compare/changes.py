"""Metric by metric: both sides' values, the line between a difference and noise, and on which side of it they lie."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import fsum, hypot
from typing import TYPE_CHECKING, Final, NamedTuple

from bubblefinder.compare.bootstrap import interval
from bubblefinder.compare.delta.tracer import without_tracer
from bubblefinder.compare.metrics import Better, Key, Measure, Metric, NoiseSource, measure
from bubblefinder.compare.model import LENGTHS, Change, Measured, Status
from bubblefinder.compare.noise import Setting, Spread, line_between

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.report.model import Report

# What a call that came or went can explain: the length of the step, and the idle time it is charged with.
_EXPLAINED: Final = frozenset(
    f"step.{name}.{statistic}"
    for name in ("duration", "host_late", "inter_graph", "bubble")
    for statistic in ("mean", "p50")
)
_RELATIVE: Final = ("waits.", "findings.", "bubble.share.", "corrected.bubble.share.", "launch.")
_OVERLAP: Final = "pdl.overlap.share"
TOLD_TO: Final = 0.05
"""What the tracer adds is known to this part of it: the middle of the nodes, and their mean, are 3 % apart."""
STALLS: Final = 3
"""So many steps longer than all of the other side's are no accident, however few they are among the steps."""
CHANCE: Final = 0.05
"""Three stalls in 60 steps spare 60 others in 4.6 % of the cases, and 20 others in 36 %."""


_Table = dict[Key, "list[Measure | None]"]
_Sides = tuple["Sequence[Report]", "Sequence[Report]"]


class _Both(NamedTuple):
    """A metric in every capture of both sides, and the value of either side; no captures where one never has it."""

    measures: tuple[Sequence[Measure | None], Sequence[Measure | None]]
    sides: tuple[Measured, Measured]

    @property
    def delta(self) -> float | None:
        """Return head's value less base's; null where either is unknown."""
        before, after = (side.value for side in self.sides)
        return after - before if before is not None and after is not None else None


class _Line(NamedTuple):
    """The difference that a metric must exceed: lowered where a call came or went, or for stalls that are no chance."""

    value: float | None = None
    explained: bool = False
    stalls: int = 0
    least: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What judges a difference besides the values themselves.

    Attributes:
        setting: the regime, the step's length and the floors.
        known: spread between captures of one thing from elsewhere (the history), by metric.
        explained_ns: what the calls that came minus those that went cost a step.
        paced_ns: what a step of head is longer by if all that its host does took as much longer as the calls of both.
        tracer: what tracing adds to the metrics of each capture, in ns; of base and of head. It is left out.
    """

    setting: Setting
    known: Mapping[Key, Spread] = field(default_factory=dict)
    explained_ns: float = 0.0
    paced_ns: float = 0.0
    tracer: tuple[Sequence[Mapping[Key, float]], Sequence[Mapping[Key, float]]] = ((), ())


def measures_of(side: Sequence[Report]) -> dict[Key, list[Measure | None]]:
    """Return each metric's measure in every capture of a side, null where a capture lacks it."""
    table: dict[Key, list[Measure | None]] = {}
    for number, report in enumerate(side):
        for one in measure(report):
            table.setdefault(one.key, [None] * len(side))[number] = one
    return table


def changes(base: Sequence[Report], head: Sequence[Report], evidence: Evidence, gates: frozenset[str]) -> list[Change]:
    """Return every metric that either side has, in the order of the catalogue."""
    before, after = measures_of(base), measures_of(head)
    keys = [*after, *(key for key in before if key not in after)]
    return [_change(key, (before, after), (base, head), evidence, gates) for key in keys]


def not_better_unseen(rows: Sequence[Change]) -> list[Change]:
    """Return the rows, none called better for waits or findings that a longer step has fewer of.

    A wait under which the GPU no longer runs dry, because it works longer, a finding that is no longer recognised, idle
    time that is a smaller share of more and launches that wait longer for a busier GPU are no gain.
    """
    longer = any(row.metric in LENGTHS and row.status == "worse" for row in rows)
    unsure = longer and {row.metric for row in rows if row.metric.startswith(_RELATIVE)}
    return [replace(r, status="changed") if unsure and r.metric in unsure and r.status == "better" else r for r in rows]


def as_much_overlap(rows: Sequence[Change]) -> list[Change]:
    """Return the rows, kernels that overlap called neither more nor fewer where the tracer lets nodes begin later.

    It is told from the program only where no node began to overlap or ceased to; what is left are the clock's steps.
    """
    later = any(row.tracer for row in rows)
    return [replace(r, status="changed") if later and r.metric == _OVERLAP and r.moved else r for r in rows]


def _change(
    key: Key, tables: tuple[_Table, _Table], sides: _Sides, evidence: Evidence, gates: frozenset[str]
) -> Change:
    """Return a metric as it was measured, judged by what is the program's own."""
    measured = _both(tables[0].get(key, []), tables[1].get(key, []))
    own = _without_tracer(measured, sides, evidence)
    metric = next(m.metric for row in measured.measures for m in row if m is not None)
    (before, after), delta = measured.sides, measured.delta
    line = _Line()
    status: Status = "gone" if not measured.measures[1] else "new" if not measured.measures[0] else "unknown"
    tracer = delta - own.delta if delta is not None and own.delta is not None else 0.0
    if own.delta is not None:
        line = _line(metric, own.sides, evidence.known.get(key, Spread()), evidence)
        line = _for_stalls(line, metric, own, evidence)
        line = line._replace(value=hypot(line.value or 0.0, TOLD_TO * tracer))
        status = _status(metric.better, own.delta, line.value or 0.0, apart=line.stalls > 0 or _apart(*own.sides))
    return Change(
        metric=metric.id,
        where=dict(key[1]),
        unit=metric.unit,
        better=metric.better,
        base=before,
        head=after,
        delta=delta,
        ratio=after.value / before.value if before.value and after.value is not None else None,
        threshold=line.value,
        explained=line.explained,
        stalls=line.stalls if line.least else 0,
        status=status,
        gated=metric.id in gates,
        tracer=tracer,
    )


def _without_tracer(measured: _Both, sides: _Sides, evidence: Evidence) -> _Both:
    """Return a metric without what tracing adds to it in single captures."""
    if not any(map(any, evidence.tracer)):
        return measured
    own = [
        [without_tracer(*told) for told in zip(row, side, added, strict=True)] if row else []
        for row, side, added in zip(measured.measures, sides, evidence.tracer, strict=True)
    ]
    return measured if own == list(map(list, measured.measures)) else _both(*own)


def _both(base: Sequence[Measure | None], head: Sequence[Measure | None]) -> _Both:
    return _Both((base, head), (_measured(base), _measured(head)))


def _measured(side: Sequence[Measure | None]) -> Measured:
    values = [m.value if m else None for m in side]
    known = [v for v in values if v is not None]
    bounds = None
    if len(side) == 1 and side[0] and side[0].samples:
        bounds = interval(side[0].samples, side[0].quantile)
    low, high = bounds or (None, None)
    steps = sum(len(m.samples) for m in side if m)
    mean = fsum(known) / len(known) if known else None
    return Measured(value=mean, captures=values, steps=steps, low=low, high=high)


def _line(metric: Metric, sides: tuple[Measured, Measured], known: Spread, evidence: Evidence) -> _Line:
    """Return the difference this metric must exceed to count; a call that came or went lowers it."""
    values = [[v for v in side.captures if v is not None] for side in sides]
    line = line_between(metric.noise, values[0], values[1], evidence.setting, known)
    base, head = (side.value for side in sides)
    if metric.id not in _EXPLAINED or base is None or head is None:
        return _Line(line)
    delta, least = head - base, _least(metric.noise, sides, evidence)
    explained = least < abs(delta) <= line and _explains(evidence, delta, least)
    return _Line(least if explained else line, explained=explained)


def _for_stalls(line: _Line, metric: Metric, own: _Both, evidence: Evidence) -> _Line:
    """Return the line with the stalls of the side whose mean is longer; those that chance doesn't make lower it.

    Stalls move the mean and not the median, and the interval of a mean with few stalls reaches down to no stall at all.
    """
    sides = own.sides
    longer = int((sides[1].value or 0.0) > (sides[0].value or 0.0))
    most = own.measures[longer], own.measures[1 - longer]
    least = max(line.value or 0.0, evidence.setting.stall_ns)
    stalls = _stalls(*most, least) if metric.id.endswith(".mean") else 0
    if not stalls:
        return line
    spared = (1 - stalls / sides[longer].steps) ** sides[1 - longer].steps
    if spared > CHANCE:
        return line._replace(stalls=stalls)
    return _Line(min(line.value or 0.0, _least(metric.noise, sides, evidence)), line.explained, stalls, least=True)


def _least(noise: NoiseSource, sides: tuple[Measured, Measured], evidence: Evidence) -> float:
    """Return the smallest difference of a metric that is ever called one."""
    return evidence.setting.least(noise, max(abs(side.value or 0.0) for side in sides))


def _explains(evidence: Evidence, delta: float, least: float) -> bool:
    """Tell whether calls that came or went account for at least half of a difference: then it isn't noise.

    Not where the host's pace alone could have made it, be that no more than hosts differ by on one machine: a line
    this low leaves no room for it.
    """
    called, paced = evidence.explained_ns, evidence.paced_ns
    by_calls = called * delta > 0 and abs(called) >= abs(delta) / 2
    return by_calls and (delta - paced) * delta > 0 and abs(delta - paced) > least


def _status(better: Better, delta: float, line: float, *, apart: bool) -> Status:
    if abs(delta) <= line or not apart:
        return "same"
    if better == "neither":
        return "changed"
    return "worse" if (delta > 0) == (better == "lower") else "better"


def _apart(base: Measured, head: Measured) -> bool:
    """Tell whether the steps inside the two captures alone could not have given either value."""
    if base.low is None or base.high is None or head.low is None or head.high is None:
        return True
    return base.low > head.high or head.low > base.high


def _stalls(longer: Sequence[Measure | None], other: Sequence[Measure | None], line: float) -> int:
    """Return how many steps are longer than all of the other side's, if they are few but some in every capture."""
    samples, others = ([one.samples for one in side if one] for side in (longer, other))
    if not samples or not others or not all(samples) or not all(others):
        return 0
    most = max(map(max, others)) + line
    found = [sum(value > most for value in one) for one in samples]
    return sum(found) if min(found) >= STALLS and 2 * sum(found) < sum(map(len, samples)) else 0
