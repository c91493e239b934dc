"""The waits of a launching thread that recur in its steps, whether or not any idle is charged to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.lookup import kept

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
    waits = kept(waits, waits["thread"] == waits["launcher"])
    window = mine.own(waits["window_index"])
    inside = pl.Series((window >= 0) & mine.decode[window])
    rows = waits.with_columns(window=pl.Series(window)).filter(inside & ~waits["joined"])
    begin = pl.Series(mine.starts[rows["window"].to_numpy()])
    rows = rows.with_columns(offset=rows["start_ns"] - begin, cost=pl.col("blocked_ns") + pl.col("bubble_ns"))
    sites = (
        rows.group_by("site")
        .agg(pl.col("offset").median(), pl.col("cost").sum(), steps=pl.col("window").n_unique())
        .join(causes.sites[["site", "group"]], on="site")
        .filter(pl.col("steps") >= RECURS * mine.steps)
        .sort("cost", descending=True)
        .head(MOST_SITES)
        .sort("offset", "site")
    )
    groups = sites["group"].unique(maintain_order=True)
    every = mine.rows_of(causes.sites)
    return [tuple(kept(every, every["group"] == group)["site"]) for group in groups]
