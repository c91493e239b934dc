"""Which rank the others wait for, in collectives and in replays that the capture doesn't look into."""

from __future__ import annotations

import pytest

from tests.judged import drawn
from tests.unit.causes.test_collectives import RANKS

BLOCKS = """
    p1 nvtx    | [step              ][step              ][step              ][step              ][step              ]
    p1 api     | G...................G...................G...................G...................G...................
    p1 gpu0 s7 | {first}
    p2 nvtx    | [step              ][step              ][step              ][step              ][step              ]
    p2 api     | ....G...................G...................G...................G...................G...............
    p2 gpu1 s7 | {second}
    G = graph
"""


def test_the_late_rank_is_the_one_with_the_shortest_collective() -> None:
    first, second = drawn(RANKS).facts.steps
    assert first.skews == ()
    (skew,) = second.skews
    assert (skew.gpu, skew.waiting_gpu, skew.skew_p50_ns, skew.inside) == (1, 0, 3_000, False)
    assert skew.collective == "ncclDevKernel_AllReduce_Sum_bf16"


def test_a_rank_that_begins_a_replay_late_is_waited_for_where_all_leave_it_together() -> None:
    first, second = drawn(
        BLOCKS.format(first=".GGGGGGGGGGGG......." * 5, second=".....GGGGGGGG......." * 5)
    ).facts.steps
    assert first.skews == ()
    (skew,) = second.skews
    assert (skew.gpu, skew.waiting_gpu, skew.skew_p50_ns) == (1, 0, 4_000)
    assert (skew.inside, skew.collective, skew.role) == (True, None, "step")
    assert len(skew.evidence) == 5


def test_it_is_said_how_much_longer_the_late_gpu_idles_for_its_host() -> None:
    """The late host launches 4 us behind the other, whose GPU idles 8 us a step for it; its own 12 us."""
    picture = BLOCKS.format(first=".GGGGGGGGGGGG......." * 5, second=".....GGGGGGGG......." * 5)
    assert drawn(picture).facts.steps[1].skews[0].host_more_p50_ns == 4_000


@pytest.mark.parametrize("second", [".....GGGGGGGGGGGG...", ".....GGGG..........."])
def test_ranks_that_leave_a_replay_apart_dont_wait_for_each_other_in_it(second: str) -> None:
    facts = drawn(BLOCKS.format(first=".GGGGGGGGGGGG......." * 5, second=second * 5)).facts
    assert [step.skews for step in facts.steps] == [(), ()]
