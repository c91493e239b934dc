"""What removing the blamed call would give, held against the loop simulated again without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.report.build import analyze_trace
from tests.simulate import Graph, Host, Machine, nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.model import Report

US = 1_000
GRAPH = Graph(3, nodes("attn", "mlp", "router", "moe", us=10) * 30)
NEAR = 0.05


def loop(step: Callable[[Host, bool], None], *, held: bool) -> Report:
    machine = Machine(seed=5)
    host = machine.host()
    for _ in range(24):
        step(host, held)
    return analyze_trace(machine.trace())


def drained(host: Host, api: str, us: float = 8) -> None:
    host.call(api, us, until=host.queued_until() + 3 * US)


def free(host: Host, held: bool) -> None:
    host.work(200)
    host.upload()
    host.replay(GRAPH)
    if held:
        drained(host, "cudaFree_v3020")
    host.work(380)


def strided(host: Host, held: bool) -> None:
    host.work(250)
    start = max(host.now + 4 * US, host.queued_until()) + US
    correlation = host.call("cudaMemcpy2DAsync_v3020", 5, until=start + 4 * US if held else 0)
    host._run(1, start, start + 2 * US, correlation, None, bytes=24, copy_kind=1, src_kind=1, dst_kind=2)
    host.work(400)
    host.replay(GRAPH)


def poll(host: Host, held: bool) -> None:
    host.work(250)
    host.upload()
    host.replay(GRAPH)
    _, done = host.record()
    while held and host.now < done:
        host.call("cudaEventQuery_v3020", 1.5, return_value=600)
        host.work(3)
    host.call("cudaEventQuery_v3020", 1.5)


def instantiate(host: Host, held: bool) -> None:
    host.work(200)
    if held:
        host.call("cudaGraphInstantiate_v12000", 3_000)
    host.replay(GRAPH)
    host.read()


def sleep(host: Host, held: bool) -> None:
    if held:
        host.os_call("recvmsg", 2_000)
    host.work(80)
    host.upload()
    host.replay(GRAPH)
    host.read()


def read(host: Host, held: bool) -> None:
    host.work(700)
    host.upload()
    host.replay(GRAPH)
    if held:
        host.read()
    host.work(500)


@pytest.mark.parametrize("step", [free, strided, poll, instantiate, sleep, read], ids=lambda step: step.__name__)
def test_the_predicted_step_is_that_of_the_loop_without_the_cause(step: Callable[[Host, bool], None]) -> None:
    finding = next(finding for finding in loop(step, held=True).findings if finding.step_after_ns is not None)
    without = loop(step, held=False).steps.per_step["duration"].p50
    assert finding.severity == "high"
    assert finding.step_after_ns == pytest.approx(without, rel=NEAR)
