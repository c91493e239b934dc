from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from bubblefinder.report.ledgers import stats
from bubblefinder.report.sentences import requests_sentence, requests_words
from tests.unit.report.sample import sample_report

MIXED = "; the figures are of all of them."


@pytest.mark.parametrize(
    ("told", "steps", "said"),
    [
        ({"8": 30}, 30, "Requests a step: 8 (from launch shapes)."),
        ({"8": 27}, 30, "Requests a step: 8, unknown in 3 steps (from launch shapes)."),
        (
            {"1": 16, "2": 1},
            18,
            f"Requests a step: 1 in 16 steps, 2 in 1 step, unknown in 1 step (from launch shapes){MIXED}",
        ),
        (
            {"3": 1, "4": 1, "5": 2, "6": 1, "1200": 1},
            6,
            "Requests a step: 3 to 1,200, 5 in the median (from launch shapes)" + MIXED,
        ),
    ],
)
def test_numbers_of_requests_are_said_with_what_told_them(told: dict[str, int], steps: int, said: str) -> None:
    numbers = pl.Series([int(number) for number, times in told.items() for _ in range(times)])
    report = sample_report().steps
    known = replace(report, count=steps, requests=stats(numbers), requests_from="launch_shapes", requests_steps=told)
    assert requests_sentence(known) == [said]


def test_an_older_report_has_its_numbers_from_nvtx() -> None:
    older = replace(sample_report().steps, requests=stats(pl.Series([4, 4, 6])))
    (said,) = requests_sentence(older)
    assert said == "Requests a step: 4 to 6, 4 in the median (from NVTX); the figures are of all of them."


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert requests_sentence(replace(sample_report().steps, requests=None)) == []


def test_a_regime_says_how_many_it_serves() -> None:
    assert requests_words(stats(pl.Series([1, 1]))) == "1 request"
    assert requests_words(stats(pl.Series([2, 2, 3]))) == "2 to 3 requests, 2 in the median"
