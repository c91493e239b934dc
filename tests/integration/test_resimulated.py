"""What the replay says of a loop without its wait, against the same loop simulated without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bubblefinder.pipeline import Analysis
from bubblefinder.replay.changes import RemoveWaits
from bubblefinder.replay.predict import predict
from tests.simulate import PAGEABLE, PINNED, Graph, Host, Machine, nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.trace.model import Trace

    Step = Callable[[Host, bool], None]

US = 1_000
MEMCPY = 1
STEP = Graph(3, nodes("attn", "mlp", "router", "moe", us=10) * 30)
DRAFT = Graph(5, nodes("draft_attn", "draft_mlp", us=9) * 12)


def copy(host: Host, api: str, size: int, sides: tuple[int, int, int], *, us: float = 1.2, waits: bool) -> None:
    """A copy of any kind whose call returns behind it, or at once."""
    kind, source, target = sides
    start = max(host.now + 4 * US, host.queued_until()) + US
    end = start + round(us * US)
    correlation = host.call(api, 5, until=end + 2 * US if waits else 0)
    host._run(MEMCPY, start, end, correlation, None, bytes=size, copy_kind=kind, src_kind=source, dst_kind=target)


UP, DOWN = (1, PINNED, 2), (2, 2, PAGEABLE)


def read_back(host: Host, waits: bool) -> None:
    host.work(250)
    host.upload()
    host.replay(STEP)
    if waits:
        host.read()


def strided_upload(host: Host, waits: bool) -> None:
    host.work(250)
    copy(host, "cudaMemcpy2DAsync_v3020", 24, UP, waits=waits)
    host.work(400)
    host.replay(STEP)


def free_in_the_loop(host: Host, waits: bool) -> None:
    host.work(200)
    host.upload()
    host.replay(STEP)
    if waits:
        host.call("cudaFree_v3020", 40, until=host.queued_until(-1) + 25 * US)
    host.work(150)


def grammar(host: Host, waits: bool) -> None:
    """The mask's upload and the token's read behind verify go; the draft's read stays."""
    host.work(60)
    host.replay(DRAFT)
    host.read(32)
    host.work(350)
    host.replay(STEP)
    copy(host, "cudaMemcpyAsync_v3020", 19_000, (1, PAGEABLE, 2), us=2.5, waits=waits)
    host.work(90)
    host.kernel("apply_mask", 5)
    host.kernel("sample", 12)
    if waits:
        host.read()
    host.work(120)


def polled(host: Host, waits: bool) -> None:
    host.work(250)
    host.upload()
    host.replay(STEP)
    done = host.download()
    host.record(9)
    while waits and host.now < done:
        host.call("cudaEventQuery_v3020", 1.5, return_value=600)
        host.work(3)
    host.call("cudaEventQuery_v3020", 1.5)


def batched_read(host: Host, waits: bool) -> None:
    host.work(250)
    host.upload()
    host.replay(STEP)
    if waits:
        copy(host, "cudaMemcpyBatchAsync_v12080", 32, DOWN, waits=True)


def one_kernel_a_step(host: Host, waits: bool) -> None:
    host.work(350)
    host.kernel("mpk_persistent_kernel", 1_200)
    if waits:
        host.read()
    else:
        host.download()


def drained_before_the_replay(host: Host, waits: bool) -> None:
    host.work(250)
    host.upload()
    host.replay(STEP)
    if waits:
        host.synchronize("cuStreamSynchronize")
    host.download()
    host.work(60)


def slow_host(host: Host, waits: bool) -> None:
    """The wait costs little: the host bounds the step with it and without it."""
    host.work(1_800)
    host.upload()
    host.replay(STEP)
    if waits:
        host.read()


def simulated(step: Step, *, waits: bool, steps: int = 30) -> Trace:
    machine = Machine(seed=7)
    host = machine.host()
    for _ in range(steps):
        with host.range("decode_step"):
            step(host, waits)
    return machine.trace()


def taken_away(trace: Trace, *, but: str = "no such") -> float:
    """The median step without all waits but those whose fix says some text."""
    analysis = Analysis(trace)
    (rank,) = analysis.study.ranks
    fixes = [fix for fix in analysis.study.fixes if isinstance(fix.change, RemoveWaits) and but not in fix.text]
    model = analysis.model
    assert model is not None
    assert fixes
    return predict(model, [fix.change for fix in fixes if fix.name != "the chain of waits"])[rank].step_ns


def median_step(trace: Trace) -> float:
    windows = Analysis(trace).steps.windows
    decode = windows.filter(windows["excluded"].is_null())
    return float(np.median((decode["end_ns"] - decode["start_ns"]).to_numpy()))


@pytest.mark.parametrize(
    "step",
    [
        read_back,
        strided_upload,
        free_in_the_loop,
        polled,
        batched_read,
        one_kernel_a_step,
        drained_before_the_replay,
        slow_host,
    ],
    ids=lambda step: step.__name__,
)
def test_without_its_wait_a_loop_takes_what_the_replay_says(step: Step) -> None:
    trace = simulated(step, waits=True)
    without = median_step(simulated(step, waits=False))
    assert median_step(trace) > without
    assert taken_away(trace) == pytest.approx(without, rel=0.05)


def test_of_two_groups_of_waits_one_can_be_taken_away() -> None:
    trace = simulated(grammar, waits=True)
    without = median_step(simulated(grammar, waits=False))
    assert taken_away(trace, but=" 32 B") == pytest.approx(without, rel=0.05)


def test_a_wait_on_another_thread_can_be_taken_away() -> None:
    def loop(*, waits: bool) -> Trace:
        machine = Machine(seed=7)
        host = machine.host()
        other = host.thread(2)
        for _ in range(30):
            host.work(200)
            host.upload()
            host.replay(STEP)
            host.download()
            event = host.record(9)
            other.not_before(host.now + 20 * US)
            if waits:
                other.wait_for(event)
            other.work(60)
            host.not_before(other.now + 15 * US)
        return machine.trace()

    assert taken_away(loop(waits=True)) == pytest.approx(median_step(loop(waits=False)), rel=0.05)
