"""The kinds of blame in loops of other shapes: other calls, sizes and places in the step; and healthy loops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from bubblefinder.report.build import analyze_trace
from bubblefinder.report.verdict import leading_finding, verdict
from tests.simulate import PAGEABLE, Graph, Host, Machine, collective, nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import Report

    Step = Callable[[Host, int], None]
    Events = dict[int, tuple[int, int]]

US = 1_000
DRAFT = Graph(5, nodes("draft_attn", "draft_mlp", us=9) * 10)
VERIFY = Graph(3, nodes("attn", "mlp", "router", "moe", us=11) * 24)
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def loop(step: Step, *, steps: int = 24, node_mode: bool = True, jitter: float = 0.02) -> Report:
    machine = Machine(seed=11, node_mode=node_mode, jitter=jitter)
    host = machine.host()
    for number in range(steps):
        step(host, number)
    return analyze_trace(machine.trace())


def leader(report: Report) -> Finding:
    found = leading_finding(report)
    assert found is not None
    return found


def copying(host: Host, api: str, sides: tuple[int, int, int], size: int, us: float) -> None:
    """A copy whose call returns behind it."""
    kind, source, target = sides
    start = max(host.now + 4 * US, host.queued_until()) + US
    end = start + round(us * US)
    correlation = host.call(api, 5, until=end + 2 * US)
    host._run(1, start, end, correlation, None, bytes=size, copy_kind=kind, src_kind=source, dst_kind=target)


def two_roles(fault: Callable[[Host], None], *, place: int) -> Step:
    """Draft and verify, with the fault before the draft, between both, or at the end."""
    awaited: Events = {}

    def step(host: Host, number: int) -> None:
        for turn, graph in enumerate((DRAFT, VERIFY)):
            if place == turn:
                fault(host)
            host.work(40)
            host.upload()
            host.replay(graph)
        if place == 2:
            fault(host)
        if number - 1 in awaited:
            host.wait_for(awaited[number - 1])
        host.download()
        awaited[number] = host.record(number)

    return step


def waiting(wait: Callable[[Host], object], us: float = 350) -> Callable[[Host], None]:
    """A wait and the host's work behind it."""

    def fault(host: Host) -> None:
        wait(host)
        host.work(us)

    return fault


def busy(api: str, us: float) -> Callable[[Host], None]:
    """A call that is busy with itself."""

    def fault(host: Host) -> None:
        host.call(api, us)

    return fault


DOWN, UP = (2, 2, PAGEABLE), (1, PAGEABLE, 2)
WAITS: dict[str, tuple[Callable[[Host], None], str | None]] = {
    "cudaMemcpy3DAsync": (waiting(lambda host: copying(host, "cudaMemcpy3DAsync_v3020", (2, 2, 1), 96, 2)), "DtoH"),
    "cuMemcpyDtoH": (waiting(lambda host: copying(host, "cuMemcpyDtoH_v2", DOWN, 64, 2)), "DtoH"),
    "cudaMemcpyAsync": (waiting(lambda host: copying(host, "cudaMemcpyAsync_v3020", UP, 3 << 20, 180)), "HtoD"),
    "cuCtxSynchronize": (waiting(lambda host: host.synchronize("cuCtxSynchronize")), None),
    "cuMemFreeHost": (waiting(lambda host: host.call("cuMemFreeHost", 8, until=host.queued_until(-1) + 2_000)), None),
    "cudaHostRegister": (busy("cudaHostRegister_v4000", 2_600), None),
    "cuMemAddressReserve": (busy("cuMemAddressReserve", 2_700), None),
    "cudaGraphExecUpdate": (busy("cudaGraphExecUpdate_v10020", 2_500), None),
    "cuModuleLoadDataEx": (busy("cuModuleLoadDataEx", 2_900), None),
    "cudaEventCreateWithFlags": (busy("cudaEventCreateWithFlags_v3020", 2_400), None),
}


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("api", WAITS)
def test_the_call_under_which_the_gpu_runs_dry_leads_wherever_it_stands(api: str, place: int) -> None:
    fault, direction = WAITS[api]
    report = loop(two_roles(fault, place=place))
    found = leader(report)
    assert (found.site.api or "").removesuffix("_v2") == api
    if "Synchronize" not in api:  # before the draft it waits for the copy of the step before
        assert found.site.copy_kind == direction
    assert found.severity == "high"
    assert found.remedy


