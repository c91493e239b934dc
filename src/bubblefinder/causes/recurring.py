"""The waits of a launching thread that recur in its steps, whether or not any idle is charged to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.intervals import median

if TYPE_CHECKING:
    from bubblefinder.causes.decode import RankSteps
    from bubblefinder.causes.model import Causes

MOST_SITES: Final = 16
"""So many sites are looked at: those that hold the host longest or open the most idle."""
RECURS: Final = 0.5
"""A site recurs if it is in this share of the steps."""


def recurring_groups(causes: Causes, mine: RankSteps) -> list[tuple[int, ...]]:
    """Return the groups of sites that recur in the steps, in the order of the step."""
    waits = mine.rows_of(causes.waits)
    window = mine.own(waits["window_index"])
    own = (waits["thread"] == waits["launcher"]) & ~waits["joined"]
    counted = own.to_numpy() & (window >= 0) & mine.decode[window]
    site, window = waits["site"].to_numpy()[counted], window[counted]
    offset = waits["start_ns"].to_numpy()[counted] - mine.starts[window]
    cost = (waits["blocked_ns"] + waits["bubble_ns"]).to_numpy()[counted]
    found = []
    known, counts = np.unique(site, return_counts=True)
    for one in known[counts >= RECURS * mine.steps].tolist():  # the others recur in fewer steps
        at = site == one
        if len(np.unique(window[at])) >= RECURS * mine.steps:
            found.append((int(cost[at].sum()), median(offset[at]), one))
    dearest = sorted(found, key=lambda one: -one[0])[:MOST_SITES]
    group_of = dict(mine.rows_of(causes.sites)[["site", "group"]].iter_rows())
    groups = dict.fromkeys(group_of[one] for _, _, one in sorted(dearest, key=lambda one: one[1:]))
    return [tuple(site for site, group in group_of.items() if group == wanted) for wanted in groups]
