"""Who is blamed in loops whose host does one thing wrong: the answer is known, since the loop was made so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import bubblefinder
from bubblefinder.report.build import analyze_trace
from bubblefinder.report.verdict import verdict
from bubblefinder.units import duration
from tests.simulate import PAGEABLE, Graph, Host, Machine, collective, nodes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import Report

US = 1_000
GRAPH = Graph(3, nodes("attn", "mlp", "router", "moe", us=10) * 30)
"""1.3 ms of nodes."""
SMALL = Graph(4, nodes("draft_attn", "draft_mlp", us=9) * 12)
INSIDE = {"CUDA151", "CUDA152", "CUDA153", "CUDA104"}


def loop(step: Callable[[Host, int], None], *, steps: int = 24, seed: int = 1) -> Report:
    machine = Machine(seed=seed)
    host = machine.host()
    for number in range(steps):
        step(host, number)
    return analyze_trace(machine.trace())


def told(report: Report) -> list[Finding]:
    """The findings that aren't about the inside of graphs, worst first."""
    return [finding for finding in report.findings if finding.rule not in INSIDE]


def first(report: Report) -> tuple[str, str | None]:
    finding = told(report)[0]
    return finding.rule, finding.site.api


def by_api(report: Report) -> dict[str | None, Finding]:
    return {finding.site.api: finding for finding in told(report)}


def healthy(host: Host, number: int, events: dict[int, tuple[int, int]]) -> None:
    """A step of a loop that runs ahead: it waits for the result of the step before."""
    host.work(150)
    host.upload()
    host.replay(GRAPH)
    if number - 1 in events:
        host.wait_for(events[number - 1])
    host.download()
    events[number] = host.record(number)


def test_a_healthy_loop_has_no_finding_above_low() -> None:
    events: dict[int, tuple[int, int]] = {}
    report = loop(lambda host, number: healthy(host, number, events))
    assert {finding.severity for finding in report.findings} <= {"info", "low"}
    assert told(report) == []


@pytest.mark.parametrize("size", [24, 1 << 20])
def test_a_copy_from_pinned_memory_that_waits_in_silence(size: int) -> None:
    def step(host: Host, _: int) -> None:
        host.work(250)
        begun, start = host.now, max(host.now + 4 * US, host.queued_until()) + US
        correlation = host.call("cudaMemcpy2DAsync_v3020", 5, until=start + 4 * US)
        sides = {"bytes": size, "copy_kind": 1, "src_kind": 1, "dst_kind": 2}
        host._run(1, start, start + 2 * US, correlation, None, **sides)
        assert begun < start
        host.work(400)
        host.replay(GRAPH)

    report = loop(step)
    assert first(report) == ("CUDA002", "cudaMemcpy2DAsync")
    finding = told(report)[0]
    assert finding.bubble_ns.p50 == pytest.approx(410 * US, rel=0.05)
    assert finding.recoverable_ns == pytest.approx(410 * US, rel=0.05)
    assert (finding.site.copy_kind, finding.site.memory_kind, finding.site.bytes) == ("HtoD", "pinned", size)


@pytest.mark.parametrize("early_us", [-2, 1, 30])
def test_a_pageable_upload_waits_even_if_it_returns_before_its_copy_ends(early_us: float) -> None:
    def step(host: Host, _: int) -> None:
        host.work(100)
        start = max(host.now + 4 * US, host.queued_until()) + US
        until = start + round((40 - early_us) * US)
        correlation = host.call("cudaMemcpyAsync_v3020", 5, until=until)
        sides = {"bytes": 1 << 20, "copy_kind": 1, "src_kind": PAGEABLE, "dst_kind": 2}
        host._run(1, start, start + 40 * US, correlation, None, **sides)
        host.work(300)
        host.replay(GRAPH)

    assert first(loop(step)) == ("CUDA002", "cudaMemcpyAsync")