@pytest.mark.parametrize("us", [900, 4_000, 9_000])
@pytest.mark.parametrize("every", [1, 7])
def test_a_pause_behind_a_read_is_told_apart_from_it(us: float, every: int) -> None:
    def step(host: Host, number: int) -> None:
        host.work(120)
        if number % every == every - 1:
            host.os_call("recvmsg", us)
        host.replay(VERIFY)
        host.read(16)
        host.work(90)

    report = loop(step, steps=35)
    pause = next(finding for finding in report.findings if "recvmsg" in finding.title)
    read = next(finding for finding in report.findings if finding.site.copy_kind == "DtoH")
    usual_us = 0 if every == 1 else 230  # of a stretch far longer than usual all is told
    assert 0.97 * us * US < (pause.bubble_ns.p50 or 0) < 1.03 * (us + usual_us) * US
    assert read.bubble_ns.p50 == pytest.approx(225 * US, rel=0.2)
    assert pause.steps_affected == pytest.approx(35 / every, abs=1)


@pytest.mark.parametrize("api", ["cudaEventSynchronize", "cudaStreamSynchronize", "cudaMemcpyAsync"])
@pytest.mark.parametrize("lag_us", [150, 900])
def test_the_wait_of_a_worker_starves_the_launching_thread(api: str, lag_us: float) -> None:
    machine = Machine(seed=5)
    host = machine.host()
    worker = host.thread(7)
    for _ in range(26):
        host.work(15)
        host.replay(DRAFT)
        host.replay(VERIFY)
        host.download(32)
        event = host.record(4)
        worker.not_before(host.now + 30 * US)
        if api == "cudaEventSynchronize":
            worker.wait_for(event)
        elif api == "cudaStreamSynchronize":
            worker.synchronize()
        else:
            worker.read(32)
        worker.work(lag_us)
        host.not_before(worker.now)
    assert leader(analyze_trace(machine.trace())).site.api == api


@pytest.mark.parametrize("hold_us", [90, 600])
def test_a_callback_that_holds_the_queue_is_named(hold_us: float) -> None:
    awaited: Events = {}

    def step(host: Host, number: int) -> None:
        host.work(60)
        host.replay(DRAFT)
        host.call("cudaStreamAddCallback_v5000", 5)
        host.occupy(host.queued_until() + round(hold_us * US))
        host.replay(VERIFY)
        if number - 2 in awaited:
            host.wait_for(awaited[number - 2])
        host.download()
        awaited[number] = host.record(number)

    found = leader(loop(step, steps=30))
    assert (found.rule, found.site.api) == ("CUDA161", "cudaStreamAddCallback")
    assert found.bubble_ns.p50 == pytest.approx(hold_us * US, rel=0.06)


# Healthy loops


def ahead(host: Host, number: int, awaited: Events, depth: int = 1) -> None:
    if number - depth in awaited:
        host.wait_for(awaited[number - depth])
    host.download()
    awaited[number] = host.record(number)


def by_graph(awaited: Events) -> Step:
    def step(host: Host, number: int) -> None:
        host.work(120)
        host.upload()
        host.replay(VERIFY)
        ahead(host, number, awaited)

    return step


def eager(awaited: Events) -> Step:
    def step(host: Host, number: int) -> None:
        host.work(60)
        for kernel in range(60):
            host.work(2)
            host.kernel(f"layer_{kernel % 6}", 25)
        ahead(host, number, awaited)

    return step


def prefetching(awaited: Events) -> Step:
    def step(host: Host, number: int) -> None:
        host.work(100)
        host.upload(20_000_000, us=500, stream=14)
        host.replay(VERIFY)
        host.stream_wait(host.record(900 + number, stream=14))
        ahead(host, number, awaited)

    return step


