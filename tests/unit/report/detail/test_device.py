"""Thin intervals are merged, wide ones stay exact."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from bubblefinder.report.build import analyze_trace
from bubblefinder.report.detail.device import CELLS, merged
from bubblefinder.trace.drawn import draw

SPAN = (0, CELLS * 100)


def rows(*intervals: tuple[int, int]) -> pl.DataFrame:
    schema = {"start_ns": pl.Int64, "end_ns": pl.Int64}
    return pl.DataFrame(intervals, schema=schema, orient="row").with_columns(
        label=pl.int_range(pl.len()), key=pl.lit(0)
    )


def test_neighbours_in_one_cell_become_one_and_keep_their_sum() -> None:
    (row,) = merged(rows((0, 10), (20, 30), (90, 95)), ["key"], SPAN).to_dicts()
    assert (row["start_ns"], row["end_ns"], row["covered_ns"], row["number"]) == (0, 95, 25, 3)


def test_wide_intervals_and_those_alone_stay_exact() -> None:
    found = merged(rows((0, 10), (20, 500), (700, 701)), ["key"], SPAN)
    assert found.select("start_ns", "end_ns", "number").rows() == [(0, 10, 1), (20, 500, 1), (700, 701, 1)]


def test_keys_keep_intervals_apart() -> None:
    apart = rows((0, 10), (20, 30)).with_columns(key=pl.Series([1, 2]))
    assert len(merged(apart, ["key"], SPAN)) == 2


def test_work_whose_stream_is_not_known_is_drawn_too() -> None:
    trace = draw("nvtx | " + "[step ]" * 4 + "\napi | " + "A..B..." * 4 + "\ngpu0 s7 | " + ".A..BB." * 4)
    unknown = replace(trace, operations=trace.operations.with_columns(stream=pl.lit(None, pl.Int64)))
    bars = analyze_trace(unknown).detail.timelines[0].bars
    assert [bar.name for bar in bars if bar.track == "GPU 0 · unknown stream"] == ["A", "B"]