@pytest.mark.parametrize("api", ["cudaFree_v3020", "cuMemFree_v2", "cudaFreeHost_v3020", "cudaMemPoolTrimTo_v11020"])
def test_a_call_that_comes_back_as_the_gpu_runs_dry_is_a_wait(api: str) -> None:
    def step(host: Host, _: int) -> None:
        host.work(200)
        host.upload()
        host.replay(GRAPH)
        host.call(api, 8, until=host.queued_until() + 3 * US)
        host.work(380)

    finding = told(loop(step))[0]
    assert (finding.rule, finding.site.api) == (
        "CUDA009",
        api.split("_v", maxsplit=1)[0] if "_v2" not in api else "cuMemFree_v2",
    )
    assert finding.bubble_ns.p50 == pytest.approx(590 * US, rel=0.05)


@pytest.mark.parametrize(
    ("api", "rule"),
    [
        ("cudaHostAlloc_v3020", "CUDA009"),
        ("cudaMalloc_v3020", "CUDA009"),
        ("cudaGraphInstantiate_v12000", "CUDA010"),
        ("cuLibraryLoadData", "CUDA011"),
        ("cudaStreamCreateWithPriority_v5050", "CUDA012"),
    ],
)
@pytest.mark.parametrize("every", [1, 9])
def test_a_call_that_is_busy_with_itself_is_named_however_rare(api: str, rule: str, every: int) -> None:
    events: dict[int, tuple[int, int]] = {}

    def step(host: Host, number: int) -> None:
        if number % every == every // 2:
            host.call(api, 9_000)
        healthy(host, number, events)

    report = loop(step, steps=30)
    finding = by_api(report)[api.split("_v", maxsplit=1)[0]]
    assert (finding.rule, finding.severity) == (rule, "high")
    assert finding.bubble_ns.p50 == pytest.approx(7_800 * US, rel=0.06)
    assert finding.steps_affected == pytest.approx(30 / every, abs=1)


def test_a_first_launch_that_loads_its_module() -> None:
    events: dict[int, tuple[int, int]] = {}

    def step(host: Host, number: int) -> None:
        healthy(host, number, events)
        host.kernel("sample", 5, call_us=6_000 if number in {11, 17} else 4)

    finding = by_api(loop(step))["cudaLaunchKernel"]
    assert (finding.rule, finding.steps_affected) == ("CUDA011", 2)


def test_calls_inside_the_idle_that_a_wait_opened_take_their_part() -> None:
    def step(host: Host, _: int) -> None:
        host.work(200)
        host.upload()
        host.replay(GRAPH)
        host.synchronize()
        host.call("cuMemUnmap", 300)
        host.call("cuMemSetAccess", 1_200)

    report = loop(step)
    found = {api: finding.bubble_ns.p50 for api, finding in by_api(report).items()}
    assert found["cuMemSetAccess"] == pytest.approx(1_200 * US, rel=0.02)
    assert found["cuMemUnmap"] == pytest.approx(300 * US, rel=0.02)
    assert found["cudaStreamSynchronize"] == pytest.approx(215 * US, rel=0.05)
    idle = report.steps.per_step["host_late"].mean + report.steps.per_step["launching"].mean  # type: ignore[operator]
    assert sum(value or 0 for value in found.values()) <= 1.01 * idle


@pytest.mark.parametrize("api", ["cudaEventQuery_v3020", "cudaStreamQuery_v3020"])
@pytest.mark.parametrize("pause_us", [3, 200])
def test_a_poll_is_a_wait(api: str, pause_us: float) -> None:
    def step(host: Host, _: int) -> None:
        host.work(250)
        host.upload()
        host.replay(GRAPH)
        host.download()
        _, done = host.record()
        while host.now < done:
            host.call(api, 1.5, return_value=600)
            host.work(pause_us)
        host.call(api, 1.5)

    report = loop(step)
    assert first(report) == ("CUDA007", api.split("_v", maxsplit=1)[0])
    assert told(report)[0].recoverable_ns == pytest.approx(265 * US + pause_us * US / 2, abs=(12 + pause_us / 2) * US)


def test_a_watchdog_that_polls_beside_a_healthy_loop_is_no_wait() -> None:
    machine = Machine()
    host, watchdog = machine.host(), machine.host(thread=9)
    events: dict[int, tuple[int, int]] = {}
    for number in range(30):
        healthy(host, number, events)
    while watchdog.now < host.now:
        watchdog.call("cudaEventQuery_v3020", 2, return_value=0 if machine.random.random() < 0.1 else 600)
        watchdog.work(30)
    assert told(analyze_trace(machine.trace())) == []