def pinned_both_ways(awaited: Events) -> Step:
    def step(host: Host, number: int) -> None:
        host.work(80)
        for size in (64, 4_096, 256):
            host.upload(size)
        host.replay(DRAFT)
        host.download(64)
        host.replay(VERIFY)
        host.memset()
        ahead(host, number, awaited, depth=2)

    return step


def asked_and_ready(awaited: Events) -> Step:
    def step(host: Host, number: int) -> None:
        host.work(100)
        host.upload()
        host.replay(VERIFY)
        host.call("cudaEventQuery_v3020", 1.5, return_value=600)
        ahead(host, number, awaited)

    return step


def pooled(awaited: Events) -> Step:
    def step(host: Host, number: int) -> None:
        host.work(60)
        host.call("cudaMallocAsync_v11020", 4)
        host.upload()
        host.replay(DRAFT)
        host.os_call("futex", 60)
        host.replay(VERIFY)
        host.call("cudaFreeAsync_v11020", 3)
        ahead(host, number, awaited)

    return step


@pytest.mark.parametrize("node_mode", [True, False])
@pytest.mark.parametrize("kind", [by_graph, eager, prefetching, pinned_both_ways, asked_and_ready, pooled])
def test_a_healthy_loop_has_nothing_above_low(kind: Callable[[Events], Step], node_mode: bool) -> None:
    report = loop(kind({}), steps=40, node_mode=node_mode)
    assert {finding.severity for finding in report.findings} <= {"info", "low"}
    assert verdict(report).blame.startswith("The host is fine")


def test_two_healthy_ranks_have_nothing_above_low() -> None:
    machine = Machine(seed=3)
    hosts = [machine.host(), machine.host(1002, gpu=1)]
    awaited: list[Events] = [{}, {}]
    for number in range(40):
        for host in hosts:
            host.work(70)
            host.replay(VERIFY)
        collective(hosts, ALL_REDUCE, 90)
        for host, mine in zip(hosts, awaited, strict=True):
            host.kernel("sample", 9)
            ahead(host, number, mine)
    report = analyze_trace(machine.trace())
    assert {finding.severity for finding in report.findings} <= {"info", "low"}


# A full launch queue


LIMIT = 1_024
"""Launches that the driver takes ahead of the GPU."""


