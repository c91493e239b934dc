from __future__ import annotations

import polars as pl
import pytest

from bubblefinder.causes.collectives import find_collectives, find_joint_replays
from tests.judged import Judged, drawn

# Rank 1 comes 3 us late to every all-reduce; rank 0 waits for it inside its kernel.
RANKS = """
    p1 nvtx    | [step              ][step              ][step              ][step              ][step              ]
    p1 api     | G...................G...................G...................G...................G...................
    p1 gpu0 s7 | .aa.nnnnn.bbb........aa.nnnnn.bbb........aa.nnnnn.bbb........aa.nnnnn.bbb........aa.nnnnn.bbb.......
    p2 nvtx    | [step              ][step              ][step              ][step              ][step              ]
    p2 api     | ...G...................G...................G...................G...................G................
    p2 gpu1 s7 | ....aa.nn.bbb...........aa.nn.bbb...........aa.nn.bbb...........aa.nn.bbb...........aa.nn.bbb.........
    G = graph 5 a n b
    n = kernel ncclDevKernel_AllReduce_Sum_bf16
"""


@pytest.fixture(scope="module")
def judged() -> Judged:
    return drawn(RANKS)


def test_operations_that_overlap_on_every_rank_are_one_collective(judged: Judged) -> None:
    found = find_collectives(judged.timeline)
    assert found.group_by("collective").len()["len"].to_list() == [2] * 5
    ends = found.group_by("collective", maintain_order=True).agg(pl.col("end_ns").n_unique())
    assert ends["end_ns"].to_list() == [1] * 5


def test_one_rank_has_no_collectives_to_compare() -> None:
    alone = drawn("\n".join(line for line in RANKS.splitlines() if "p2" not in line))
    assert find_collectives(alone.timeline).is_empty()


def blocks(first: str, second: str) -> str:
    return f"""
        p1 api     | {"G..................." * 4}
        p1 gpu0 s7 | {first * 4}
        p2 api     | {"...G................" * 4}
        p2 gpu1 s7 | {second * 4}
        G = graph 5
    """


def joint(picture: str) -> int:
    timeline = drawn(picture).timeline
    return len(find_joint_replays(timeline, pl.Series(["decode"] * len(timeline.replays))))


def test_replays_that_ranks_enter_apart_and_leave_together_join_them() -> None:
    assert joint(blocks(".GGGGGGGGGGGG.......", "....GGGGGGGGG.......").replace("G = graph 5", "G = graph")) == 8


def test_replays_that_ranks_leave_as_far_apart_as_they_enter_dont() -> None:
    assert joint(blocks(".GGGGGGGGG..........", "....GGGGGGGGG.......").replace("G = graph 5", "G = graph")) == 0
