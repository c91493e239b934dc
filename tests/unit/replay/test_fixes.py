from __future__ import annotations

from bubblefinder.replay.changes import HostSpeed, RemoveWaits
from bubblefinder.replay.doubt import Doubt, Estimate
from bubblefinder.replay.fixes import best_order, find_fixes
from bubblefinder.replay.predict import predict
from bubblefinder.replay.recoverable import everywhere
from bubblefinder.timeline.rank import Rank
from tests.judged import drawn
from tests.unit.causes.test_sites import PLAN, steps
from tests.unit.replay.test_build import LATE, LEGEND

# Two reads a step: the first waits for 12 us of work, the second for 2.
TWO = (
    steps(
        "..G.CCCCCCCCCCCCCCC.H.DDD...........",
        "...ggggggg.fffffffC..hh.D...........",
        "....[first       ]....[second]......",
        times=6,
    )
    + "G = graph 5 g f\nH = graph 6 h\nC = copy DtoH 8 pageable\nD = copy DtoH 4 pageable\n"
)


def test_each_group_of_waits_is_a_fix_named_by_its_range() -> None:
    judged = drawn(TWO)
    fixes = find_fixes(judged.causes, judged.facts, judged.recoverable)
    assert [fix.name for fix in fixes if isinstance(fix.change, RemoveWaits)] == [
        "first",
        "second",
        "the chain of waits",
    ]
    assert "pageable DtoH 8 B, 1 a step" in fixes[0].text


def test_the_order_takes_the_best_fix_first_and_stops_when_nothing_is_worthwhile() -> None:
    judged = drawn(TWO)
    facts = judged.facts
    model = judged.model
    assert model is not None
    fixes = [fix for fix in find_fixes(judged.causes, facts, judged.recoverable) if isinstance(fix.change, RemoveWaits)]
    lane = next(iter({Rank(step.gpu, step.process) for step in facts.steps}))
    stages = best_order(model, fixes, lane)
    steps_then = [stage.then.step_ns for stage in stages]
    assert steps_then == sorted(steps_then, reverse=True)
    assert steps_then[0] < 36_000


def test_where_there_are_ranges_alone_the_order_goes_by_them() -> None:
    judged = drawn(TWO)
    model = judged.model
    assert model is not None
    fixes = find_fixes(judged.causes, judged.facts, judged.recoverable)
    (lane,) = model.steps
    doubt = Doubt(36_000)
    first, *_ = best_order(model, fixes, lane, doubt)
    most = {fix.name: Estimate(predict(model, [fix.change])[lane], doubt).gain_range_ns[1] for fix in fixes}
    assert most[first.fix.name] == max(most.values())


def test_three_reads_of_one_plan_go_together() -> None:
    judged = drawn(PLAN)
    assert everywhere(judged.causes, (0,)) == {0, 1, 2}


def test_the_same_wait_of_another_rank_goes_too() -> None:
    picture = "\n".join(
        line.split("|")[0] + "| " + line.split("| ", 1)[1] * 5 for line in LATE.splitlines() if "|" in line
    )
    judged = drawn(picture + LEGEND)
    facts = judged.facts
    assert len(judged.causes.sites) == 2
    assert everywhere(judged.causes, (0,)) == {0, 1}
    found = judged.recoverable
    assert set(found.sites) == {site.sites for site in facts.sites}
    filled = found.fill(facts)
    assert all(site.recoverable_ns is not None and site.recoverable_ns > 0 for site in filled.sites)
    assert all(step.host_slow_recoverable_ns is not None for step in filled.steps)


def test_a_late_host_is_offered_a_faster_one() -> None:
    judged = drawn(
        steps("G...................", ".gg.ff..............", "[step              ]", times=6) + "G = graph 5 g f\n",
    )
    (fix,) = find_fixes(judged.causes, judged.facts, judged.recoverable)
    assert fix.change == HostSpeed(2)
