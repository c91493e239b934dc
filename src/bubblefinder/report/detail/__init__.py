"""What the pictures need beyond the tables: gaps, kernels, histograms, launch leads and two drawn steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.report.charts import Detail
from bubblefinder.report.detail import kernels, tables, timelines
from bubblefinder.report.detail.account import accounts
from bubblefinder.report.detail.windows import decode_windows, rank_of
from bubblefinder.timeline.missing import untold

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.pipeline import Analysis
    from bubblefinder.timeline.rank import Rank

MOST_STEPS: Final = 256
"""Kernels and gaps are counted in so many steps at most, evenly spread: what comes in every step is in these."""


def detail(
    analysis: Analysis,
    rank: Rank | None = None,
    category: Callable[[str], str | None] = lambda _: None,
    *,
    launch_shapes: bool = False,
) -> Detail:
    """Return what the pictures show of one rank, or else of the lowest; nothing where graph work went unseen.

    `category` says what a kernel does by its name; `launch_shapes` reads how those of the steps were launched.
    """
    timeline, steps = analysis.timeline, analysis.steps
    drawn = rank or rank_of(steps)
    if drawn is None or untold(timeline):
        return Detail()
    decode = decode_windows(steps, drawn)
    idle, dropped = tables.idle_spans(timeline, drawn)
    counted = decode.gather_every(-(-len(decode) // MOST_STEPS))
    pieces = tables.idle_pieces(timeline, counted, drawn)
    read_shapes = timeline.trace.launch_shapes if launch_shapes else None
    work = kernels.decode_operations(timeline, steps, counted, drawn)
    return Detail(
        gaps=tables.gap_rows(timeline, steps, pieces, len(counted)),
        histograms=tables.histograms(pieces),
        leads=tables.lead_rows(timeline, steps, drawn),
        idle=idle,
        idle_dropped=dropped,
        counted_steps=len(counted),
        kernels=kernels.kernel_rows(work, len(counted), timeline.trace.names, category),
        runs=kernels.kernel_runs(work, len(counted), timeline.trace.names),
        launches_per_step=tables.launches_per_step(timeline, decode, drawn),
        pdl_overlap_share=kernels.overlap_share(work),
        timelines=timelines.step_timelines(analysis, decode, drawn),
        accounts=accounts(timeline, steps, analysis.causes, read_shapes() if read_shapes else None),
    )