def test_launches_that_return_behind_their_kernels() -> None:
    def step(host: Host, number: int) -> None:
        host.work(60)
        for kernel in range(40):
            host.work(3)
            begun = host.now
            correlation = host.call("cudaLaunchKernel_v7000", 4, until=begun + 45 * US)
            host._run(0, begun + 4 * US, begun + 43 * US, correlation, None, name=f"layer_{kernel % 7}")
        assert number >= 0
        host.read()

    assert first(loop(step)) == ("CUDA008", "cudaLaunchKernel")


def test_a_short_copy_on_an_idle_gpu_is_not_to_blame_for_a_slow_host() -> None:
    def step(host: Host, _: int) -> None:
        host.work(700)
        host.replay(SMALL)
        host.work(900)
        correlation = host.call("cudaMemcpy_v3020", 9)
        host._run(
            1, host.now - 5 * US, host.now - 4 * US, correlation, None, bytes=4096, copy_kind=8, src_kind=2, dst_kind=2
        )
        host.work(300)

    report = loop(step)
    assert first(report) == ("CUDA101", None)
    assert len(told(report)) == 1


@pytest.mark.parametrize("pauses", [(9, 17), (3, 12, 20)])
def test_pauses_are_seen_behind_a_blocking_read(pauses: tuple[int, ...]) -> None:
    def step(host: Host, number: int) -> None:
        host.work(250)
        if number in pauses:
            host.work(30_000)
        host.upload()
        host.replay(GRAPH)
        host.read()

    pause, read = told(loop(step))
    assert (pause.rule, pause.steps_affected) == ("CUDA141", len(pauses))
    assert pause.bubble_ns.p50 == pytest.approx(30_250 * US, rel=0.02)
    assert (read.rule, read.site.api) == ("CUDA001", "cudaMemcpyAsync")
    assert read.bubble_ns.p50 == pytest.approx(265 * US, rel=0.05)


@pytest.mark.parametrize("name", ["poll", "recvmsg", "epoll_wait", "read"])
def test_a_regular_call_into_the_operating_system_is_a_cause(name: str) -> None:
    def step(host: Host, _: int) -> None:
        host.os_call(name, 3_000)
        host.work(80)
        host.upload()
        host.replay(GRAPH)
        host.download()
        host.wait_for(host.record())

    report = loop(step)
    finding = told(report)[0]
    assert (finding.rule, finding.severity) == ("CUDA143", "high")
    assert name in finding.title
    assert finding.bubble_ns.p50 == pytest.approx(3_000 * US, rel=0.03)
    assert told(report)[1].bubble_ns.p50 == pytest.approx(100 * US, abs=25 * US)


@pytest.mark.parametrize("lag_us", [60, 260, 700])
@pytest.mark.parametrize("wait", ["event", "read"])
def test_the_wait_of_another_thread_is_told_by_the_recurring_order(lag_us: float, wait: str) -> None:
    machine = Machine()
    host, other = machine.host(), machine.host(thread=2)
    for _ in range(30):
        host.work(20)
        host.upload()
        host.replay(GRAPH)
        host.download()
        event = host.record()
        other.not_before(host.now + 20 * US)
        if wait == "event":
            other.wait_for(event)
        else:
            other.read()
        other.work(lag_us - 20)
        host.not_before(other.now)
    report = analyze_trace(machine.trace())
    assert told(report)[0].site.api == ("cudaEventSynchronize" if wait == "event" else "cudaMemcpyAsync")
    assert told(report)[0].bubble_ns.p50 == pytest.approx((lag_us + 15) * US, abs=25 * US)
    assert "It is thread 2 that waits" in told(report)[0].message


def test_a_pause_of_one_rank_is_said_to_be_that_ranks() -> None:
    machine = Machine(seed=7)
    hosts = [machine.host(), machine.host(1002, gpu=1)]
    for number in range(30):
        for rank, host in enumerate(hosts):
            host.work(150 + (30_000 if rank and number in {9, 17} else 0))
            host.replay(GRAPH)
        collective(hosts, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 60)
        for host in hosts:
            host.read()
    report = analyze_trace(machine.trace())
    first, read = told(report)[:2]
    assert (first.rule, read.rule) == ("CUDA141", "CUDA001")
    assert "Seen on GPU 1 (process 1002) alone." in first.message
    assert "Seen on" not in read.message
    assert verdict(report).blame.endswith("while the GPU idles, on GPU 1 (process 1002).")


