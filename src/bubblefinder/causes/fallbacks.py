"""In which steps an eager phase runs, and which graph it runs instead of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bubblefinder.causes.decode import RankSteps, p50
from bubblefinder.lookup import kept

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.intervals import Bools, Ints


def where_it_runs(lane: RankSteps, spans: pl.DataFrame, phase: str) -> dict[str, Any]:
    """Return the fields of `RoleFacts` that tell the steps with an eager phase from those without.

    Args:
        lane: whose steps.
        spans: all replays and phases, from `role_facts.find_spans`.
        phase: its role.
    """
    having = lane.counted & (_per_window(lane, kept(spans, spans["role"] == phase)) > 0)
    lacking = lane.counted & ~having
    decode = having[lane.decode]
    return {
        "steps": int(lane.counted.sum()),
        "steps_affected": int(having.sum()),
        "steps_share": float(decode.mean()) if lane.steps else None,
        "instead_of": _missing(lane, spans, having, lacking),
        "step_with_p50_ns": p50(lane.durations[decode]),
        "step_without_p50_ns": p50(lane.durations[~decode]),
    }


def _missing(lane: RankSteps, spans: pl.DataFrame, having: Bools, lacking: Bools) -> tuple[str, ...]:
    """Return the roles of which every step with the phase replays fewer graphs than most steps without it do."""
    if not having.any() or not lacking.any():
        return ()
    replays = kept(spans, ~spans["eager"]).partition_by("role", as_dict=True, maintain_order=True)
    counts = {str(role): _per_window(lane, mine) for (role,), mine in replays.items()}
    return tuple(role for role, count in counts.items() if count[having].max() < np.median(count[lacking]))


def _per_window(lane: RankSteps, spans: pl.DataFrame) -> Ints:
    window = spans["window"].to_numpy()
    return np.bincount(window[window >= 0], minlength=len(lane.starts))
