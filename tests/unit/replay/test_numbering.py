from __future__ import annotations

import numpy as np
import polars as pl

from bubblefinder.replay.model import Lag
from bubblefinder.replay.numbering import Moments


def spans(*times: tuple[int, int]) -> pl.DataFrame:
    return pl.DataFrame(
        {"start_ns": [a for a, _ in times], "end_ns": [b for _, b in times]},
        schema=dict.fromkeys(("start_ns", "end_ns"), pl.Int64),
    )


def at(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_moments_are_numbered_calls_first_then_blocks_then_collectives() -> None:
    moments = Moments.of(spans((0, 1), (2, 3)), spans((1, 9)), spans((4, 5)))
    assert moments.calls.begin.tolist() == [0, 1]
    assert moments.calls.end.tolist() == [2, 3]
    assert (moments.blocks.begin[0], moments.blocks.end[0]) == (4, 5)
    assert (moments.meets.begin[0], moments.meets.end[0]) == (6, 7)


def test_what_comes_later_hangs_on_the_end_unless_that_is_later_still_or_takes_no_time() -> None:
    blocks = Moments.of(spans(), spans((0, 4), (5, 9), (6, 6)), spans()).blocks
    source, distance = blocks.after(at(0, 1, 2), at(5, 7, 8))
    assert source.tolist() == [blocks.end[0], blocks.begin[1], blocks.begin[2]]
    assert distance.tolist() == [1, 2, 2]


def test_at_one_time_ends_come_before_begins_and_what_takes_no_time_ends_last() -> None:
    moments = Moments.of(spans((5, 5)), spans((0, 5), (5, 8)), spans())
    moments.add(Lag.QUEUE, moments.blocks.end[:1], moments.blocks.begin[1:], at(0), at(1))
    moments.add(Lag.CALL, moments.calls.begin, moments.calls.end, at(0), at(0))
    moments.add(Lag.LAUNCH, moments.calls.begin, moments.blocks.begin[1:], at(0), at(1))
    recorded, place, arcs = moments.ordered()
    assert recorded.tolist() == [0, 5, 5, 5, 5, 8]
    assert len(arcs.lag) == 3
    assert place[moments.blocks.end[0]] < place[moments.calls.begin[0]] < place[moments.blocks.begin[1]]


def test_dependencies_against_the_recorded_times_are_left_out() -> None:
    # The host's clock runs ahead: the block starts before its own launch call.
    moments = Moments.of(spans((5, 6)), spans((4, 8)), spans())
    moments.add(Lag.LAUNCH, moments.calls.begin, moments.blocks.begin, at(-1), at(0))
    _, _, arcs = moments.ordered()
    assert len(arcs.lag) == 0
