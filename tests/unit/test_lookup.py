from __future__ import annotations

from typing import TypeAlias

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder import lookup
from bubblefinder.lookup import (
    NOWHERE,
    ByThread,
    Timetable,
    again,
    each_once,
    joint_keys,
    kept,
    nullable,
    numbered,
    places,
    positions,
    previous,
    repeated,
    taken,
    where,
)

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


@given(ROWS, st.sampled_from([0, 100]))
def test_rows_are_numbered_in_the_order_in_which_they_come_first(rows: list[Row], few: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lookup, "_FEW_ROWS", few)
        different, number = numbered(frame(rows))
    assert different == list(dict.fromkeys(rows))
    assert [different[one] for one in number.tolist()] == rows


@given(ROWS)
def test_each_row_stays_once_in_the_order_in_which_it_comes_first(rows: list[Row]) -> None:
    assert each_once(frame(rows)).rows() == list(dict.fromkeys(rows))


@given(st.lists(st.none() | st.integers(0, 9), max_size=20))
def test_places_and_nullable_undo_each_other(numbers: list[int | None]) -> None:
    column = pl.Series(numbers, dtype=pl.UInt32)
    assert places(column).tolist() == [NOWHERE if number is None else number for number in numbers]
    assert nullable(places(column)).to_list() == numbers


def test_ids_of_64_bits_stay_apart_beside_nulls() -> None:
    ids = [1 << 53, (1 << 53) + 1, None, (1 << 62) + 1]
    assert places(pl.Series(ids)).tolist() == [1 << 53, (1 << 53) + 1, NOWHERE, (1 << 62) + 1]


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=20))
def test_the_row_before_is_the_last_with_the_same_values(rows: list[tuple[int, int]]) -> None:
    one, other = (np.array([row[side] for row in rows], np.int64) for side in (0, 1))
    expected = [max((n for n in range(at) if rows[n] == row), default=NOWHERE) for at, row in enumerate(rows)]
    assert previous(one, other).tolist() == expected


@pytest.mark.parametrize("small", [0, 100])
def test_few_rows_are_kept_and_taken_as_many_are(small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_SMALL", small)
    rows = frame([(1, 4), (None, 5), (3, None)])
    assert kept(rows, pl.Series([True, None, True])).rows() == [(1, 4), (3, None)]
    assert kept(rows, np.array([False, True, False])).rows() == [(None, 5)]
    assert rows.pipe(where, pl.col("number") > 4).rows() == [(None, 5)]
    assert rows.pipe(where, rows["number"].is_null()).rows() == [(3, None)]
    assert taken(rows, np.array([2, NOWHERE, 0])).rows() == [(3, None), (None, None), (1, 4)]
    assert taken(rows.clear(), np.array([NOWHERE])).rows() == [(None, None)]
    assert places(rows["number"]).tolist() == [4, 5, NOWHERE]


@given(st.lists(st.none() | st.integers(0, 2), max_size=20))
def test_the_rows_of_each_thread_are_its_own_in_order(threads: list[int | None]) -> None:
    rows = pl.DataFrame({"thread": pl.Series(threads, dtype=pl.Int64), "number": pl.Series(range(len(threads)))})
    by_thread = ByThread(rows)
    for thread in (None, 0, 1, 2, 3):
        mine = [number for number, one in enumerate(threads) if one == thread and one is not None]
        assert by_thread.at(thread).to_list() == mine
        assert by_thread.of(thread, "number")["number"].to_list() == mine


@pytest.mark.parametrize("values", [[], [None], [7, None, 7], [3, 1, None, 3, 2], [-128, 127, 5], [5, 1 << 40, 5]])
def test_the_different_values_of_a_column(values: list[int | None]) -> None:
    wide = max(map(abs, filter(None, values)), default=0) > 1 << 7
    for column in (pl.Series("it", rows, pl.Int64 if wide else pl.Int8) for rows in (values, values * 200)):
        found = lookup.different(column)
        assert (found.name, found.dtype) == ("it", column.dtype)
        assert sorted(found) == sorted({value for value in values if value is not None})
