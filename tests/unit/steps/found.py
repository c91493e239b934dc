"""What tests ask of the steps found in a capture."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline

if TYPE_CHECKING:
    from bubblefinder.steps.model import Steps
    from bubblefinder.trace.model import Trace

WITH_AND_WITHOUT = pytest.mark.parametrize("nvtx", [True, False], ids=["nvtx", "no nvtx"])


def steps_of(trace: Trace, *, nvtx: bool = True, step_by: str | None = None) -> Steps:
    return find_steps(build_timeline(trace if nvtx else replace(trace, nvtx=trace.nvtx.clear())), step_by)


def begins(steps: Steps, gpu: int = 0, process: int | None = None) -> list[int]:
    """Where each window but the head begins."""
    mine = (pl.col("gpu") == gpu) & (pl.col("excluded").fill_null("") != "head")
    windows = steps.windows.filter(mine)
    return (
        windows.filter(pl.col("process") == process)["start_ns"].to_list() if process else windows["start_ns"].to_list()
    )


def step_begins(steps: Steps) -> list[int]:
    """Where each decode step begins, of all regimes, be it the first or the last."""
    counted = pl.col("excluded").fill_null("").is_in(["", "tail", "capture_start", "other_regime"])
    return steps.windows.filter(counted)["start_ns"].to_list()


def reasons(steps: Steps) -> list[str | None]:
    return steps.windows["excluded"].to_list()


def told_roles(named: bool) -> list[str]:
    """The roles of `SPECULATIVE`: without any name nothing tells of a language model."""
    return ["draft", "verify", "draft-extend"] if named else ["side 1", "main", "side 2"]
