"""The step rows as a table: CSV for spreadsheets, Parquet for frames."""

from __future__ import annotations

import io
from dataclasses import fields
from typing import TYPE_CHECKING

from bubblefinder.report.model import Report, StepRow

if TYPE_CHECKING:
    import polars as pl


def render(report: Report) -> str:
    """Return one line a window of every device, excluded ones too; times in ns, unknown is empty."""
    return step_frame(report).write_csv()


def render_parquet(report: Report) -> bytes:
    """Return the same rows as a Parquet file."""
    buffer = io.BytesIO()
    step_frame(report).write_parquet(buffer)
    return buffer.getvalue()


def step_frame(report: Report) -> pl.DataFrame:
    """Return the step rows as a frame: Int64 columns, `excluded` as String."""
    import polars as pl

    names = [one.name for one in fields(StepRow)]
    columns = {name: [getattr(row, name) for row in report.steps.rows] for name in names}
    return pl.DataFrame(columns, schema={name: pl.String if name == "excluded" else pl.Int64 for name in names})