def test_a_wait_that_only_costs_the_lead_is_charged_what_comes_late_behind_it() -> None:
    # The second thread waits under queued work and then queues a little more; the first then launches what the GPU
    # does faster than it can launch.
    machine = Machine()
    host, other = machine.host(), machine.host(thread=2)
    for _ in range(14):
        for number in range(60):
            host.kernel(f"forward_{number % 5}", 60)
        other.not_before(host.now + 20 * US)
        for number in range(40):
            other.kernel(f"backward_{number % 5}", 60)
        other.read(512)
        for _ in range(3):
            other.kernel("backward_last", 20)
        host.not_before(other.now + 30 * US)
        for _ in range(200):
            host.kernel("optimizer", 2)
    finding = told(analyze_trace(machine.trace()))[0]
    assert (finding.rule, finding.site.api, finding.site.copy_kind) == ("CUDA001", "cudaMemcpyAsync", "DtoH")
    assert (finding.recoverable_ns or 0) > 200 * US


def test_a_read_and_an_upload_in_one_seam_are_two_findings_with_their_own_words() -> None:
    def step(host: Host, _: int) -> None:
        host.work(100)
        host.replay(GRAPH)
        start = host.queued_until() + US
        correlation = host.call("cudaMemcpyAsync_v3020", 5, until=start + 5 * US)
        sides = {"bytes": 19_000, "copy_kind": 1, "src_kind": PAGEABLE, "dst_kind": 2}
        host._run(1, start, start + 3 * US, correlation, None, **sides)
        host.work(90)
        host.kernel("apply_mask", 5)
        host.kernel("sample", 12)
        host.read(8)
        host.work(120)

    words = {(f.site.copy_kind, f.site.bytes) for f in told(loop(step, steps=30))}
    assert words == {("HtoD", 19_000), ("DtoH", 8)}


def test_start_up_lends_a_finding_no_words() -> None:
    machine = Machine()
    host = machine.host()
    host.upload(262_144_000, memory=PAGEABLE, us=9_000)
    host.synchronize("cudaDeviceSynchronize_v3020")
    for _ in range(20):
        host.work(250)
        host.upload()
        host.replay(GRAPH)
        host.read(16)
    (finding,) = [f for f in told(analyze_trace(machine.trace())) if f.severity != "info"]
    assert (finding.site.api, finding.site.copy_kind, finding.site.bytes) == ("cudaMemcpyAsync", "DtoH", 16)


def test_a_host_function_that_holds_the_stream_is_named() -> None:
    events: dict[int, tuple[int, int]] = {}

    def step(host: Host, number: int) -> None:
        host.work(120)
        host.upload()
        host.replay(GRAPH)
        host.call("cudaLaunchHostFunc_v10000", 6)
        host.occupy(host.queued_until() + 400 * US)
        host.kernel("sample", 12)
        if number - 2 in events:
            host.wait_for(events[number - 2])
        host.download()
        events[number] = host.record(number)

    report = loop(step, steps=30)
    finding = told(report)[0]
    assert (finding.rule, finding.site.api) == ("CUDA161", "cudaLaunchHostFunc")
    assert finding.bubble_ns.p50 == pytest.approx(400 * US, rel=0.02)
    assert "late" not in verdict(report).blame


def test_copies_with_no_kernel_beside_them_are_no_idle_time() -> None:
    events: dict[int, tuple[int, int]] = {}

    def step(host: Host, number: int) -> None:
        host.work(80)
        host.upload(160_000_000, us=3_000, stream=14)
        host.stream_wait(host.record(900 + number, stream=14))
        host.replay(GRAPH)
        host.occupy(host.queued_until(), stream=14)
        if number - 1 in events:
            host.wait_for(events[number - 1])
        host.download()
        events[number] = host.record(number)

    report = loop(step, steps=20)
    finding = told(report)[0]
    assert (finding.rule, finding.severity) == ("CUDA171", "high")
    assert "HtoD" in finding.title
    assert (report.steps.bubble_share.inter_graph or 0) < 0.01


