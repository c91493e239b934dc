"""Why the step changed: its parts on every rank, how fast host and GPU were, and the suspects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.delta.decompose import decomposed
from bubblefinder.compare.delta.normalise import accounted_for, left_out, slower_machine
from bubblefinder.compare.delta.side import Side, account_of, shared_accounts, side_of
from bubblefinder.compare.delta.speed import speed_of
from bubblefinder.compare.delta.suspect import STRUCTURAL, WARM_UP, offsetting, on_host, suspects
from bubblefinder.compare.metrics import decode_rows, ranks
from bubblefinder.compare.model import LENGTHS, Change
from bubblefinder.timeline.model import LEDGER_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.compare.delta.model import Delta, Speed, Suspect
    from bubblefinder.compare.delta.tracer import Delay
    from bubblefinder.report.model import Report

STANDS_OUT: Final = 1.02
MADS: Final = 5
FEWEST: Final = 2
"""A single long first step is kept out of the statistics already."""


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

    Suspects explain the mean step: where only its tail or something else moved, there are none. `delays` are by rank,
    `speed` is that of the first one, null where nobody knows.
    """
    deltas = deltas_of(base, head, delays)
    told = all(delay.tracers for delay in delays)
    own = [_without_gaps(delta) for delta in deltas] if told else deltas
    moved = any(row.gated and row.moved for row in rows)
    longer = any(row.metric in LENGTHS and row.moved for row in rows)
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
    line = max((row.threshold or 0.0 for row in rows if row.metric == LENGTHS[0]), default=0.0)
    offsets = offsetting(own, speed, line) if speed and not moved and abs(total) <= line else []
    return Cause(tuple(deltas), speed, () if excuse else tuple(found), excuse, tuple(notes), tuple(offsets))


def deltas_of(base: Sequence[Report], head: Sequence[Report], delays: Sequence[Delay]) -> list[Delta]:
    """Return the change of the mean step of every rank that all captures have; none where one has no accounts."""
    return [
        decomposed(rank, before, after, (_classes(base, rank), _classes(head, rank)), delays[rank])
        for rank, (before, after) in enumerate(_sides(base, head))
    ]


def speed_between(base: Sequence[Report], head: Sequence[Report], delays: Sequence[Delay]) -> Speed | None:
    """Return how fast host and GPU of the first rank were; null where a capture has no accounts."""
    first = next(iter(_sides(base, head)), None)
    return speed_of(*first, delays[0]) if first else None


def untold(base: Sequence[Report], head: Sequence[Report]) -> Iterator[str]:
    """Yield what the change can't be taken apart by, one sentence each."""
    if any(account_of(report, 0) is None for report in (*base, *head)):
        yield "A report without accounts of its steps can't be taken apart: give its capture, or analyse it again."
    elif any(_unshaped(report) for report in (*base, *head)):
        yield "Reports don't tell how kernels were launched: give the captures to see other launch shapes."


def _sides(base: Sequence[Report], head: Sequence[Report]) -> Iterator[tuple[Side, Side]]:
    for known in shared_accounts([*base, *head]):
        yield side_of(known[: len(base)]), side_of(known[len(base) :])


def _unshaped(report: Report) -> bool:
    """Tell a report whose replays were recorded node by node, and which doesn't say how the nodes were launched."""
    account = account_of(report, 0)
    return account is not None and any(len(role.names) > 1 and role.shapes is None for role in account.roles)


def _classes(side: Sequence[Report], rank: int) -> dict[str, float]:
    """Return the mean of every ledger class; what was not measured lies in the busy time."""
    means = [ranks(report)[rank].per_step for report in side]
    return {name: fmean((one[name].mean or 0.0) if name in one else 0.0 for one in means) for name in LEDGER_CLASSES}


def warming_ns(base: Sequence[Report], head: Sequence[Report]) -> float:
    """Return what the first steps of head, in excess of base's, add to its mean step by being longer than the rest."""
    before, after = (fmean(_excess(report) for report in side) for side in (base, head))
    return after - before


def _excess(report: Report) -> float:
    lengths = [row.duration_ns for row in decode_rows(report, ranks(report)[0])]
    rest = lengths[len(lengths) // 2 :]
    middle = median(rest)
    line = max(STANDS_OUT * middle, middle + MADS * median(abs(length - middle) for length in rest))
    first = next((number for number, length in enumerate(lengths) if length <= line), len(lengths))
    if not FEWEST <= first <= len(lengths) // 2:
        return 0.0
    return sum(length - middle for length in lengths[:first]) / len(lengths)
