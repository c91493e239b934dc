"""Which part of the steps is idle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubblefinder.timeline.model import INTER_CLASSES

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, slots=True, kw_only=True)
class BubbleShare:
    """Idle over duration, totals over the decode steps; null where not measured."""

    intra_graph: float | None
    inter_graph: float | None
    total: float | None


UNKNOWN = BubbleShare(intra_graph=None, inter_graph=None, total=None)


def bubble_share(rows: pl.DataFrame, *, has_replays: bool) -> BubbleShare:
    """Return the shares of steps, rows of a ledger with duration_ns; null where the inside was not measured."""
    total = int(rows["duration_ns"].sum())
    if not total or rows["host_late_ns"].null_count():
        return UNKNOWN
    inter = sum(int(rows[f"{name}_ns"].sum()) for name in INTER_CLASSES)
    known = not rows["intra_graph_ns"].null_count()
    intra = int(rows["intra_graph_ns"].sum()) if known else None
    whole = inter + (intra or 0) if known or not has_replays else None
    return BubbleShare(
        intra_graph=None if intra is None else intra / total,
        inter_graph=inter / total,
        total=None if whole is None else whole / total,
    )
