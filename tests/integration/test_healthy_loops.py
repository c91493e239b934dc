"""Loops that run ahead, unlike each other in step length, engine, streams and threads: nothing is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.report.build import analyze_trace
from tests.simulate import Graph, Host, Machine, nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.model import Report

    Events = dict[int, tuple[int, int]]
    Step = Callable[[Host, int, Events], None]

DRAFT = Graph(5, nodes("draft_attn", "draft_mlp", us=9) * 10)
VERIFY = Graph(3, nodes("attn", "mlp", "router", "moe", us=11) * 24)
SHORT, LONG = Graph(9, nodes("attn", "mlp", us=4) * 20), Graph(8, nodes("attn", "mlp", us=60) * 160)


def ahead(host: Host, number: int, awaited: Events, depth: int = 1) -> None:
    if number - depth in awaited:
        host.wait_for(awaited[number - depth])
    host.download()
    awaited[number] = host.record(number)


def of_200_us(host: Host, number: int, awaited: Events) -> None:
    host.work(25)
    host.replay(SHORT, call_us=12)
    ahead(host, number, awaited, 3)


def of_20_ms(host: Host, number: int, awaited: Events) -> None:
    host.work(900)
    host.upload()
    host.replay(LONG, call_us=200)
    ahead(host, number, awaited)


def drafting(host: Host, number: int, awaited: Events) -> None:
    for _ in range(3):
        host.work(15)
        host.replay(DRAFT, call_us=12)
    host.work(40)
    host.replay(VERIFY)
    ahead(host, number, awaited)


def in_pieces(host: Host, number: int, awaited: Events) -> None:
    host.work(60)
    for layer in range(12):
        host.replay(Graph(20 + layer, nodes("qkv", "o", us=25) * 2), call_us=8)
        host.kernel("attention", 40)
    ahead(host, number, awaited)


def kernel_by_kernel(host: Host, number: int, awaited: Events) -> None:
    host.work(80)
    for kernel in range(120):
        host.kernel(f"k_{kernel % 9}", 14, call_us=4)
    ahead(host, number, awaited, 2)


def on_two_streams(host: Host, number: int, awaited: Events) -> None:
    host.work(90)
    host.stream_wait(host.record(500 + number), stream=13)
    host.replay(VERIFY)
    host.replay(DRAFT, stream=13)
    host.stream_wait(host.record(700 + number, stream=13))
    ahead(host, number, awaited)


def of_changing_batches(host: Host, number: int, awaited: Events) -> None:
    host.work(100)
    host.upload(64 * (1 + number % 4))
    host.replay(VERIFY.scaled(1 + 0.1 * (number % 4), 3 + 100 * (number % 4)))
    ahead(host, number, awaited)


def allocating_now_and_then(host: Host, number: int, awaited: Events) -> None:
    host.work(60)
    if number % 9 == 4:
        host.call("cudaMalloc_v3020", 90)
        host.call("cudaFree_v3020", 30)
    host.replay(VERIFY)
    ahead(host, number, awaited)


def calling_the_system(host: Host, number: int, awaited: Events) -> None:
    host.os_call("futex", 40)
    host.os_call("poll", 120)
    host.replay(VERIFY)
    ahead(host, number, awaited)


def with_short_callbacks(host: Host, number: int, awaited: Events) -> None:
    host.work(60)
    host.replay(VERIFY)
    host.call("cudaLaunchHostFunc_v10000", 4)
    host.occupy(host.queued_until() + 4_000)
    ahead(host, number, awaited, 2)


def set_up(host: Host) -> None:
    """Memory, weights and a synchronisation before the first step."""
    for _ in range(6):
        host.call("cudaMalloc_v3020", 300)
    host.upload(50_000_000, us=900)
    host.call("cudaFree_v3020", 60, until=host.queued_until(-1) + 5_000)
    host.synchronize("cudaDeviceSynchronize_v3020")
    host.work(20_000)


LOOPS = [
    of_200_us, of_20_ms, drafting, in_pieces, kernel_by_kernel, on_two_streams, of_changing_batches,
    allocating_now_and_then, calling_the_system, with_short_callbacks,
]  # fmt: skip


def above_low(report: Report) -> list[str]:
    return [finding.title for finding in report.findings if finding.severity in {"medium", "high"}]


@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
@pytest.mark.parametrize("step", LOOPS, ids=lambda step: step.__name__)
def test_a_healthy_loop_has_no_finding_above_low(step: Step, node_mode: bool) -> None:
    machine = Machine(seed=3, jitter=0.03, node_mode=node_mode)
    host = machine.host()
    awaited: Events = {}
    set_up(host)
    for number in range(40):
        step(host, number, awaited)
    report = analyze_trace(machine.trace())
    assert report.steps.count >= 36
    assert above_low(report) == []


@pytest.mark.parametrize("node_mode", [True, False], ids=["node", "graph"])
def test_nor_has_one_whose_results_another_thread_fetches(node_mode: bool) -> None:
    machine = Machine(seed=9, node_mode=node_mode)
    host = machine.host()
    worker = host.thread(2)
    awaited: Events = {}
    for number in range(40):
        host.work(50)
        host.replay(VERIFY)
        if number - 1 in awaited:
            worker.not_before(host.now)
            worker.wait_for(awaited[number - 1])
            worker.work(30)
        host.download()
        awaited[number] = host.record(number)
        if number > 2:
            host.not_before(min(worker.now, host.now + 200_000))
    assert above_low(analyze_trace(machine.trace())) == []
