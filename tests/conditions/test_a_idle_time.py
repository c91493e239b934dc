"""Conditions of counting idle time: what is idle, over which window, and of which GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import CannotAnswerError
from tests.conditions.ask import ask, device_of, exported, ledger, rules

if TYPE_CHECKING:
    from pathlib import Path

RANKS = """
nvtx        | [decode_step             ]
api         | D..V..CCCCCCCCCCCCCC......
gpu0 s7     | DDDDvvvvvvvvvnnnnC........
D = graph 1
V = graph 2 v n
n = kernel ncclDevKernel_AllReduce_Sum_bf16_RING_LL
C = copy DtoH 8 pageable
p2 nvtx     | [decode_step             ]
p2 api      | D..V..CCCCCCCCCCCCCC......
p2 gpu1 s7  | DDDDvvvnnnnnnnnnnC........
"""


def test_a1_a_stream_that_waits_beside_a_busy_one_is_no_idle_gpu() -> None:
    report = ask("api | AB....C.\ngpu0 s7 | .A.....C\ngpu0 s8 | ..BBBBB.")
    assert ledger(report) == {"busy": 7}


def test_a2_copies_between_kernels_are_no_idle_time() -> None:
    report = ask("api | A.C...B\ngpu0 s7 | .A....B\ngpu0 s8 | ..CCCC.\nC = copy HtoD 64 pinned")
    assert ledger(report) == {"busy": 6}


def test_a3_three_idle_streams_are_one_idle_gpu() -> None:
    report = ask("api | ABC....D\ngpu0 s7 | .A.....D\ngpu0 s8 | .B......\ngpu0 s9 | ..C.....")
    assert ledger(report) == {"busy": 3, "host_late": 4}


def test_a4_overlapping_streams_never_make_more_than_the_whole() -> None:
    report = ask("api | AB..\ngpu0 s7 | AAAA\ngpu0 s8 | .BBB")
    device = device_of(report)
    assert (device.busy_ns, device.span_ns, device.idle_ns) == (4_000, 4_000, 0)


def test_a6_one_stream_number_on_three_devices_is_three_streams() -> None:
    report = ask("api | ABC\ngpu1 s17 | AAA\ngpu2 s17 | BBB\ngpu3 s17 | CCC")
    assert [(device.gpu, device.busy_ns, device.span_ns) for device in report.devices] == [
        (gpu, 3_000, 3_000) for gpu in (1, 2, 3)
    ]


@pytest.mark.parametrize(("window", "busy", "span"), [((0, 10_000), 7, 8), ((4_000, 5_000), 4, 4), ((0, 1), 3, 3)])
def test_a8_busy_and_span_are_of_one_window(window: tuple[int, int], busy: int, span: int) -> None:
    device = device_of(ask("api | A...B...\ngpu0 s7 | AAA.BBBB", window=window))
    assert (device.busy_ns, device.span_ns) == (busy * 1000, span * 1000)


def test_a10_an_empty_window_is_an_error_and_no_healthy_gpu() -> None:
    with pytest.raises(CannotAnswerError, match="no GPU operation starts inside the window") as error:
        ask("api | A\ngpu0 s7 | A", window=(2**40, 2**41))
    assert error.value.exit_code == 3


def test_a11_threads_that_wait_at_once_are_not_added_up() -> None:
    report = ask(
        """
        nvtx     | [decode_step                             ]
        api      | D.V..SSSSSSSSSSSSSSSSSS..................
        api2     | .....TTTTTTTTTTTTTTTTTT..................
        gpu0 s7  | DDDVVVVVVVVVVVVVVVVVVV...................
        D = graph 1
        V = graph 2
        S = cudaStreamSynchronize s7
        T = cudaStreamSynchronize s7
        """,
        repeat=8,
    )
    step = report.steps.per_step["duration"].p50
    assert step is not None
    assert [finding.host_blocked_ns.p50 for finding in report.findings if finding.site.api] == [18_000]
    assert step > 18_000


def test_a12_shares_are_of_the_step_however_many_streams_there_are() -> None:
    one = """
        nvtx     | [decode_step                             ]
        api      | D.V..SSSSSSSSSSSSSSSSSS..................
        gpu0 s7  | DDDVVVVVVVVVVVVVVVVVVV...................
        D = graph 1
        V = graph 2
        S = cudaStreamSynchronize s7
    """
    more = one.replace("DDDVVV", "DDDVVV", 1) + "gpu0 s8  | .KK......................................\n"
    shares = [ask(picture, repeat=8).steps.bubble_share.inter_graph for picture in (one, more)]
    assert shares[0] == shares[1]
    assert shares[0] is not None
    assert 0.4 < shares[0] < 0.5


def test_a13_gaps_of_under_one_percent_are_for_information() -> None:
    step = "D" * 300 + "C" + "." * 2
    report = ask(
        f"""
        nvtx     | [{"decode_step":<{len(step) - 3}}]
        api      | D.{"C" * 299}..
        gpu0 s7  | {step}
        D = graph 1
        C = copy DtoH 8 pageable
        """,
        repeat=8,
    )
    assert {finding.severity for finding in report.findings} == {"info"}


def test_a14_synchronisations_are_no_gpu_work(tmp_path: Path) -> None:
    report = exported(tmp_path / "a.sqlite", "api | ASSSSS.B\ngpu0 s7 | .A.....B\nS = cudaStreamSynchronize s7")
    assert ledger(report) == {"busy": 2, "host_late": 5}


def test_a16_the_profilers_own_flush_at_the_end_is_no_bubble() -> None:
    report = ask("""
        api      | A..B.SSSSSSSSSSSSSSSSS
        gpu0 s7  | .AA.BB................
        profiler | .......PPPPPPPPPPPPPPP
        P = name "CUDA profiling data flush on cudaProfilerStop"
        S = cudaDeviceSynchronize
    """)
    assert ledger(report) == {"busy": 4, "launching": 1}
    assert rules(report) == []


def test_a18_a_collective_that_waits_for_a_late_rank_is_busy_and_said_to_wait() -> None:
    report = ask(RANKS, repeat=8, us=10)
    (skew,) = [finding for finding in report.findings if finding.rule == "CUDA131"]
    assert "length is not its work" in skew.message
    assert [device.gpu for device in skew.devices] == [0]
    assert ledger(report, 0)["busy"] == ledger(report, 1)["busy"]


def test_a19_the_classes_do_not_overlap_and_add_up() -> None:
    report = ask("""
        api      | A....CC.....GG...L....H....S.....K..
        gpu0 s7  | .AA.......................SS.....K..
        gpu0 s8  | ......CC......gg.gg.................
        gpu0 s8  | .......................HH...........
        profiler | .........PP.........................
        C = copy DtoH 8 pageable
        G = graph 5 g*2
        L = cudaLaunchKernel_v7000
    """)
    found = ledger(report)
    assert sum(found.values()) * 1000 == device_of(report).span_ns
    assert {"busy", "intra_graph", "host_late", "launching", "unrecorded", "profiler"} <= found.keys()