def test_the_verdict_on_a_fed_gpu_sends_nobody_after_syncs() -> None:
    events: dict[int, tuple[int, int]] = {}
    said = verdict(loop(lambda host, number: healthy(host, number, events)))
    assert said.blame.startswith("The host is fine, stop looking for syncs")
    assert "Kernel time goes into" in said.blame
    assert said.gain == ""


def test_the_verdict_says_what_all_findings_give_together_and_what_the_first_leaves() -> None:
    def step(host: Host, _: int) -> None:
        host.work(60)
        host.replay(SMALL)
        host.read(32)
        host.work(350)
        host.replay(GRAPH)
        host.read(8)
        host.work(200)

    report = loop(step, steps=30)
    joint, said = report.joint, verdict(report)
    assert joint is not None
    assert joint.findings == 2
    assert joint.recoverable_ns > max(finding.recoverable_ns or 0 for finding in told(report))
    assert said.blame.startswith("First to fix: 2 waits in a row, in cudaMemcpyAsync: 1. ")
    assert said.gain.startswith(f"Together they would give {duration(joint.recoverable_ns)} (")


def test_a_pause_in_few_steps_is_told_by_its_share() -> None:
    def step(host: Host, number: int) -> None:
        host.work(250 + (30_000 if number in {9, 17} else 0))
        host.upload()
        host.replay(GRAPH)
        host.read()

    report = loop(step, steps=30)
    assert told(report)[0].recoverable_ns is None
    assert "in each of 2 of 30 steps" in verdict(report).gain
    assert "the median step doesn't have it" in verdict(report).gain


def test_missing_work_is_said_and_not_promised() -> None:
    def step(host: Host, _: int) -> None:
        host.work(150)
        host.upload()
        host.replay(GRAPH)
        host.occupy(host.queued_until() + 9_800 * US)
        host.synchronize()

    report = loop(step, steps=12)
    assert (report.steps.bubble_share.total or 1) < 0.05
    assert "9.80 ms a step the GPU may have worked" in verdict(report).headline
    assert all((finding.recoverable_ns or 0) < 200 * US for finding in report.findings)


def test_a_gain_that_the_host_bounds_has_a_range_beside_it() -> None:
    def step(host: Host, _: int) -> None:
        host.os_call("poll", 3_000)
        host.work(800)
        host.upload()
        host.replay(GRAPH)
        host.read()

    report = loop(step)
    finding = told(report)[0]
    low, high = finding.recoverable_range_ns or (0, 0)
    assert low < (finding.recoverable_ns or 0) < high
    assert f"({duration(low)} to {duration(high)})" in verdict(report).gain


def test_where_the_profilers_part_cannot_be_told_no_value_is_printed(sample: Callable[[str], Path]) -> None:
    report = bubblefinder.analyze(sample("torch_eager"))
    assert report.overhead.corrected_step_ns is None
    assert report.joint is None
    assert {(f.recoverable_ns, f.step_after_ns) for f in report.findings} == {(None, None)}
    assert report.findings[0].recoverable_range_ns is not None
    assert "A host that is never late, waits apart, would give between" in verdict(report).gain


def test_an_allocator_that_asks_twice_is_no_poll() -> None:
    def step(host: Host, _: int) -> None:
        host.work(100)
        host.upload()
        host.replay(GRAPH)
        host.call("cudaEventQuery_v3020", 2, return_value=600)
        host.work(1_700)
        host.call("cudaEventQuery_v3020", 2)

    assert all(finding.site.api is None for finding in told(loop(step)))


def test_where_the_host_is_fine_no_wait_is_what_to_look_at_first() -> None:
    """One launch runs a WHILE body eight times: the wait behind it drains the GPU in every eighth step."""

    def step(host: Host, _: int) -> None:
        host.work(60)
        host.upload()
        host.replay(Graph(3, GRAPH.nodes, passes=8))
        host.synchronize()

    told = verdict(loop(step, steps=12)).blame
    assert told.startswith("The host is fine, stop looking for syncs")
    assert "First to look at: Wait" not in told
