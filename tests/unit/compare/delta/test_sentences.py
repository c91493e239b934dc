"""Every kind of change has words, and names from captures are inert in them."""

from __future__ import annotations

from typing import get_args

import pytest

from bubblefinder.compare.delta.model import Kind
from bubblefinder.compare.delta.sentences import part_name, parts_of, remedy, sentence
from tests.unit.compare.delta.parts import a_part

KINDS = get_args(Kind)


@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"behind a wait"}))
def test_every_kind_is_told(kind: Kind) -> None:
    part = a_part(kind, 90_000, "moe\x1b[31m_up", role="verify", head_name="moe_new", what="grid 8 to 4", nodes=12)
    told = sentence([part], kind, 100_000, 1)
    assert told.endswith("on rank 1: +90.0 us of +100 us a step")
    assert "\x1b" not in told + part_name(part)
    assert "{" not in told


@pytest.mark.parametrize(
    "kind", sorted(set(KINDS) - {"gone kernel", "overlap gained", "to graph", "gone wait", "gone call"})
)
def test_what_makes_a_step_longer_has_a_remedy(kind: Kind) -> None:
    assert remedy([a_part(kind, 90_000)], kind).endswith(".")
    assert remedy([a_part(kind, -90_000)], kind) == ""


def test_a_replay_whose_inside_is_unknown_says_so() -> None:
    told = sentence([a_part("same kernel", 90_000, "replay", role="verify")], "same kernel", 90_000, None)
    assert told.startswith("a replay, whose inside is not in the capture, takes longer in verify")


@pytest.mark.parametrize(
    ("delta", "total", "told"),
    [
        (-1_000_000, -2_000_000, "-1.00 ms of -2.00 ms a step"),
        (-1_651_000, -1_640_000, "all of the -1.64 ms a step"),
        (-1_430_000, -1_260_000, "-1.43 ms a step, -1.26 ms with what offsets it"),
        (-1_430_000, 200_000, "-1.43 ms a step, +200 us with what offsets it"),
    ],
)
def test_no_part_is_told_as_more_than_the_whole_it_is_of(delta: int, total: int, told: str) -> None:
    assert parts_of(delta, total) == told


def test_rows_of_a_table() -> None:
    part = a_part("another kernel", 5, "gate", role="verify", head_name="gate_fp32", nodes=12)
    assert part_name(part) == "another kernel: gate to gate_fp32 in verify, 12 nodes"
    assert part_name(a_part("not told", 5)) == "not told"
