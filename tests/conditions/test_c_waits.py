"""Conditions of copies and waits: which call blocks whom, and what that costs the GPU."""

from __future__ import annotations

import pytest

from bubblefinder.report.build import analyze_trace
from bubblefinder.timeline.build import build_timeline
from tests.conditions.ask import ask, drawn, ledger, rules
from tests.loops import DRAFT, VERIFY, Loop

READ = """
nvtx     | [decode_step                            ]
api      | D.V..{call:<22}.............
gpu0 s7  | DDDVVVVVVVVVVVVVVVVVVVV................
gpu0 s14 | .......................C................
D = graph 1
V = graph 2
C = {copy}
S = cudaStreamSynchronize s14
E = cudaEventSynchronize e3
"""
PAGEABLE = "C" * 20
PINNED_THEN_WAIT = "C" + "S" * 19


def apis(picture: str) -> list[tuple[str | None, str | None, str | None]]:
    """API, direction and memory of every finding about a wait."""
    report = ask(picture, repeat=8)
    return [(f.site.api, f.site.copy_kind, f.site.memory_kind) for f in report.findings if f.site.api]


def waiting(picture: str) -> list[tuple[str | None, float | None]]:
    """API of every benign wait, and how often a step has it."""
    return [(wait.site.api, wait.per_step_count) for wait in ask(picture, repeat=8).benign]


@pytest.mark.parametrize("size", [4, 2**31])
def test_c1_an_asynchronous_read_into_pageable_memory_blocks(size: int) -> None:
    picture = READ.format(call=PAGEABLE, copy=f"copy DtoH {size} pageable")
    assert apis(picture) == [("cudaMemcpyAsync", "DtoH", "pageable")]


@pytest.mark.parametrize("wait", ["S", "E"])
def test_c2_a_pinned_read_and_the_wait_behind_it_are_one_finding(wait: str) -> None:
    picture = READ.format(call="C" + wait * 19, copy="copy DtoH 8 pinned")
    api = {"S": "cudaStreamSynchronize", "E": "cudaEventSynchronize"}[wait]
    assert apis(picture) == [(api, "DtoH", "pinned")]


def test_c3_a_read_waits_for_the_work_before_it_and_costs_the_idle_time_after_it() -> None:
    report = ask(READ.format(call=PAGEABLE, copy="copy DtoH 8 pageable"), repeat=8)
    read = next(finding for finding in report.findings if finding.site.api)
    assert (read.host_blocked_ns.p50, read.bubble_ns.p50) == (20_000, 17_000)
    assert read.recoverable_ns == 17_000 + 1_000  # the idle time, and the copy itself


def test_c4_calls_beside_a_busy_gpu_are_never_recoverable() -> None:
    report = ask(
        """
        nvtx     | [decode_step                           ]
        api      | KKKKKKKKKKLLLLLLLLLLSSSSSSSSS...........
        gpu0 s7  | KKKKKKKKKKKKKKKKKKKKLLLLLLLLLLLLLLLLLLLL
        S = cudaStreamSynchronize s14
        """,
        repeat=8,
    )
    assert ledger(report) == {"busy": 320}
    assert rules(report) == []
    assert not any(finding.recoverable_ns for finding in report.findings)


def test_c6_three_small_reads_of_one_plan_are_one_finding() -> None:
    report = ask(
        """
        nvtx     | [decode_step                                    ]
        nvtx     | .....[plan                         ]............
        api      | D.V..AAAAAAAAAAAAAAAAAAAA.BB.CC......G...........
        gpu0 s7  | DDDVVVVVVVVVVVVVVVVVVVV...............GGGGGGGGG..
        gpu0 s14 | .......................A..B..C...................
        D = graph 1
        V = graph 2
        G = graph 3
        A = copy DtoH 8 pageable
        B = copy DtoH 8 pageable
        C = copy DtoH 8 pageable
        """,
        repeat=8,
    )
    (plan,) = [finding for finding in report.findings if finding.site.api]
    assert (plan.per_step_count, plan.site.bytes, plan.site.nvtx) == (3, 8, "plan")


def test_c7_blocking_uploads_are_reported_too() -> None:
    picture = READ.format(call=PAGEABLE, copy="copy HtoD 64 pageable via cudaMemcpy_v3020")
    assert apis(picture) == [("cudaMemcpy", "HtoD", "pageable")]


@pytest.mark.parametrize("api", ["cudaStreamWaitEvent", "cudaEventQuery", "cudaStreamQuery", "cuStreamWaitEvent"])
def test_c8_queries_and_stream_waits_block_nobody(api: str) -> None:
    picture = READ.format(call="W" + "." * 19, copy="copy DtoH 8 pinned").replace("C = ", "W = " + api + "\nC = ")
    picture = picture.replace("gpu0 s14 | .......................C", "gpu0 s14 | .......................x")
    assert apis(picture) == []
    assert waiting(picture) == []


@pytest.mark.parametrize(("api", "blocks"), [("cudaMemcpy_v3020", True), ("cudaMemcpyAsync_v3020", False)])
def test_c8_the_synchronous_copy_is_told_from_the_asynchronous_one(api: str, *, blocks: bool) -> None:
    timeline = build_timeline(drawn(f"api | CCC\ngpu0 s7 | .C.\nC = copy DtoH 8 pinned via {api}"))
    assert timeline.operations["blocking"].to_list() == [blocks]


def test_c11_a_wait_is_a_wait_however_the_thread_spends_it() -> None:
    spinning = READ.format(call=PINNED_THEN_WAIT, copy="copy DtoH 8 pinned")
    blocking = spinning + "os       | ......qqqqqqqqqqqqqqqqqq................\nq = name poll\n"
    assert apis(spinning) == apis(blocking) == [("cudaStreamSynchronize", "DtoH", "pinned")]


def test_c12_a_read_in_one_of_eight_steps_is_told_as_such() -> None:
    loop = Loop()
    for number in range(49):
        loop.spend(50)
        loop.firsts.append(loop.upload())
        begin = loop.now
        for graph in (DRAFT, VERIFY):
            loop.replay(graph)
        if number % 8 == 7:
            loop.read()
        loop.range("decode_step", begin)
    report = analyze_trace(loop.sketch.trace())
    reads = [finding for finding in report.findings if finding.site.api == "cudaMemcpyAsync"]
    assert [finding.steps_affected for finding in reads] == [6]
