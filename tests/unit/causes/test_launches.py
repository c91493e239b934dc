from __future__ import annotations

from bubblefinder.causes.launches import PHASE_LAUNCHES
from tests.judged import drawn


def roles(picture: str) -> list[str | None]:
    return drawn(picture).causes.submitted["role"].to_list()


def eager(count: int) -> str:
    calls = "ab" * (count // 2)
    work = "".join(f"{letter}" for letter in calls)
    return f"""
        api     | G.{calls}.G.{calls}.G.{calls}.G.
        gpu0 s7 | .g.{work}.g.{work}.g.{work}.g
        G = graph 5 g
    """


def test_a_long_run_of_kernel_launches_between_replays_is_an_eager_phase() -> None:
    found = roles(eager(PHASE_LAUNCHES + 2))
    assert "eager after decode" in found
    assert None not in found


def test_a_few_kernel_launches_between_replays_are_glue() -> None:
    assert set(roles(eager(4))) == {"decode", None}


def test_submissions_are_in_the_order_of_the_thread() -> None:
    judged = drawn("""
        api      | A.B.C..
        gpu0 s7  | .....AA
        gpu0 s9  | ...BB..
        gpu0 s14 | .....C.
        C = copy DtoH 8 pinned
    """)
    assert judged.causes.submitted["start_ns"].to_list() == [0, 2_000, 4_000]
    assert judged.causes.submitted["phase"].to_list() == [1, 1, None]
