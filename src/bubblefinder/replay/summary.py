"""A correction as told to the user: medians, shares and their ranges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.overhead.model import Overhead
from bubblefinder.timeline.model import LEDGER_CLASSES
from bubblefinder.timeline.shares import BubbleShare, bubble_share

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from bubblefinder.overhead.model import Method
    from bubblefinder.replay.corrected import Corrected, TracedSteps


def summarise(
    steps: TracedSteps, middle: Corrected, ends: Sequence[Corrected], method: Method, parameters: dict[str, object]
) -> Overhead:
    """Return the correction as told to the user; a share whose range is wider than its value is withheld."""
    traced = float(np.median(steps.recorded.rows["duration_ns"].to_numpy()))
    has_replays = not steps.replays.is_empty()
    step, spread = middle.step_ns, [one.step_ns for one in ends]
    shares, ranges = shares_with_range(middle, ends, has_replays=has_replays)
    return Overhead(
        method=method,
        traced_step_ns=round(traced),
        corrected_step_ns=round(step),
        range_ns=(round(min(*spread, step)), round(max(*spread, step))),
        inflation=traced / step if step else None,
        unexplained_ns=middle.unplaced_ns,
        corrected=medians(middle.rows),
        corrected_roles=middle.roles,
        corrected_bubble_share=shares,
        corrected_bubble_share_range=ranges,
        parameters=parameters,
    )


def medians(rows: pl.DataFrame) -> dict[str, int | None]:
    """Return the p50 of the duration and of every class, null where unknown."""
    columns = {name: rows[f"{name}_ns"] for name in ("duration", *LEDGER_CLASSES)}
    return {
        name: None if values.null_count() else round(float(np.median(values.to_numpy())))
        for name, values in columns.items()
    }


def shares_with_range(
    middle: Corrected, ends: Sequence[Corrected], *, has_replays: bool
) -> tuple[BubbleShare, dict[str, tuple[float, float] | None]]:
    """Return the corrected shares and their ranges; intra-graph only where its range is no wider than its value."""
    shares = [bubble_share(one.rows, has_replays=has_replays) for one in (middle, *ends)]
    ranges: dict[str, tuple[float, float] | None] = {}
    for name in ("intra_graph", "inter_graph", "total"):
        known = [value for one in shares if (value := getattr(one, name)) is not None]
        ranges[name] = (min(known), max(known)) if known else None
    intra, spread = shares[0].intra_graph, ranges["intra_graph"]
    if intra is not None and spread and spread[1] - spread[0] > intra:
        return replace(shares[0], intra_graph=None, total=None), ranges
    return shares[0], ranges
