from __future__ import annotations

import pytest

from tests.judged import drawn


@pytest.mark.parametrize(
    "api",
    [
        "cudaStreamSynchronize_v3020",
        "cudaStreamSynchronize_ptsz_v7000",
        "cuStreamSynchronize",
        "cudaEventSynchronize_v3020",
        "cuEventSynchronize",
        "cudaDeviceSynchronize_v3020",
        "cuCtxSynchronize",
    ],
)
def test_synchronisations_are_told_by_name(api: str) -> None:
    judged = drawn(f"""
        api     | ASSSS....B.
        gpu0 s7 | .AAA......BB
        S = {api}
    """)
    assert judged.waits("synchronises", "drained") == [(True, True)]


@pytest.mark.parametrize("api", ["cudaStreamWaitEvent_v3020", "cudaEventQuery_v3020", "cudaStreamQuery_v3020"])
def test_what_blocks_nobody_is_no_wait(api: str) -> None:
    judged = drawn(f"""
        api     | ASSSS....B.
        gpu0 s7 | .AAA......BB
        S = {api}
    """)
    assert judged.waits("api") == []


def test_an_asynchronous_copy_to_pageable_memory_blocks_inside_its_call() -> None:
    judged = drawn("""
        api     | ACCCCC..B.
        gpu0 s7 | .AAAC....BB
        C = copy DtoH 8 pageable
    """)
    assert judged.waits("api", "synchronises", "copy_kind", "memory_kind", "bytes") == [
        ("cudaMemcpyAsync", False, "DtoH", "pageable", 8)
    ]


def test_a_pinned_asynchronous_copy_whose_call_ends_late_is_no_wait() -> None:
    judged = drawn("""
        api     | ACCCCC..B.
        gpu0 s7 | .AAAC....BB
        C = copy DtoH 8 pinned
    """)
    assert judged.waits("api") == []


def test_a_synchronous_copy_is_a_wait_whatever_its_memory() -> None:
    judged = drawn("""
        api     | ACCCCC..B.
        gpu0 s7 | .AAAC....BB
        C = copy HtoD 8 pinned via cudaMemcpy_v3020
    """)
    assert judged.waits("api", "copy_kind") == [("cudaMemcpy", "HtoD")]


def test_a_synchronisation_names_the_copy_it_waits_for() -> None:
    judged = drawn("""
        api      | A.CSSSSS..B.
        gpu0 s7  | .AAAA......BB
        gpu0 s14 | .....C......
        C = copy DtoH 4 pinned
        S = cudaStreamSynchronize s14
    """)
    assert judged.waits("copy_kind", "memory_kind", "bytes") == [("DtoH", "pinned", 4)]


def test_a_copy_before_the_last_launch_is_not_what_is_waited_for() -> None:
    judged = drawn("""
        api      | C..ASSSSS..B.
        gpu0 s7  | ....AAAA...BB
        gpu0 s14 | .C..........
        C = copy DtoH 4 pinned
        S = cudaStreamSynchronize s7
    """)
    assert judged.waits("copy_kind") == [None]


def test_a_copy_on_another_stream_is_not_what_is_waited_for() -> None:
    judged = drawn("""
        api      | A.CSSSSS..B.
        gpu0 s7  | .AAAA......BB
        gpu0 s14 | .....C......
        C = copy DtoH 4 pinned
        S = cudaStreamSynchronize s7
    """)
    assert judged.waits("copy_kind") == [None]


def test_an_event_stands_for_what_was_submitted_before_its_record() -> None:
    judged = drawn("""
        api     | A.CE..B.WWWWW....
        gpu0 s7 | .AAAC...BBBBBBBBB
        C = copy DtoH 4 pinned
        E = cudaEventRecord s7 e3
        W = cudaEventSynchronize e3
    """)
    assert judged.waits("copy_kind", "bytes", "drained") == [("DtoH", 4, False)]


def test_a_driver_call_inside_a_runtime_call_is_the_same_wait() -> None:
    judged = drawn("""
        api     | ASSSSSS....B.
        api     | ..TTT........
        gpu0 s7 | .AAAAA......BB
        S = cudaStreamSynchronize s7
        T = cuStreamSynchronize s7
    """)
    assert judged.waits("api") == ["cudaStreamSynchronize"]


HELPER = """
    api     | A....................B...
    api2    | ..CCCCCCCCCCCCCCCC.......
    gpu0 s7 | .AAAAAAAAAAAAAAAC.....BBB
    C = copy DtoH 8 pageable via cudaMemcpy_v3020
"""


def test_the_wait_of_another_thread_counts_if_the_launching_thread_sleeps_until_it_is_over() -> None:
    judged = drawn(HELPER + "os | .xxxxxxxxxxxxxxxxxxx.....\n x = name pthread_cond_wait\n")
    assert judged.waits("drained", "bubble_ns") == [(True, 5_000)]
    thread, launcher = judged.waits("thread", "launcher")[0]
    assert thread != launcher


def test_the_wait_of_another_thread_counts_if_the_launching_thread_goes_on_at_once() -> None:
    assert drawn(HELPER).waits("drained") == [True]


def test_a_thread_that_was_busy_for_long_after_anothers_wait_did_not_wait_for_it() -> None:
    far = "." * 150
    judged = drawn(f"""
        api     | A.............{far}B...
        api2    | ..CCCCCCCCC...{far}....
        gpu0 s7 | .AAAAAAAAC....{far}.BBB
        C = copy DtoH 8 pageable via cudaMemcpy_v3020
    """)
    assert judged.waits("api") == []


def test_a_thread_that_goes_on_calling_waits_for_nobody() -> None:
    judged = drawn("""
        api     | A.....D..............B...
        api2    | ..CCCCCCCCCCCCCCCC.......
        gpu0 s7 | .AAAAAAAAAAAAAAAC.....BBB
        gpu0 s9 | .......D.................
        C = copy DtoH 8 pageable via cudaMemcpy_v3020
    """)
    assert judged.waits("api") == []


def test_a_thread_that_comes_back_right_after_anothers_wait_only_now_and_then_does_not_wait_for_it() -> None:
    # The helper's wait ends right before the launch in the first step; in the others the launch comes in its midst.
    first = ("a.........................b...", "..CCCCCCCCCCCCCCCCCCCCCC......", ".aaaaaaaaaaaaaaaaaaaaaC....bb.")
    other = ("a......b......................", "..CCCCCCCCCCCCCCCCCCCCCC......", ".aaaaaaaaaaaaaaaaabbbbC.......")
    api, helper, gpu = (one + two * 3 for one, two in zip(first, other, strict=True))
    judged = drawn(f"""
        api     | {api}
        api2    | {helper}
        gpu0 s7 | {gpu}
        C = copy DtoH 8 pageable via cudaMemcpy_v3020
    """)
    assert judged.waits("api") == []
