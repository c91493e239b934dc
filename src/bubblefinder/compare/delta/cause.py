"""Why the step changed: its parts, how fast host and GPU were, and the suspects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.delta.build import deltas_of, untold
from bubblefinder.compare.delta.normalise import accounted_for, left_out, slower_machine
from bubblefinder.compare.delta.suspect import STRUCTURAL, WARM_UP, offsetting, on_host, suspects
from bubblefinder.compare.delta.warmup import warming_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.compare.delta.model import Delta, Speed, Suspect
    from bubblefinder.compare.delta.tracer import Delay
    from bubblefinder.compare.model import Change
    from bubblefinder.report.model import Report


_MOVED: Final = frozenset({"better", "worse"})
MEAN: Final = "step.duration.mean"
_LENGTHS: Final = frozenset({MEAN, "step.duration.p50"})


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the step changed.

    Attributes:
        deltas: the change of each rank's mean step in parts.
        speed: how fast host and GPU were; null where nobody knows.
        suspects: what explains the change, most first; empty where no gated metric moved.
        excuse: in words, that another speed of host or GPU accounts for it; null if not.
        notes: what the change can't be taken apart by.
        offsets: in words, what changed by more than the noise though the step did not.
    """

    deltas: tuple[Delta, ...] = ()
    speed: Speed | None = None
    suspects: tuple[Suspect, ...] = ()
    excuse: str | None = None
    notes: tuple[str, ...] = ()
    offsets: tuple[str, ...] = ()


def _though(found: Sequence[Suspect]) -> str:
    """Return what an excuse leaves open: whether the program changed besides."""
    change = next((one.sentence for one in found if one.kind in STRUCTURAL), None)
    return f", though the program changed: {change}" if change else ", so the program may be the same"


def _without_gaps(delta: Delta) -> Delta:
    """Return a change without what the tracer adds to it."""
    parts = [part for part in delta.parts if part.kind != "node gaps"]
    gaps = sum(part.delta_ns for part in delta.parts) - sum(part.delta_ns for part in parts)
    return replace(delta, parts=parts, delta_ns=delta.delta_ns - gaps)


def cause_of(
    base: Sequence[Report],
    head: Sequence[Report],
    rows: Sequence[Change],
    delays: Sequence[Delay],
    speed: Speed | None,
) -> Cause:
    """Return why a step became longer or shorter from base to head; the parts alone where none did.

    Suspects explain the mean step: where only its tail or something else moved, there are none.

    Args:
        base: the captures of one side.
        head: those of the other.
        rows: every metric, judged.
        delays: by how much nodes begin later, by rank.
        speed: how fast host and GPU of the first rank were; null where nobody knows.
    """
    deltas = deltas_of(base, head, delays)
    told = all(delay.tracers for delay in delays)
    own = [_without_gaps(delta) for delta in deltas] if told else deltas
    moved = any(row.gated and row.status in _MOVED for row in rows)
    longer = any(row.metric in _LENGTHS and row.status in _MOVED for row in rows)
    found = suspects(own, speed, warming_ns(base, head)) if moved and longer and speed else []
    sure = any(one.kind == WARM_UP or one.confidence == "high" for one in found[:1])
    total = max((delta.delta_ns for delta in own), key=abs, default=0)
    on = {"alone": len(base) == len(head) == 1, "on_host": on_host(found), "left_out": told}
    excuse = accounted_for(rows, speed, **on) if moved and not sure else None
    notes = [*(untold(base, head) if moved else []), *(left_out(rows, speed) if told else [])]
    warming = any(one.kind == WARM_UP for one in found)
    if moved and not excuse and not warming and (slower := slower_machine(speed, total, on_host=on_host(found))):
        notes = [slower, *notes]
    if excuse:
        excuse = f"{excuse}{_though(found)}."
    line = _line_ns(rows)
    offsets = offsetting(own, speed, line) if speed and not moved and abs(total) <= line else []
    return Cause(tuple(deltas), speed, () if excuse else tuple(found), excuse, tuple(notes), tuple(offsets))


def _line_ns(rows: Sequence[Change]) -> float:
    """Return what the mean step must change by to count."""
    return max((row.threshold or 0.0 for row in rows if row.metric == MEAN), default=0.0)