class Full:
    """A launching thread whose calls wait for room once so many launches and host functions are pending."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.left: list[int] = []

    def _room(self) -> int:
        return self.left[-LIMIT] if len(self.left) >= LIMIT else 0

    def kernel(self, name: str, us: float) -> None:
        begun, room = self.host.now, self._room()
        correlation = self.host.call("cudaLaunchKernel_v7000", 3, until=room)
        start = max(self.host._start(begun, None, 0), self.host.now - 2 * US if room > begun else 0)
        self.host._run(0, start, start + self.host.machine.ns(us), correlation, None, name=name)
        self.left.append(start)

    def function(self, us: float) -> None:
        self.host.call("cudaLaunchHostFunc_v10000", 2, until=self._room())
        start = max(self.host.queued_until(), self.host.now)
        self.host.occupy(start + self.host.machine.ns(us))
        self.left.append(start)


def deep(step: Callable[[Full], None], steps: int = 16) -> Report:
    machine = Machine(seed=2)
    host = machine.host()
    full = Full(host)
    for _ in range(steps):
        with host.range("decode_step"):
            host.work(60)
            step(full)
    return analyze_trace(machine.trace())


def test_launches_that_wait_for_room_under_a_busy_gpu_are_no_finding() -> None:
    def step(full: Full) -> None:
        for number in range(300):
            full.kernel(f"layer_{number % 6}", 6)

    report = deep(step)
    assert {finding.severity for finding in report.findings} <= {"info", "low"}
    assert verdict(report).blame.startswith("The host is fine")


@pytest.mark.parametrize("functions", [(1, 6_000), (1_300, 3)], ids=["one long", "many short"])
def test_behind_a_full_launch_queue_what_holds_the_stream_is_named_and_no_gain_promised(
    functions: tuple[int, float],
) -> None:
    count, us = functions

    def step(full: Full) -> None:
        for number in range(100):
            full.kernel(f"attn_{number % 6}", 5)
        for _ in range(count):
            full.function(us)
        for number in range(1_500 if count == 1 else 20):
            full.kernel(f"mlp_{number % 6}", 5)

    found = leader(deep(step))
    assert (found.rule, found.site.api, found.severity) == ("CUDA161", "cudaLaunchHostFunc", "high")
    assert found.recoverable_ns is None
    assert "the launch queue is full" in found.message


def test_a_full_launch_queue_is_the_finding_where_nothing_shows_what_holds_it() -> None:
    def step(full: Full) -> None:
        for number in range(100):
            full.kernel(f"attn_{number % 6}", 5)
        full.host.occupy(full.host.queued_until() + full.host.machine.ns(6_000))
        for number in range(1_500):
            full.kernel(f"mlp_{number % 6}", 5)

    found = leader(deep(step))
    assert (found.rule, found.severity, found.recoverable_ns) == ("CUDA165", "high", None)
    assert "GPU 0 idles 6.0" in found.message
    assert re.search(r"1,0\d\d launches wait for it: the launch queue is full", " ".join(found.message.split()))


# What is queued behind something else, and what it gives


def function(host: Host) -> None:
    host.call("cudaLaunchHostFunc_v10000", 5)
    host.occupy(host.queued_until() + 400 * US)


def other_gpu(host: Host) -> None:
    """An event that something without a record, such as another GPU's work, fires late."""
    host.call("cudaStreamWaitEvent_v3020", 2)
    host.occupy(host.queued_until() + 250 * US)


def engine(host: Host) -> None:
    """A copy whose engine is busy for another process."""
    host.occupy(host.queued_until() + 300 * US)
    host.upload(1 << 20, us=20)


QUEUES = [
    (function, "CUDA161", "cudaLaunchHostFunc"),
    (other_gpu, "CUDA162", "cudaStreamWaitEvent"),
    (engine, "CUDA163", "cudaMemcpyAsync"),
]


def released(host: Host) -> None:
    """The copy of `engine`, in time."""
    host.upload(1 << 20, us=20)


@pytest.mark.parametrize(("hold", "rule", "api"), QUEUES, ids=["host function", "event", "copy"])
def test_what_holds_queued_work_back_is_priced_as_the_loop_without_it(
    hold: Callable[[Host], None], rule: str, api: str
) -> None:
    def run(fault: Callable[[Host], None]) -> Report:
        awaited: Events = {}

        def step(host: Host, number: int) -> None:
            host.work(80)
            host.replay(DRAFT)
            with host.range("fence"):
                fault(host)
                host.replay(VERIFY)
            ahead(host, number, awaited, depth=2)

        return loop(step, steps=30)

    report = run(hold)
    found = leader(report)
    without = run(released if hold is engine else lambda _: None).steps.per_step["duration"].p50
    assert (found.rule, found.site.api, found.site.nvtx, found.severity) == (rule, api, "fence", "high")
    assert found.step_after_ns == pytest.approx(without, rel=0.05)
    assert "in fence" in found.message
    assert "Removing it would give" in verdict(report).gain


@pytest.mark.parametrize("us", [20_000, 60_000])
@pytest.mark.parametrize("every", [7, 4])
def test_a_poll_every_few_steps_is_the_hosts_wait_and_no_wait_for_work(us: float, every: int) -> None:
    def step(host: Host, number: int) -> None:
        host.work(120)
        if number % every == every - 1:
            host.os_call("poll", us)
        host.replay(VERIFY)
        host.read(16)
        host.work(90)

    report = loop(step, steps=35)
    found = leader(report)
    assert (found.rule, found.severity) == ("CUDA143", "high")
    assert "poll" in found.title
    assert "no_load" not in report.steps.excluded
