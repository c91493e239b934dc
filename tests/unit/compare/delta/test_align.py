"""Sequences laid side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.compare.delta import align
from bubblefinder.compare.delta.align import NOBODY, aligned

if TYPE_CHECKING:
    from collections.abc import Sequence

LAYER = ["norm", "qkv", "add", "add", "gate", "up", "down", "add"]


def told(before: Sequence[str], after: Sequence[str]) -> list[tuple[str | None, str | None]]:
    return [(before[a] if a >= 0 else None, after[b] if b >= 0 else None) for a, b in aligned(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("", "", []),
        ("abc", "", [("a", None), ("b", None), ("c", None)]),
        ("abc", "abc", [("a", "a"), ("b", "b"), ("c", "c")]),
        ("abc", "axc", [("a", "a"), ("b", "x"), ("c", "c")]),
        ("abc", "abxc", [("a", "a"), ("b", "b"), (None, "x"), ("c", "c")]),
        ("abxc", "abc", [("a", "a"), ("b", "b"), ("x", None), ("c", "c")]),
    ],
)
def test_small_sequences(before: str, after: str, expected: list[tuple[str | None, str | None]]) -> None:
    assert told(before, after) == expected


def test_a_kernel_exchanged_in_every_layer_is_exchanged_nowhere_else() -> None:
    after = ["gate_fp32" if name == "gate" else name for name in LAYER * 42]
    pairs = told(LAYER * 42, after)
    assert pairs.count(("gate", "gate_fp32")) == 42
    assert all(a == b for a, b in pairs if a != "gate")


def test_a_kernel_put_into_every_layer_is_new_there() -> None:
    after = [name for one in LAYER * 42 for name in ([one, "cast"] if one == "gate" else [one])]
    pairs = told(LAYER * 42, after)
    assert pairs.count((None, "cast")) == 42
    assert all(a == b for a, b in pairs if a is not None)


@given(st.lists(st.sampled_from("abcd"), max_size=12), st.lists(st.sampled_from("abcd"), max_size=12))
def test_every_node_of_both_is_there_once_and_in_order(before: list[str], after: list[str]) -> None:
    pairs = aligned(before, after)
    assert [a for a, _ in pairs if a != NOBODY] == list(range(len(before)))
    assert [b for _, b in pairs if b != NOBODY] == list(range(len(after)))
    assert (NOBODY, NOBODY) not in pairs


def test_sequences_too_long_to_weigh_are_paired_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(align, "MOST_CELLS", 0)
    pairs = aligned("xabcy", "xcbdy")
    assert sorted(pairs) == [(-1, 3), (0, 0), (1, -1), (2, 2), (3, 1), (4, 4)]
