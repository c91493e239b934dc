"""A decode loop with a blocking read, taken through the stages that the details are drawn from."""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING

from bubblefinder.pipeline import Analysis
from bubblefinder.report.detail.windows import decode_windows, rank_of
from tests.loops import Loop

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.timeline.rank import Rank

STEPS = 8


class Analysed(Analysis):
    """What the details are drawn from."""

    @cached_property
    def rank(self) -> Rank:
        found = rank_of(self.steps)
        assert found is not None
        return found

    @cached_property
    def decode(self) -> pl.DataFrame:
        return decode_windows(self.steps, self.rank)


@cache
def loop(*, node_mode: bool = True) -> Analysed:
    """The loop of eight steps, in node or in graph mode."""
    made = Loop(node_mode=node_mode)
    for _ in range(STEPS):
        made.step()
    return Analysed(made.sketch.trace())
