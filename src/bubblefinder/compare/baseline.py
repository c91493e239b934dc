"""What a report is held against: the values of earlier captures of the same thing."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.changes import measures_of
from bubblefinder.compare.comparable import refusals
from bubblefinder.compare.delta.tracer import traced_as
from bubblefinder.compare.metrics import Key, Measure, ranks
from bubblefinder.compare.noise import Setting, line_between, waiting_of
from bubblefinder.compare.reach import reach_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.report.model import Report


TRACED: Final = ", as if traced like this capture"


@dataclass(frozen=True, slots=True)
class Baseline:
    """Values by metric, one a capture that knows it.

    Attributes:
        values: what the captures measured, brought to how the report at hand was traced.
        waiting: the largest share of a typical step that any of them waits for the host.
        step_ns: the mean length of a step.
        reach: by which share the host's noise alone may lengthen a step, where it barely keeps up.
        captures: how many there are.
        origin: where they come from, in words.
        refusals: why the report at hand can't be held against them; empty if it can.
        unlike: in words, what sets other runs of its label apart from it where none is comparable.
        excuse: in words, that a slower host or GPU accounts for a longer step; times can't be judged then.
    """

    values: Mapping[Key, tuple[float, ...]]
    waiting: float
    step_ns: float
    captures: int
    origin: str
    refusals: tuple[str, ...] = ()
    unlike: str = ""
    excuse: str = ""
    reach: float = 0.0


@dataclass(frozen=True, slots=True)
class Distance:
    """How far a value lies from the baseline's mean, and how far it may."""

    mean: float
    delta: float
    line: float


def of_reports(reports: Sequence[Report], report: Report) -> Baseline:
    """Return the baseline that these reports make for `report`."""
    table, more = measures_of(reports), traced_as(report, reports)
    values = {
        key: tuple(m.value + add.get(key, 0.0) for m, add in zip(row, more, strict=True) if m and m.value is not None)
        for key, row in table.items()
    }
    measurable = [r for r in reports if ranks(r)]
    return Baseline(
        values={key: known for key, known in values.items() if known},
        waiting=max((waiting_of(r) for r in measurable), default=0.0),
        step_ns=fmean([step_ns(r) for r in measurable]) if measurable else 0.0,
        captures=len(reports),
        origin=", ".join(r.trace.name for r in reports) + (TRACED if any(more) else ""),
        refusals=tuple(refusals(reports, [report])),
        reach=max(map(reach_of, measurable), default=0.0),
    )


def shift(baseline: Baseline, report: Report, measure: Measure) -> Distance | None:
    """Return where a measure of the report lies against the baseline; null if either doesn't know it."""
    known = baseline.values.get(measure.key)
    if not known or measure.value is None:
        return None
    setting = Setting(
        waiting=max(baseline.waiting, waiting_of(report)),
        step_ns=min(baseline.step_ns, step_ns(report)),
        ranks=len(ranks(report)),
        reach=min(baseline.reach, reach_of(report)),
    )
    mean = fsum(known) / len(known)
    line = line_between(measure.metric.noise, known, [measure.value], setting)
    return Distance(mean, measure.value - mean, line)


def step_ns(report: Report) -> float:
    """Return the median length of a decode step on the first rank."""
    return ranks(report)[0].per_step["duration"].p50 or 0.0
