"""From the reports of two sides to the change of every rank's mean step, and to how fast host and GPU were."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING

from bubblefinder.compare.delta.decompose import decomposed
from bubblefinder.compare.delta.side import account_of, side_of
from bubblefinder.compare.delta.speed import speed_of
from bubblefinder.compare.metrics import ranks
from bubblefinder.timeline.model import LEDGER_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.compare.delta.model import Delta, Speed
    from bubblefinder.compare.delta.side import Side
    from bubblefinder.compare.delta.tracer import Delay
    from bubblefinder.report.model import Report


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


def untold(base: Sequence[Report], head: Sequence[Report]) -> list[str]:
    """Return what the change can't be taken apart by, one sentence each."""
    notes = []
    if any(account_of(report, 0) is None for report in (*base, *head)):
        notes.append(
            "A report without accounts of its steps can't be taken apart: give its capture, or analyse it again."
        )
    elif any(_unshaped(report) for report in (*base, *head)):
        notes.append("Reports don't tell how kernels were launched: give the captures to see other launch shapes.")
    return notes


def _sides(base: Sequence[Report], head: Sequence[Report]) -> Iterator[tuple[Side, Side]]:
    for rank in range(min(len(ranks(report)) for report in (*base, *head))):
        before, after = ([account_of(report, rank) for report in side] for side in (base, head))
        if all(account is not None for account in (*before, *after)):
            yield side_of([a for a in before if a]), side_of([a for a in after if a])


def _unshaped(report: Report) -> bool:
    """Tell a report whose replays were recorded node by node, and which doesn't say how the nodes were launched."""
    account = account_of(report, 0)
    return account is not None and any(len(role.names) > 1 and role.shapes is None for role in account.roles)


def _classes(side: Sequence[Report], rank: int) -> dict[str, float]:
    """Return the mean of every ledger class; what was not measured lies in the busy time."""
    means = [ranks(report)[rank].per_step for report in side]
    return {name: fmean((one[name].mean or 0.0) if name in one else 0.0 for one in means) for name in LEDGER_CLASSES}
