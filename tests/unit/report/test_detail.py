"""The details as a whole."""

from __future__ import annotations

from dataclasses import replace

from bubblefinder.report.detail import detail
from bubblefinder.report.pictures import Detail
from bubblefinder.timeline.model import CaptureMode
from tests.unit.report.detail.analysed import STEPS, loop


def test_a_loop_has_all_of_them() -> None:
    one = loop()
    found = detail(one.timeline, one.steps, one.causes)
    assert found == detail(one.timeline, one.steps, one.causes, one.lane)
    assert found.gaps
    assert found.histograms
    assert found.kernels
    assert len(found.timelines) == 2
    assert {lead.role for lead in found.leads} == {"draft", "verify", "draft-extend"}
    assert found.launches_per_step == 5
    assert len(one.decode) < STEPS


def test_unseen_graph_work_and_no_steps_have_none() -> None:
    one = loop()
    unseen = replace(one.timeline, mode=CaptureMode.UNSEEN)
    assert detail(unseen, one.steps, one.causes) == Detail()
    assert detail(one.timeline, replace(one.steps, windows=one.steps.windows.clear()), one.causes) == Detail()
