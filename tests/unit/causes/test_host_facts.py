from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.causes.test_role_facts import step_facts
from tests.unit.causes.test_sites import steps

if TYPE_CHECKING:
    from bubblefinder.causes.step_parts import HoleFacts


def holes(long: str, extra: str = "") -> tuple[HoleFacts, ...]:
    """Seven short steps of 30 us, the fifth held up by 400 us."""
    step = ("G.........H.......", ".aaaaa.....ccccc..")
    gap = "." * 400
    api, gpu = (
        step[0] * 4 + step[0][:9] + gap + step[0][9:] + step[0] * 2,
        step[1] * 4 + step[1][:9] + gap + step[1][9:] + step[1] * 2,
    )
    start = 4 * len(step[0]) + 2
    track = f"{long} | " + "." * start + "x" * (400 + 5) + "." * (len(api) - start - 405) if long else ""
    facts = step_facts(f"api | {api}\ngpu0 s7 | {gpu}\n{track}\nG = graph 5 a\nH = graph 6 c\n{extra}")
    return facts.holes


def test_a_stretch_without_a_call_far_above_the_usual_is_a_hole() -> None:
    (hole,) = holes("")
    assert (hole.occurrences, hole.steps_affected, hole.reason) == (1, 1, None)
    assert hole.hole_p50_ns == 409_000
    assert hole.idle_p50_ns == pytest.approx(404_000)
    assert hole.one_rank is None


def test_a_call_of_the_operating_system_explains_a_hole() -> None:
    (hole,) = holes("os", "x = name sem_wait\n")
    assert (hole.reason, hole.detail) == ("os call", "sem_wait")


def test_a_thread_off_its_cpu_explains_a_hole() -> None:
    (hole,) = holes("off")
    assert (hole.reason, hole.detail) == ("descheduled", None)


def test_a_loop_that_is_always_the_same_has_no_holes() -> None:
    facts = step_facts(
        steps("G.........H.......", ".aaaaa.....ccccc..", "[step            ]", times=7)
        + "G = graph 5 a\nH = graph 6 c\n"
    )
    assert facts.holes == ()
