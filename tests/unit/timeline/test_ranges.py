"""Which ranges were open, against a slow look at every range."""

from __future__ import annotations

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.timeline.ranges import Ranges, user_ranges


def ranges(rows: list[tuple[int, int, int]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "thread": [thread for thread, _, _ in rows],
            "start_ns": [start for _, start, _ in rows],
            "end_ns": [end for _, _, end in rows],
        },
        schema={"thread": pl.Int64, "start_ns": pl.Int64, "end_ns": pl.Int64},
    )


@st.composite
def nested(draw: st.DrawFn) -> list[tuple[int, int, int]]:
    """Push/pop ranges of two threads: properly nested, no two with the same ends."""
    rows = []
    for thread in (1, 2):
        open_at: list[int] = []
        for time in range(draw(st.integers(0, 20))):
            closes = draw(st.booleans())
            if open_at and closes:
                rows.append((thread, open_at.pop(), time))
            else:
                open_at.append(time)
        rows += [(thread, start, 100 + start * -1) for start in open_at]
    return rows


@given(nested())
def test_the_innermost_open_range_is_the_one_that_began_last(rows: list[tuple[int, int, int]]) -> None:
    threads = np.repeat([1, 2], 30)
    times = np.tile(np.arange(30), 2)
    got = Ranges(ranges(rows)).innermost(threads, times)
    for thread, time, found in zip(threads, times, got, strict=True):
        holding = [i for i, (t, start, end) in enumerate(rows) if t == thread and start <= time < end]
        assert found == (max(holding, key=lambda i: rows[i][1]) if holding else -1)


def test_levels_come_from_the_outside_in() -> None:
    levels = Ranges(ranges([(1, 0, 10), (1, 2, 8), (1, 3, 4)])).open_at(np.array([1, 1, 2]), np.array([3, 5, 3]))
    assert [level.tolist() for level in levels] == [[0, 0, -1], [1, 1, -1], [2, -1, -1]]


def test_tools_and_empty_ranges_are_not_the_users() -> None:
    rows = pl.DataFrame(
        {
            "thread": [1, 1, 1, 1],
            "start_ns": [0, 1, 2, 3],
            "end_ns": [9, 1, 5, None],
            "domain": [None, None, "NCCL", None],
            "text": ["step", "nothing", "ncclAllReduce", "open"],
        },
    )
    assert user_ranges(rows)["text"].to_list() == ["step", "open"]


def test_the_numbers_that_pytorch_gives_its_operations_are_no_part_of_their_names() -> None:
    texts = ["aten::mul, seq = 46174, op_id = 993406", "aten::to, op_id = 7, sizes = [[1, 8], []]", "step, part = 2"]
    rows = {"domain": [None] * 3, "text": texts, "start_ns": [0, 1, 2], "end_ns": [9, 8, 7]}
    nvtx = pl.DataFrame(rows, schema_overrides={"domain": pl.String})
    assert user_ranges(nvtx)["text"].to_list() == ["aten::mul", "aten::to", "step, part = 2"]
