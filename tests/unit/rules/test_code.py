from __future__ import annotations

from dataclasses import replace

import pytest

from bubblefinder.causes.facts import SiteFacts
from bubblefinder.rules.code import holds, plan_reads

READ = SiteFacts(
    gpu=0, process=1, sites=(1,), api="cudaMemcpyAsync", copy_kind="DtoH", memory_kind="pageable", bytes=68,
    steps=9, steps_affected=9, occurrences=27, per_step_count=1.0, copies_after=("HtoD",),
)  # fmt: skip


def group(*members: SiteFacts) -> SiteFacts:
    return replace(members[0], members=members, sites=(1, 2, 3))


@pytest.mark.parametrize("count", [2, 3, 4])
def test_two_to_four_small_reads_and_an_upload(count: int) -> None:
    assert plan_reads(group(*[READ] * count), 1)
    assert plan_reads(replace(READ, per_step_count=float(count)), 1)


@pytest.mark.parametrize("count", [1, 5])
def test_one_read_is_no_plan_and_neither_are_five(count: int) -> None:
    assert not plan_reads(replace(READ, per_step_count=float(count)), 1)


@pytest.mark.parametrize(
    "change", [{"bytes": 69}, {"bytes": None}, {"memory_kind": "pinned"}, {"copy_kind": "HtoD"}, {"copies_after": ()}]
)
def test_every_part_of_the_shape_counts(change: dict[str, object]) -> None:
    assert not plan_reads(group(READ, READ, replace(READ, **change)), 1)  # type: ignore[arg-type]


def test_the_limit_grows_with_the_batch() -> None:
    larger = group(*[replace(READ, bytes=4 * (16 * 8 + 1))] * 3)
    assert not plan_reads(larger, 1)
    assert plan_reads(larger, 8)


def test_a_rule_without_a_check_asks_for_nothing() -> None:
    assert holds(None, READ, 1)
    assert not holds("plan-reads", READ, 1)
