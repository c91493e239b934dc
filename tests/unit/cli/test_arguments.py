"""Options that choose a part of a capture."""

from __future__ import annotations

import pytest

from bubblefinder.cli.arguments import parse_meta, parse_steps, parse_window
from bubblefinder.errors import UsageError


def test_windows_take_units_and_open_sides() -> None:
    assert parse_window("1.2s:1.5s") == (1_200_000_000, 1_500_000_000)
    assert parse_window("300ms:") == (300_000_000, 2**62)
    assert parse_window(":5us") == (0, 5_000)
    assert parse_window(None) is None


@pytest.mark.parametrize("text", ["", "1s", "2s:1s", "1s:1s", "a:b", "1x:2x"])
def test_what_is_no_window_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="START:END"):
        parse_window(text)


def test_steps_count_as_slices_do() -> None:
    assert [parse_steps("2:10"), parse_steps(":3"), parse_steps("4:")] == [(2, 10), (0, 3), (4, 2**62)]


@pytest.mark.parametrize("text", ["3", "3:3", "-1:2", "x:y"])
def test_what_is_no_range_of_steps_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="A:B"):
        parse_steps(text)


def test_meta_keeps_everything_behind_the_first_equals_sign() -> None:
    assert parse_meta(["host=a=b", "empty="]) == {"host": "a=b", "empty": ""}
    with pytest.raises(UsageError, match="key=value"):
        parse_meta(["alone"])
