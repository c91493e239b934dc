from __future__ import annotations

import numpy as np
import polars as pl

from bubblefinder.replay.model import EdgeKind
from bubblefinder.replay.numbering import Nodes


def spans(*times: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(
        {"start_ns": [a for a, _ in times], "end_ns": [b for _, b in times]},
        schema=dict.fromkeys(("start_ns", "end_ns"), pl.Int64),
    )


def at(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_moments_are_numbered_calls_first_then_blocks_then_collectives() -> None:
    nodes = Nodes.of(spans((0, 1), (2, 3)), spans((1, 9)), spans((4, 5)))
    assert nodes.calls.begin.tolist() == [0, 1]
    assert nodes.calls.end.tolist() == [2, 3]
    assert (nodes.blocks.begin[0], nodes.blocks.end[0]) == (4, 5)
    assert (nodes.meets.begin[0], nodes.meets.end[0]) == (6, 7)


def test_what_comes_later_hangs_on_the_end_unless_that_is_later_still_or_takes_no_time() -> None:
    blocks = Nodes.of(spans(), spans((0, 4), (5, 9), (6, 6)), spans()).blocks
    source, distance = blocks.after(at(0, 1, 2), at(5, 7, 8))
    assert source.tolist() == [blocks.end[0], blocks.begin[1], blocks.begin[2]]
    assert distance.tolist() == [1, 2, 2]


def test_at_one_time_ends_come_before_begins_and_what_takes_no_time_ends_last() -> None:
    nodes = Nodes.of(spans((5, 5)), spans((0, 5), (5, 8)), spans())
    nodes.add(EdgeKind.QUEUE, nodes.blocks.end[:1], nodes.blocks.begin[1:], at(0), at(1))
    nodes.add(EdgeKind.CALL, nodes.calls.begin, nodes.calls.end, at(0), at(0))
    nodes.add(EdgeKind.LAUNCH, nodes.calls.begin, nodes.blocks.begin[1:], at(0), at(1))
    recorded, place, edges = nodes.ordered()
    assert recorded.tolist() == [0, 5, 5, 5, 5, 8]
    assert len(edges.lag) == 3
    assert place[nodes.blocks.end[0]] < place[nodes.calls.begin[0]] < place[nodes.blocks.begin[1]]


def test_dependencies_against_the_recorded_times_are_left_out() -> None:
    # The host's clock runs ahead: the block starts before its own launch call.
    nodes = Nodes.of(spans((5, 6)), spans((4, 8)), spans())
    nodes.add(EdgeKind.LAUNCH, nodes.calls.begin, nodes.blocks.begin, at(-1), at(0))
    _, _, edges = nodes.ordered()
    assert len(edges.lag) == 0
