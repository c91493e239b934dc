from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given

from bubblefinder.causes.decode import lanes
from bubblefinder.timeline.model import IdleClass
from tests import samples
from tests.captures import captures
from tests.judged import drawn, judge
from tests.loops import Loop

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace

UNSEEN = """
    nvtx    | [step              ][step              ][step              ]
    api     | G.CCC...............G.CCC...............G.CCC...............
    gpu0 s7 | ...C...................C...................C................
    G = cudaGraphLaunch
    C = copy DtoH 8 pageable
"""


def test_unseen_graph_work_leaves_no_facts() -> None:
    judged = drawn(UNSEEN)
    assert judged.timeline.mode == "unseen"
    facts = judged.facts
    assert facts.sites == ()
    assert facts.steps == ()


@pytest.mark.parametrize(
    "capture", ["nextn_before.node", "hard_before.graph", "dspark_before.node", "eager_item", "tp2_before.node"]
)
def test_causes_never_claim_more_than_a_step_idles(capture: str) -> None:
    judged = samples.analysis(capture)
    facts = judged.facts
    for lane, step in zip(lanes(judged.timeline, judged.steps, judged.causes), facts.steps, strict=True):
        host = np.isin(lane.pieces.idle_class, (IdleClass.HOST_LATE, IdleClass.LAUNCHING)) & ~lane.pieces.charged
        rest = np.isin(lane.pieces.idle_class, (IdleClass.QUEUED, IdleClass.INTRA_GRAPH)) & ~lane.pieces.charged
        claimed = lane.idle(lane.pieces.charged) + lane.idle(host) + lane.idle(rest)
        assert (claimed <= lane.idle(np.ones(len(host), np.bool_))).all()
        sites = [site for site in facts.sites if (site.gpu, site.process) == (step.gpu, step.process)]
        assert sum(site.bubble_share or 0 for site in sites) == pytest.approx(step.waits_share)
        shares = (step.busy_share, step.intra_graph_share or 0, step.inter_share)
        if step.intra_graph_share is not None or step.mode == "none":
            assert sum(share or 0 for share in shares) == pytest.approx(1)


@given(captures())
def test_facts_and_replays_of_odd_captures(trace: Trace) -> None:
    judged = judge(trace)
    facts = judged.facts
    cured = judged.recoverable
    for site in cured.fill(facts).sites:
        assert site.steps_affected <= site.steps
        assert site.recoverable_ns is None or site.recoverable_ns >= 0
    for step in facts.steps:
        for value in (step.busy_share, step.inter_share, step.host_slow_share, step.waits_share, step.run_ahead_share):
            assert value is None or 0 <= value <= 1


def loop(*, read: bool, host_us: float) -> Trace:
    made = Loop(jitter=0.0)
    for _ in range(12):
        made.spend(host_us)
        made.step() if read else ahead(made)
    return made.sketch.trace()


def ahead(made: Loop) -> None:
    """A step that waits for nothing."""
    from tests.loops import SPECULATIVE

    made.upload()
    for graph in SPECULATIVE:
        made.replay(graph)


def test_a_host_that_never_gets_ahead_without_a_wait_is_slow() -> None:
    judged = judge(loop(read=False, host_us=3_000))
    (step,) = judged.facts.steps
    assert step.waits_share == 0
    assert step.host_slow_share == pytest.approx(step.inter_share, abs=0.01)
    assert step.host_slow_share is not None
    assert step.host_slow_share > 0.5
    (lane,) = lanes(judged.timeline, judged.steps, judged.causes)
    assert step.host_slow_mean_ns == pytest.approx(step.host_slow_share * lane.durations.mean())
    assert step.run_ahead_share is not None
    assert step.run_ahead_share < 0.8
    assert step.launches_per_step == 4
    assert step.graph_launches_per_step == 3
    assert step.launch_p50_ns == 30_000


def test_a_host_that_runs_ahead_is_not_slow() -> None:
    judged = judge(loop(read=False, host_us=50))
    (step,) = judged.facts.steps
    assert step.host_slow_share == pytest.approx(0, abs=0.001)
    assert step.run_ahead_share is not None
    assert step.run_ahead_share > 0.9
