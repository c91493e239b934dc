"""Which windows are drawn, and what lies in them."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from bubblefinder.report.detail.windows import decode_windows, inside, rank_of
from tests.unit.report.detail.analysed import loop


def test_only_decode_steps_of_the_lowest_gpu_count() -> None:
    one = loop()
    assert one.rank.gpu == 0
    assert set(decode_windows(one.steps, one.rank)["excluded"]) == {None}
    none = one.steps.windows.with_columns(excluded=pl.lit("head"))
    assert rank_of(replace(one.steps, windows=none)) is None


def test_rows_belong_to_the_window_they_start_in() -> None:
    windows = pl.DataFrame({"start_ns": [10, 30], "end_ns": [20, 40], "window_index": [4, 6]})
    rows = pl.DataFrame({"start_ns": [9, 10, 19, 20, 30, 39, 40]})
    assert inside(rows, windows).rows() == [(10, 4), (19, 4), (30, 6), (39, 6)]
