"""Interval arithmetic against counting every point of a small axis."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.intervals import (
    Cover,
    covered_before,
    different,
    empty,
    inside,
    last_before,
    lower_quantile,
    median,
    one_of,
    outermost,
    percentile,
    places_of,
    split,
    totals_in,
    union,
    within,
)

AXIS = np.arange(-5, 60, dtype=np.int64)
EDGES = st.lists(st.tuples(st.integers(0, 40), st.integers(-2, 12)), max_size=12)


def arrays(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.array([start for start, _ in rows], np.int64)
    return starts, starts + np.array([length for _, length in rows], np.int64)


def points(starts: np.ndarray, ends: np.ndarray) -> set[int]:
    return {point for start, end in zip(starts.tolist(), ends.tolist(), strict=True) for point in range(start, end)}


@given(EDGES)
def test_a_union_covers_the_same_points_and_is_disjoint(rows: list[tuple[int, int]]) -> None:
    starts, ends = arrays(rows)
    cover = union(starts, ends)
    assert points(cover.starts, cover.ends) == points(starts, ends)
    assert (cover.ends > cover.starts).all()
    assert (cover.starts[1:] > cover.ends[:-1]).all()
    assert cover.total_ns == len(points(starts, ends))


@given(EDGES)
def test_inside_asks_the_half_open_cover(rows: list[tuple[int, int]]) -> None:
    cover = union(*arrays(rows))
    assert set(AXIS[inside(AXIS, cover)].tolist()) == points(cover.starts, cover.ends)


@given(EDGES)
def test_covered_before_counts_the_points_before(rows: list[tuple[int, int]]) -> None:
    cover = union(*arrays(rows))
    held = points(cover.starts, cover.ends)
    assert covered_before(AXIS, cover).tolist() == [sum(point < edge for point in held) for edge in AXIS.tolist()]


@given(EDGES, st.lists(st.integers(-3, 45), max_size=8))
def test_splitting_keeps_every_point_and_leaves_no_cut_inside(rows: list[tuple[int, int]], cuts: list[int]) -> None:
    starts, ends = arrays(rows)
    lower, upper, parent = split(starts, ends, np.array(cuts, np.int64))
    pieces = [(int(p), point) for s, e, p in zip(lower, upper, parent, strict=True) for point in range(s, e)]
    assert sorted(pieces) == sorted((i, point) for i in range(len(rows)) for point in range(starts[i], ends[i]))
    assert not any(low < cut < high for cut in cuts for low, high in zip(lower, upper, strict=True))


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), min_size=9), st.lists(st.integers(-3, 45), max_size=2))
def test_splitting_many_intervals_at_few_points_is_the_same(steps: list[tuple[int, int]], cuts: list[int]) -> None:
    edges = np.cumsum([0, *[value for step in steps for value in step]])
    starts, ends = edges[1::2], edges[2::2]
    few = split(starts, ends, np.array(cuts, np.int64))
    one_by_one = [split(starts[n : n + 1], ends[n : n + 1], np.array(cuts, np.int64)) for n in range(len(starts))]
    assert few[0].tolist() == [low for lower, _, _ in one_by_one for low in lower.tolist()]
    assert few[1].tolist() == [high for _, upper, _ in one_by_one for high in upper.tolist()]
    assert few[2].tolist() == [n for n, (lower, _, _) in enumerate(one_by_one) for _ in lower]


def test_nothing_is_covered_by_nothing() -> None:
    assert len(empty()) == 0
    assert not inside(AXIS, empty()).any()
    assert not covered_before(AXIS, empty()).any()


def test_touching_intervals_merge() -> None:
    assert union(np.array([0, 5]), np.array([5, 9])).ends.tolist() == Cover(np.array([0]), np.array([9])).ends.tolist()


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12), st.lists(st.integers(1, 9), max_size=6))
def test_parts_within_windows_are_what_a_sweep_finds(steps: list[tuple[int, int]], widths: list[int]) -> None:
    edges = np.cumsum([0, *[value for step in steps for value in step]])
    starts, ends = edges[1::2], edges[2::2]
    highs = np.cumsum(np.array(widths, np.int64)) + 2
    lows = np.append([2], highs[:-1])[: len(highs)]
    position, lengths, window = within(starts, ends, lows, highs)
    found = {(int(p), int(w)): int(n) for p, n, w in zip(position, lengths, window, strict=True) if n}
    expected = {
        (p, w): len(both)
        for p, (a, b) in enumerate(zip(starts, ends, strict=True))
        for w, (low, high) in enumerate(zip(lows, highs, strict=True))
        if (both := range(max(a, low), min(b, high)))
    }
    assert found == expected
    assert (lengths >= 0).all()


@given(st.lists(st.integers(0, 40)), st.sampled_from([41, 100_000]))
def test_different_values_are_told_however_far_apart_they_may_lie(values: list[int], below: int) -> None:
    assert different(np.array(values, np.int64), below).tolist() == sorted(set(values))


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=30), st.integers(0, 100))
def test_medians_and_percentiles_are_numpys(values: list[int], q: int) -> None:
    numbers = np.array(values, np.int64)
    assert median(numbers) == np.median(numbers)
    assert percentile(numbers, q) == np.percentile(numbers, q)


@given(st.lists(st.integers(0, 1 << 40), min_size=1, max_size=30), st.sampled_from([0.0, 0.35, 0.5, 0.65, 1.0]))
def test_a_lower_quantile_is_numpys(values: list[int], q: float) -> None:
    numbers = np.array(values, np.int64)
    assert lower_quantile(numbers, q) == np.quantile(numbers, q, method="lower")


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 9)), max_size=20))
def test_the_outermost_begin_when_all_before_have_ended(rows: list[tuple[int, int, int]]) -> None:
    rows = sorted(rows, key=lambda row: row[1])
    group, start = (np.array([row[side] for row in rows], np.int64) for side in (0, 1))
    end = start + np.array([row[2] for row in rows], np.int64)
    expected = [
        all(end[before] <= start[at] for before in range(at) if group[before] == group[at]) for at in range(len(rows))
    ]
    assert outermost(group, start, end).tolist() == expected


@pytest.mark.parametrize("far", [1_700_000_000 * 10**9, (1 << 62) - 1, -(1 << 62)])
def test_which_are_outermost_is_told_beside_a_time_however_far_away(far: int) -> None:
    """As of a row whose clock began in 1970; groups put behind each other would reach too far then."""
    rows = sorted(
        [(group, 100 * turn, 50) for turn in range(3) for group in range(20)] + [(7, 10, 5), (3, far, 1)],
        key=lambda row: row[1],
    )
    groups, starts, lengths = np.array(rows, np.int64).T
    assert np.flatnonzero(~outermost(groups, starts, starts + lengths)).tolist() == [rows.index((7, 10, 5))]


@given(st.lists(st.integers(0, 5)))
def test_one_of_a_few_is_isin(values: list[int]) -> None:
    numbers = np.array(values, np.int64)
    assert one_of(numbers, (1, 4)).tolist() == np.isin(numbers, (1, 4)).tolist()


@given(st.lists(st.sampled_from([0, 1, 65_535, 65_536, 65_537, 1 << 31, (1 << 40) + 1])))
def test_the_places_of_each_symbol_are_told_in_order_however_large_it_is(symbols: list[int]) -> None:
    found = [part.tolist() for part in places_of(np.array(symbols, np.int64)) if len(part)]
    assert found == [[n for n, one in enumerate(symbols) if one == symbol] for symbol in sorted(set(symbols))]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0, 1, 5, 10_000]), st.integers(0, 1 << 45))),
)
def test_sums_are_told_by_window_and_symbol_however_few_of_the_symbols_occur(rows: list[tuple[int, int, int]]) -> None:
    sums: dict[tuple[int, int], int] = {}
    for window, symbol, value in rows:
        sums[window, symbol] = sums.get((window, symbol), 0) + value
    windows, symbols, values = np.array(rows, np.int64).reshape(-1, 3).T
    found = zip(*(part.tolist() for part in totals_in(windows, symbols, values)), strict=True)
    assert list(found) == [(*key, total) for key, total in sorted(sums.items())]


@given(st.lists(st.integers(0, 20)), st.lists(st.integers(0, 20)).map(sorted), st.booleans())
def test_what_came_last_before_each_point_is_the_same_in_any_order(
    points: list[int], starts: list[int], in_order: bool
) -> None:
    asked = sorted(points) if in_order else points
    found = last_before(np.array(asked, np.int64), np.array(starts, np.int64))
    assert found.tolist() == [sum(start <= point for start in starts) - 1 for point in asked]
