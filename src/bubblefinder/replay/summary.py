"""A correction as told to the user: medians, shares and their ranges."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.overhead.model import Overhead
from bubblefinder.timeline.model import LEDGER_CLASSES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from bubblefinder.overhead.model import Method
    from bubblefinder.replay.corrected import Corrected, TracedSteps
    from bubblefinder.timeline.shares import BubbleShare


def summarise(
    steps: TracedSteps, middle: Corrected, ends: Sequence[Corrected], method: Method, parameters: dict[str, object]
) -> Overhead:
    """Return the correction as told to the user; a share whose range is wider than its value is withheld."""
    traced = float(np.median(steps.recorded.rows["duration_ns"].to_numpy()))
    step, spread = middle.step_ns, [one.step_ns for one in ends]
    shares, ranges = _shares_with_range([steps.bubble_share(one.rows) for one in (middle, *ends)])
    return Overhead(
        method=method,
        traced_step_ns=round(traced),
        corrected_step_ns=round(step),
        range_ns=(round(min(*spread, step)), round(max(*spread, step))),
        inflation=traced / step if step else None,
        unexplained_ns=middle.unplaced_ns,
        corrected=_medians(middle.rows),
        corrected_roles=middle.roles,
        corrected_bubble_share=shares,
        corrected_bubble_share_range=ranges,
        parameters=parameters,
    )


def _medians(rows: pl.DataFrame) -> dict[str, int | None]:
    """Return the p50 of the duration and of every class, null where unknown."""
    columns = {name: rows[f"{name}_ns"] for name in ("duration", *LEDGER_CLASSES)}
    return {
        name: None if values.null_count() else round(float(np.median(values.to_numpy())))
        for name, values in columns.items()
    }


def _shares_with_range(
    shares: Sequence[BubbleShare],
) -> tuple[BubbleShare, dict[str, tuple[float, float] | None]]:
    """Return the first of some shares and their ranges; intra-graph only where its range is no wider than its value."""
    ranges: dict[str, tuple[float, float] | None] = {}
    for name in ("intra_graph", "inter_graph", "total"):
        known = [value for one in shares if (value := getattr(one, name)) is not None]
        ranges[name] = (min(known), max(known)) if known else None
    intra, spread = shares[0].intra_graph, ranges["intra_graph"]
    if intra is not None and spread and spread[1] - spread[0] > intra:
        return replace(shares[0], intra_graph=None, total=None), ranges
    return shares[0], ranges
