"""First steps that are longer than the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.delta.warmup import warming_ns
from tests.unit.compare.builders import MS, a_report, with_rows

if TYPE_CHECKING:
    from bubblefinder.report.model import Report


def cold(first: int) -> Report:
    report = a_report(jitter=0.0)
    longer = [
        replace(row, duration_ns=row.duration_ns + 3 * MS, busy_ns=row.busy_ns + 3 * MS) if row.index < first else row
        for row in report.steps.rows
    ]
    return with_rows(report, longer)


@pytest.mark.parametrize(("first", "excess"), [(0, 0), (1, 0), (5, 3 * MS * 5 / 30), (20, 0)])
def test_the_excess_of_the_first_steps_is_told(first: int, excess: float) -> None:
    assert warming_ns([a_report(jitter=0.0)], [cold(first)]) == pytest.approx(excess)
    assert warming_ns([cold(first)], [a_report(jitter=0.0)]) == pytest.approx(-excess)
