"""The details as a whole."""

from __future__ import annotations

from bubblefinder.pipeline import Analysis
from bubblefinder.report.charts import Detail
from bubblefinder.report.detail import detail
from bubblefinder.timeline.model import CaptureMode
from bubblefinder.trace.drawn import draw
from tests.unit.causes.test_facts_build import UNSEEN
from tests.unit.report.detail.analysed import STEPS, loop


def test_a_loop_has_all_of_them() -> None:
    one = loop()
    found = detail(one)
    assert found == detail(one, one.rank)
    assert found.gaps
    assert found.histograms
    assert found.kernels
    assert len(found.timelines) == 2
    assert {lead.role for lead in found.leads} == {"draft", "verify", "draft-extend"}
    assert found.launches_per_step == 5
    assert len(one.decode) < STEPS


def test_unseen_graph_work_and_no_steps_have_none() -> None:
    unseen = Analysis(draw(UNSEEN))
    assert unseen.timeline.mode is CaptureMode.UNSEEN
    assert detail(unseen) == Detail()
    assert detail(Analysis(draw("api | A..B\ngpu0 | .A...B"))) == Detail()
