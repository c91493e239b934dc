"""Metric by metric: both sides' values, the line between a difference and noise, and on which side of it they lie."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import fsum
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.bootstrap import interval
from bubblefinder.compare.metrics import Measure, NoiseSource, Where, measure
from bubblefinder.compare.model import Change, Measured
from bubblefinder.compare.noise import Setting, Spread, line_between

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.compare.metrics import Better
    from bubblefinder.compare.model import Status
    from bubblefinder.report.model import Report

Key = tuple[str, Where]

# What a call that came or went can explain: the length of the step, and the idle time it is charged with.
_EXPLAINED: Final = frozenset(
    f"step.{name}.{statistic}"
    for name in ("duration", "host_late", "inter_graph", "bubble")
    for statistic in ("mean", "p50")
)
_LENGTHS: Final = frozenset({"step.duration.mean", "step.duration.p50"})
_RELATIVE: Final = ("waits.", "findings.", "bubble.share.", "corrected.bubble.share.")
STALLS: Final = 3
"""So many steps longer than all of the other side's are no accident, however few they are among the steps."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What judges a difference besides the values themselves.

    Attributes:
        setting: the regime, the step's length and the floors.
        known: spread between captures of one thing from elsewhere (the history), by metric.
        explained_ns: what the calls that came minus those that went cost a step.
    """

    setting: Setting
    known: Mapping[Key, Spread] = field(default_factory=dict)
    explained_ns: float = 0.0


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
    return [_change(key, before.get(key), after.get(key), evidence, gates) for key in keys]


def not_better_unseen(rows: Sequence[Change]) -> list[Change]:
    """Return the rows, none called better for waits or findings that a longer step has fewer of.

    A wait under which the GPU no longer runs dry, because it works longer, a finding that is no longer recognised and
    idle time that is a smaller share of more are no gain.
    """
    longer = any(row.metric in _LENGTHS and row.status == "worse" for row in rows)
    unsure = longer and {row.metric for row in rows if row.metric.startswith(_RELATIVE)}
    return [replace(r, status="changed") if unsure and r.metric in unsure and r.status == "better" else r for r in rows]


def _change(
    key: Key,
    base: list[Measure | None] | None,
    head: list[Measure | None] | None,
    evidence: Evidence,
    gates: frozenset[str],
) -> Change:
    metric = next(m.metric for m in (*(base or ()), *(head or ())) if m is not None)
    before, after = _measured(base or []), _measured(head or [])
    delta = line = None
    explained = False
    status: Status = "gone" if head is None else "new" if base is None else "unknown"
    if before.value is not None and after.value is not None:
        delta = after.value - before.value
        line, explained = _line(metric.id, metric.noise, before, after, evidence.known.get(key, Spread()), evidence)
        apart = _apart(before, after) or _stalled(metric.id, (base, head), line)
        status = _status(metric.better, delta, line, apart=apart)
    return Change(
        metric=metric.id,
        where=dict(key[1]),
        unit=metric.unit,
        better=metric.better,
        base=before,
        head=after,
        delta=delta,
        ratio=after.value / before.value if before.value and after.value is not None else None,
        threshold=line,
        explained=explained,
        status=status,
        gated=metric.id in gates,
    )


def _measured(side: list[Measure | None]) -> Measured:
    values = [m.value if m else None for m in side]
    known = [v for v in values if v is not None]
    bounds = None
    if len(side) == 1 and side[0] and side[0].samples:
        bounds = interval(side[0].samples, side[0].quantile)
    low, high = bounds or (None, None)
    steps = sum(len(m.samples) for m in side if m)
    mean = fsum(known) / len(known) if known else None
    return Measured(value=mean, captures=values, steps=steps, low=low, high=high)


def _line(
    name: str, noise: NoiseSource, base: Measured, head: Measured, known: Spread, evidence: Evidence
) -> tuple[float, bool]:
    """Return the difference this metric must exceed to count, and whether a call that came or went lowers it."""
    sides = [[v for v in side.captures if v is not None] for side in (base, head)]
    line = line_between(noise, sides[0], sides[1], evidence.setting, known)
    if name not in _EXPLAINED or base.value is None or head.value is None:
        return line, False
    delta = head.value - base.value
    least = evidence.setting.least(noise, max(abs(base.value), abs(head.value)))
    explained = least < abs(delta) <= line and _explains(evidence.explained_ns, delta)
    return (least if explained else line), explained


def _explains(explained_ns: float, delta: float) -> bool:
    """Tell whether calls that came or went account for at least half of a difference: then it isn't noise."""
    return explained_ns * delta > 0 and abs(explained_ns) >= abs(delta) / 2


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


def _stalled(name: str, sides: tuple[list[Measure | None] | None, list[Measure | None] | None], line: float) -> bool:
    """Tell whether one side's steps hold stalls that the other's lack, which move the mean and not the median.

    The interval of a mean with few stalls reaches down to no stall at all; that they are there is no matter of chance.
    """
    samples = [[value for one in side or () if one for value in one.samples] for side in sides]
    if not name.endswith(".mean") or not all(samples):
        return False
    longest = [max(side) + line for side in samples]
    return any(sum(value > most for value in side) >= STALLS for side, most in zip(samples, longest[::-1], strict=True))
