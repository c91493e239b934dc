from __future__ import annotations

from typing import TypeAlias

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.lookup import NOWHERE, Timetable, again, joint_keys, nullable, positions, repeated

GROUPS = st.none() | st.integers(0, 3)
Row: TypeAlias = tuple[int | None, int | None]
ROWS = st.lists(st.tuples(GROUPS, st.none() | st.integers(-20, 20)), max_size=30)


def frame(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"process": pl.Int64, "number": pl.Int64}, orient="row")


@given(ROWS, ROWS)
def test_keys_are_the_same_where_group_and_number_are(one: list[Row], other: list[Row]) -> None:
    keyed = joint_keys([frame(one), frame(other)], "process", "number")
    assert keyed is not None
    (mine, theirs), size = keyed
    for row, key in zip([*one, *other], [*mine.tolist(), *theirs.tolist()], strict=True):
        assert (key == NOWHERE) == (None in row)
        assert key < size
        for another, its in zip(other, theirs.tolist(), strict=True):
            assert None in row or (key == its) == (row == another)


def test_numbers_far_apart_have_no_keys() -> None:
    assert joint_keys([frame([(1, 0), (1, 1 << 60)])], "process", "number") is None


@given(st.lists(st.integers(NOWHERE, 8), max_size=20))
def test_what_occurs_again_is_told(keys: list[int]) -> None:
    known = [key for key in keys if key != NOWHERE]
    assert again(np.array(keys, np.int64), 9) == len(known) - len(set(known))
    assert repeated(np.array(keys, np.int64), 9).to_list() == [known.count(key) > 1 for key in keys]


def test_a_position_is_that_of_the_key_and_null_for_none() -> None:
    found = positions(np.array([5, NOWHERE, 2]), np.array([2, 3, 5, NOWHERE]), 6)
    assert found.to_list() == [2, None, 0, None]
    assert nullable(np.array([1, NOWHERE])).to_list() == [1, None]


@given(
    st.lists(st.tuples(GROUPS, st.integers(0, 9), st.booleans()), max_size=30),
    st.lists(st.tuples(GROUPS, st.integers(-1, 10)), max_size=10),
)
def test_the_last_before_and_the_first_after_a_time(
    rows: list[tuple[int | None, int, bool]], points: list[tuple[int | None, int]]
) -> None:
    schema = {"process": pl.Int64, "at": pl.Int64, "chosen": pl.Boolean}
    table = pl.DataFrame(rows, schema=schema, orient="row").sort("process", "at", maintain_order=True)
    found = Timetable.of(table, ("process",), "at", table["chosen"])
    asked = pl.DataFrame(points, schema={"process": pl.Int64, "at": pl.Int64}, orient="row")
    times = asked["at"].to_numpy()
    last, first = (find(asked.select("process"), times).tolist() for find in (found.last, found.first))
    for place, (process, at) in enumerate(points):
        mine = [n for n, row in enumerate(table.rows()) if row[2] and row[0] == process and process is not None]
        assert last[place] == max((n for n in mine if table["at"][n] <= at), default=NOWHERE)
        assert first[place] == min((n for n in mine if table["at"][n] >= at), default=NOWHERE)
