from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bubblefinder.errors import CannotAnswerError, UsageError
from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import analyze_trace
from bubblefinder.timeline.apis import CallRole
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.sketch import Sketch
from tests import samples
from tests.loops import Loop
from tests.unit.causes.test_facts_build import UNSEEN
from tests.unit.causes.test_role_facts import NODES

if TYPE_CHECKING:
    from bubblefinder.replay.study import Study


@pytest.fixture(scope="module")
def node() -> Study:
    return samples.analysis("nextn_before.node").study


def test_the_stages_are_told_as_they_begin() -> None:
    told: list[str] = []
    _ = Analysis(draw(NODES, us_per_char=1), progress=told.append).study
    assert told == ["timeline", "steps", "causes", "what if"]


def test_unseen_graph_work_and_missing_steps_cant_be_studied() -> None:
    with pytest.raises(CannotAnswerError, match="lacks the GPU work"):
        _ = Analysis(draw(UNSEEN)).study
    with pytest.raises(CannotAnswerError, match="no decode step"):
        _ = Analysis(draw("api | A\ngpu0 s7 | .A")).study


def test_nothing_is_predicted_where_another_process_uses_the_gpu() -> None:
    sketch = Sketch()
    tenants = [Loop(sketch, pid=1001), Loop(sketch, pid=1002, seed=2, now=1_350_000)]
    for _ in range(10):
        for tenant in tenants:
            tenant.step()
    with pytest.raises(CannotAnswerError, match="several processes share the GPU"):
        _ = Analysis(sketch.trace()).study
    report = analyze_trace(sketch.trace())
    assert report.steps.count > 0
    assert [finding.recoverable_ns for finding in report.findings if finding.recoverable_ns is not None] == []


def test_kernels_are_dropped_by_name(node: Study) -> None:
    change = node.drop_kernels("layer_norm")
    lost = np.array(change.block_ns)
    assert lost.max() > 100_000
    assert (lost[(node.model.blocks["kind"] != "graph").to_numpy()] == 0).all()
    with pytest.raises(UsageError, match="fits no recorded kernel"):
        node.drop_kernels("no such kernel")


def test_the_profilers_time_is_a_price_a_node_and_the_excess_of_a_launch(node: Study) -> None:
    (lane,) = node.ranks
    change = node.without_profiler(lane, None)
    blocks = node.model.blocks.with_columns(added=change.gaps_ns + change.inside_ns)
    verify = blocks.filter(blocks["nodes"] > 1_000)
    # Measured on such a machine: 174 ns a node on average over the three graphs.
    assert verify["added"].to_numpy() / verify["nodes"].to_numpy() == pytest.approx(174, abs=30)
    assert (blocks.filter(blocks["nodes"].is_null())["added"] == 0).all()
    calls = node.model.calls.with_columns(added=change.call_ns)
    length = calls["end_ns"] - calls["start_ns"]
    assert (calls["added"] <= length).all()
    reads = calls.filter(calls["waits"] & (calls["api_role"] == CallRole.COPY))
    assert len(reads) == 10
    assert (reads["added"] == 0).all()


def test_an_unknown_machine_has_no_price() -> None:
    study = Analysis(draw(NODES, us_per_char=1)).study
    with pytest.raises(CannotAnswerError, match="cost is unknown here"):
        study.without_profiler(study.ranks[0], None)
