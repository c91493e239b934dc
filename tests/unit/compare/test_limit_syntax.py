"""Limits as people write them."""

from __future__ import annotations

import pytest

from bubblefinder.compare.limit_syntax import format_limit, parse_limit, parse_share


@pytest.mark.parametrize(
    ("text", "unit", "number"),
    [
        ("7.4 ms", "ns", 7_400_000),
        ("350us", "ns", 350_000),
        ("12 %", "ratio", 0.12),
        (0.12, "ratio", 0.12),
        (3, "count", 3),
    ],
)
def test_limits_have_the_unit_of_their_metric(text: str | float, unit: str, number: float) -> None:
    assert parse_limit(text, unit) == pytest.approx(number)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "unit"), [(7.4, "ns"), ("8", "ns"), ("fast", "ns"), ("3", "count"), ("lots", "ratio")]
)
def test_what_is_no_limit_is_told_how_to_be_one(text: str | float, unit: str) -> None:
    with pytest.raises(ValueError, match="write"):
        parse_limit(text, unit)  # type: ignore[arg-type]


def test_shares_and_limits_read_well() -> None:
    assert parse_share("2%") == pytest.approx(0.02)
    assert format_limit(7_400_000, "ns") == "7.40 ms"
    assert format_limit(0.125, "ratio") == "12.5 %"
    assert format_limit(1234, "count") == "1,234"
