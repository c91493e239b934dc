from __future__ import annotations

import polars as pl
import pytest

from bubblefinder.causes.stalls import find_long_calls, find_polls, find_synchronous_launches
from tests.judged import drawn


def test_a_run_of_queries_that_ends_in_success_is_one_wait_from_first_to_last() -> None:
    judged = drawn("""
        api     | AQRQRQS.B.
        gpu0 s7 | .AAAAA..BB
        Q = cudaEventQuery e1 fails 600
        R = cudaEventQuery e1 fails 600
        S = cudaEventQuery e1
    """)
    (poll,) = find_polls(judged.timeline).rows(named=True)
    assert (poll["start_ns"], poll["end_ns"], poll["awaits"]) == (1_000, 7_000, True)
    assert judged.waits("drained") == [True]


@pytest.mark.parametrize(
    "queries",
    ["AQRS.....", "AQRQRQR..", "AQRQRxQRS"],
    ids=["too few", "never done", "something else between"],
)
def test_other_queries_are_no_poll(queries: str) -> None:
    judged = drawn(f"""
        api     | {queries}B.
        gpu0 s7 | .AAAAAA..BB
        Q = cudaEventQuery e1 fails 600
        R = cudaEventQuery e1 fails 600
        S = cudaEventQuery e1
        x = cudaEventRecord e2
    """)
    assert find_polls(judged.timeline).is_empty()


def test_launches_are_synchronous_only_if_nearly_all_are() -> None:
    blocking = "A" * 22 + "." + "B" * 22 + "." + "C" * 22 + "." + "D" * 22 + "."
    gpu = "." + "a" * 20 + ".." + "." + "b" * 20 + ".." + "c" * 20 + "..." + "d" * 20 + "."
    picture = f"api | {blocking}\ngpu0 s7 | {gpu.upper()}\n"
    assert len(find_synchronous_launches(drawn(picture).timeline)) == 4
    once = picture.replace("B" * 22, "B" + "." * 21)
    assert find_synchronous_launches(drawn(once).timeline).is_empty()


@pytest.mark.parametrize(("until", "awaits"), [(31, True), (90, False)])
def test_a_long_call_waits_if_it_comes_back_as_the_gpu_runs_dry(until: int, awaits: bool) -> None:
    call = "A" + "F" * until
    judged = drawn(f"""
        api     | {call}{"." * (110 - len(call))}B.
        gpu0 s7 | .{"A" * 29}{"." * 80}.BB
        F = cudaFree
    """)
    threads = pl.DataFrame({"thread": judged.timeline.calls["thread"].unique(), "gpu": [0]})
    (call_found,) = find_long_calls(judged.timeline, threads).rows(named=True)
    assert call_found["awaits"] is awaits


def test_a_call_under_which_the_gpu_has_work_is_no_stall() -> None:
    judged = drawn(f"""
        api     | AB{"F" * 40}.C
        gpu0 s7 | .{"A" * 20}{"B" * 30}CC
        F = cudaHostAlloc
    """)
    threads = pl.DataFrame({"thread": judged.timeline.calls["thread"].unique(), "gpu": [0]})
    assert find_long_calls(judged.timeline, threads).is_empty()
