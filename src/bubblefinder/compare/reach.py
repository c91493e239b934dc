"""By how much the host's noise alone may lengthen a step: all of it where the host barely keeps up, else none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bubblefinder.compare.delta.side import account_of, side_of
from bubblefinder.compare.delta.speed import host_ns
from bubblefinder.compare.metrics import ranks
from bubblefinder.compare.noise import Floors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.report.model import Report


def reach_of(report: Report, floors: Floors | None = None) -> float:
    """Return by which share a typical step grows if its host takes as much longer as hosts do by chance.

    A host that needs 98 % of a step and takes a tenth longer makes it 8 % longer, though the GPU never waits for it in
    this capture; one that needs 60 % makes it no longer. 0 for a report without accounts, whose host nobody knows.
    """
    host = (floors or Floors()).host
    shares = [_host_share(report, number) for number in range(len(ranks(report)))]
    return min(max([0.0, *((1 + host) * share - 1 for share in shares)]), host)


def reach_between(base: Sequence[Report], head: Sequence[Report], floors: Floors) -> float:
    """Return the same for two sides: noise must have led from one to the other, so of the two the lesser counts."""
    return min(max(reach_of(report, floors) for report in side) for side in (base, head))


def _host_share(report: Report, number: int) -> float:
    """Return what the host itself takes of a typical step of a rank; what only few steps take is no part of it."""
    account, steps = account_of(report, number), ranks(report)[number].per_step["duration"]
    if account is None or not steps.p50:
        return 0.0
    side = side_of([account])
    return (host_ns(side) - max(side.mean_ns - steps.p50, 0.0)) / steps.p50
