"""How long streams that ran beside others were alone at work."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.replay.side_streams import MOST, alone_ns

SPANS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 20)), max_size=14)


def blocks(*rows: tuple[int, int, int]) -> pl.DataFrame:
    """Work as (stream, start, end)."""
    schema = {"stream": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64}
    return pl.DataFrame(list(rows), schema, orient="row").with_columns(context=pl.lit(1))


def alone(rows: pl.DataFrame, *windows: tuple[int, int]) -> list[int]:
    starts, ends = (np.array([window[side] for window in windows], np.int64) for side in (0, 1))
    return [int(length) for length in alone_ns(rows, starts, ends)]


def test_what_sticks_out_of_a_stream_that_others_kept_company() -> None:
    rows = blocks((7, 0, 100), (13, 40, 120), (7, 200, 300), (13, 240, 310))
    assert alone(rows, (0, 200), (200, 400), (110, 305)) == [20, 10, 15]


def test_the_stream_with_most_work_takes_its_time() -> None:
    assert alone(blocks((7, 0, 100), (13, 50, 60)), (0, 200)) == [0]


def test_one_stream_and_streams_in_turns_have_nothing_beside_them() -> None:
    assert alone(blocks((7, 0, 100), (7, 120, 200)), (0, 300)) == [0]
    assert alone(blocks((7, 0, 100), (13, 90, 150), (7, 150, 300)), (0, 300)) == [0]
    assert alone(blocks(), (0, 300)) == [0]


@given(SPANS)
def test_it_is_what_one_finds_moment_by_moment(spans: list[tuple[int, int, int]]) -> None:
    rows = blocks(*((stream, start, start + length) for stream, start, length in spans))
    at_work = {
        stream: {moment for one, start, length in spans if one == stream for moment in range(start, start + length)}
        for stream in sorted({stream for stream, _, _ in spans}, key=[stream for stream, _, _ in spans].index)
    }
    most = max((len(mine) for mine in at_work.values()), default=0)
    longest = next((stream for stream, mine in at_work.items() if len(mine) == most), None)
    expected = 0
    for stream, mine in at_work.items():
        others = set[int]().union(*(theirs for one, theirs in at_work.items() if one != stream))
        if stream != longest and len(mine & others) >= MOST * len(mine):
            expected += len(mine - others)
    assert sum(alone(rows, (0, 30), (30, 100))) == expected
