"""Decode steps: windows that tile each GPU's timeline, and the roles that replays play in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.trace.model import QualityNote


Confidence = Literal["low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class Steps:
    """The windows of every (GPU, process) with a cadence.

    Attributes:
        method: nvtx, cadence, sequence, kernel or none.
        confidence: low, medium or high.
        mark: the NVTX text or the pattern that cut the steps, else null.
        windows: index (per GPU and process), gpu, process, start_ns, end_ns, excluded (null for a
            decode step, else head, tail, capture_start or prefill). The windows of one (GPU,
            process) tile the GPU's span. Sorted by (gpu, process, start_ns).
        replays: one row a replay of the timeline, in its order: window_index (position in `windows`,
            null before the first), role (String), and position in the step.
        notes: what finding the steps found out.
    """

    method: str
    confidence: Confidence
    mark: str | None
    windows: pl.DataFrame
    replays: pl.DataFrame
    notes: tuple[QualityNote, ...] = ()
