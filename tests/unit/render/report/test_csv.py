"""Step rows as tables: raw nanoseconds, unknown is empty."""

from __future__ import annotations

import io
from dataclasses import asdict, replace

import polars as pl

from bubblefinder.render.report import csv
from tests.unit.report.sample import graph_report, sample_report


def test_both_tables_hold_every_row_unchanged() -> None:
    report = sample_report(gpus=2)
    expected = [asdict(row) for row in report.steps.rows]
    assert pl.read_parquet(io.BytesIO(csv.render_parquet(report))).to_dicts() == expected
    assert pl.read_csv(io.StringIO(csv.render(report))).to_dicts() == expected


def test_what_was_not_measured_is_empty() -> None:
    frame = csv.step_frame(graph_report())
    assert frame["intra_graph_ns"].null_count() == len(frame)
    assert ",,1" in csv.render(graph_report()).splitlines()[1]


def test_no_steps_leave_the_header() -> None:
    base = sample_report()
    assert csv.render(replace(base, steps=replace(base.steps, rows=[]))).splitlines() == [
        ",".join(csv.step_frame(sample_report()).columns)
    ]
