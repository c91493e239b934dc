"""Stages run when they are asked for, once, and only what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import bubblefinder
from bubblefinder.errors import CannotAnswerError
from bubblefinder.pipeline import Analysis
from bubblefinder.trace.drawn import draw
from tests.loops import Loop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STAGES = ["timeline", "steps", "causes", "what if"]


def capture() -> Loop:
    made = Loop()
    for _ in range(8):
        made.step()
    return made


def test_a_stage_runs_once_and_only_those_it_builds_on_run_before_it() -> None:
    begun: list[str] = []
    analysis = Analysis(capture().sketch.trace(), progress=begun.append)
    assert begun == []
    assert analysis.steps.windows.height
    assert begun == STAGES[:2]
    assert analysis.study.fixes
    assert analysis.recoverable.sites.keys() == {site.sites for site in analysis.facts.sites}
    assert begun == STAGES
    assert analysis.model is analysis.study.model


def test_the_window_and_the_way_to_find_steps_are_kept() -> None:
    trace = capture().sketch.trace()
    whole, marked = Analysis(trace), Analysis(trace, step_by="nvtx:decode_step")
    half = Analysis(trace, window=(0, whole.timeline.devices[0].end_ns // 2))
    assert marked.steps.mark == "decode_step"
    assert 0 < len(half.timeline.operations) < len(whole.timeline.operations)


def test_a_capture_without_a_step_has_no_run_to_change() -> None:
    analysis = Analysis(draw("api | A..B\ngpu0 | .A...B"))
    assert analysis.model is None
    assert analysis.recoverable.sites == {}
    with pytest.raises(CannotAnswerError, match="no decode step"):
        _ = analysis.study


def test_the_library_gives_the_analysis_again_and_again(sample: Callable[[str], Path]) -> None:
    first, second = (bubblefinder.analysis(sample("nextn_before.node")) for _ in range(2))
    assert first.steps.windows.equals(second.steps.windows)
