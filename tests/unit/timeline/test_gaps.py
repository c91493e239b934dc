from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.intervals import LONG_AGO, NEVER
from bubblefinder.timeline.gaps import find_gaps, running_end

TIMES = st.integers(0, 12)
# start, length, and when the launch call began
OPERATIONS = st.lists(
    st.tuples(TIMES, st.integers(0, 4), st.sampled_from([0, 1, 2, 3, NEVER])), min_size=1, max_size=10
)


def columns(rows: list[tuple[int, int, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = sorted((start, start + length, call) for start, length, call in rows)
    starts, ends, calls = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    return starts, ends, calls


@given(OPERATIONS)
def test_gaps_are_the_idle_moments_between_busy_ones(rows: list[tuple[int, int, int]]) -> None:
    starts, ends, calls = columns(rows)
    gaps = find_gaps(starts, ends, calls.__getitem__)
    busy = {t for start, end in zip(starts, ends, strict=True) for t in range(start, end)}
    idle = set(range(min(busy), max(busy))) - busy if busy else set()
    found = [t for start, end in zip(gaps.starts, gaps.ends, strict=True) for t in range(start, end)]
    assert sorted(idle) == found
    assert all(gaps.starts[1:] > gaps.ends[:-1])


@given(OPERATIONS)
def test_the_operations_around_a_gap_are_those_launched_first_of_all_that_touch_it(
    rows: list[tuple[int, int, int]],
) -> None:
    starts, ends, calls = columns(rows)
    gaps = find_gaps(starts, ends, calls.__getitem__)
    for start, end, before, after in zip(gaps.starts, gaps.ends, gaps.before, gaps.after, strict=True):
        assert (ends[before], starts[after]) == (start, end)
        assert calls[before] == min(calls[(ends == start) & (ends > starts)])
        assert calls[after] == min(calls[(starts == end) & (ends > starts)])


def test_no_operations_have_no_gaps() -> None:
    nothing = np.empty(0, np.int64)
    assert len(find_gaps(nothing, nothing, nothing.__getitem__).starts) == 0


def test_the_running_end_is_what_was_reached_before_each_operation() -> None:
    assert running_end(np.array([5, 3, 9, 4])).tolist() == [LONG_AGO, 5, 5, 9]
