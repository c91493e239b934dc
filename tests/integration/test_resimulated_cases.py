"""What the replay says without the waits of conditions that people report, against the loop simulated without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.pipeline import Analysis
from bubblefinder.replay.changes import RemoveWaits
from bubblefinder.replay.predict import predict
from tests.integration.test_resimulated import STEP, US, copy, median_step, taken_away
from tests.simulate import PAGEABLE, Graph, Host, Machine, collective, nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.timeline.rank import Rank
    from bubblefinder.trace.model import Trace

    Step = Callable[[Host, int, bool], None]

PIECE = Graph(8, nodes("attn", "gate", us=9) * 3)
UP = (1, PAGEABLE, 2)


def instantiated(host: Host, _: int, waits: bool) -> None:
    host.work(200)
    if waits:
        host.capture(Graph(4, STEP.nodes[:20]))
    host.replay(STEP)
    if waits:
        host.read()


def received(host: Host, _: int, waits: bool) -> None:
    host.os_call("poll", 3_000)
    host.work(80)
    host.upload()
    host.replay(STEP)
    host.download()
    event = host.record()
    if waits:
        host.wait_for(event)


def launches_block(host: Host, _: int, waits: bool) -> None:
    host.work(60)
    for kernel in range(60):
        host.work(3)
        host.kernel(f"layer_{kernel % 7}", 40)
        if waits:
            host.machine.sketch.rows["calls"][-1]["end_ns"] = host.now = host.queued_until() + 2 * US


def graphs_fall_back(host: Host, number: int, waits: bool) -> None:
    host.work(250)
    host.upload()
    if number < 20:
        host.replay(STEP)
    else:
        for name, us in STEP.nodes:
            host.kernel(name, us, call_us=3)
    if waits:
        host.read()


def kernels_of_no_length(host: Host, _: int, waits: bool) -> None:
    host.work(250)
    host.upload()
    host.kernel("empty", 0)
    host.replay(STEP)
    host.kernel("empty", 0)
    if waits:
        host.read()


def if_node(host: Host, number: int, waits: bool) -> None:
    host.work(250)
    host.upload()
    host.replay(Graph(3, STEP.nodes + (nodes("branch", us=12) * 12 if number % 3 == 2 else ())))
    if waits:
        host.read()


def collected(host: Host, number: int, waits: bool) -> None:
    host.work(250 + (30_000 if number in {9, 17, 25} else 0))
    host.upload()
    host.replay(STEP)
    if waits:
        host.read()


def pinned_now_and_then(host: Host, number: int, waits: bool) -> None:
    host.work(250)
    if number in {9, 17, 25}:
        host.call("cudaHostAlloc_v3020", 12_000)
    host.upload()
    host.replay(STEP)
    if waits:
        host.read()


def experts_on_the_host(host: Host, _: int, waits: bool) -> None:
    host.work(60)
    for layer in range(12):
        host.replay(Graph(20 + layer, PIECE.nodes), call_us=12)
        host.download(16_384)
        if waits:
            host.synchronize()
        host.work(40)
        host.upload(16_384)
    host.kernel("lm_head", 60)


def mapped(host: Host, _: int, waits: bool) -> None:
    host.work(200)
    host.upload()
    host.replay(STEP)
    if waits:
        host.synchronize()
        host.call("cuMemUnmap", 300)
        host.call("cuMemSetAccess", 1_200)


def two_in_one_seam(host: Host, _: int, waits: bool) -> None:
    host.work(100)
    host.replay(STEP)
    copy(host, "cudaMemcpyAsync_v3020", 19_000, UP, us=2.5, waits=waits)
    host.work(90)
    host.kernel("sample", 12)
    if waits:
        host.read()
    host.work(120)


def reads_in_every_layer(host: Host, _: int, waits: bool) -> None:
    host.work(60)
    for layer in range(8):
        for number in range(9):
            host.kernel(f"moe_{number}", 22)
        for _ in range(4):
            host.kernel("nonzero", 3)
            if waits:
                host.read(16)
            host.work(8)
        assert layer >= 0
    if waits:
        host.read()


def reads_of_a_late_host(host: Host, _: int, waits: bool) -> None:
    """So many short reads that their calls alone are part of what the host takes."""
    host.work(120)
    for number in range(96):
        host.work(4)
        host.kernel(f"count_{number % 3}", 2.5)
        if waits:
            host.read(1)
        host.work(8)


def slow_now_and_then(host: Host, number: int, waits: bool) -> None:
    host.work(150)
    host.replay(STEP)
    host.kernel("all_reduce", 3_000 if number in {9, 17, 25} else 60)
    if waits:
        host.read()


def read_and_uploads(host: Host, _: int, waits: bool) -> None:
    host.work(250)
    for number in range(4):
        copy(host, "cudaMemcpyAsync_v3020", 128, UP, waits=waits)
        host.work(20)
        host.kernel(f"prepare_{number}", 4)
    for number in range(60):
        host.kernel(f"layer_{number % 6}", 30)
    if waits:
        host.read(16)


def looped(step: Step, *, waits: bool, steps: int = 40) -> Trace:
    machine = Machine(seed=7)
    host = machine.host()
    for number in range(steps):
        with host.range("decode_step"):
            step(host, number, waits)
    return machine.trace()


@pytest.mark.parametrize(
    "step",
    [
        instantiated,
        received,
        launches_block,
        graphs_fall_back,
        kernels_of_no_length,
        if_node,
        collected,
        pinned_now_and_then,
        experts_on_the_host,
        mapped,
        two_in_one_seam,
        reads_in_every_layer,
        reads_of_a_late_host,
        slow_now_and_then,
        read_and_uploads,
    ],
    ids=lambda step: step.__name__,
)
def test_without_its_waits_a_loop_takes_what_the_replay_says(step: Step) -> None:
    trace = looped(step, waits=True)
    without = median_step(looped(step, waits=False))
    assert taken_away(trace) == pytest.approx(without, rel=0.05)


@pytest.mark.parametrize("share", [1, 0.7, 0.4])
@pytest.mark.parametrize("apart_us", [0, 60])
@pytest.mark.parametrize("first", [7, 13])
def test_streams_that_ran_side_by_side_may_do_so_to_the_end(share: float, apart_us: float, first: int) -> None:
    other = Graph(6, STEP.nodes[: round(share * len(STEP.nodes))])

    def two_batches(host: Host, _: int, waits: bool) -> None:
        host.work(250)
        host.upload()
        host.stream_wait(host.record(5), stream=13)
        host.replay(STEP, stream=first)
        host.work(apart_us)
        host.replay(other, stream=20 - first)
        host.stream_wait(host.record(6, stream=13))
        if waits:
            host.read()

    trace = looped(two_batches, waits=True)
    without = median_step(looped(two_batches, waits=False))
    assert taken_away(trace) == pytest.approx(without, rel=0.05)


def test_streams_that_took_turns_are_promised_no_overlap() -> None:
    def by_turns(host: Host, _: int, waits: bool) -> None:
        host.work(250)
        for number in range(12):
            host.kernel(
                f"one_{number}", 40, stream=7 + 6 * (number % 2), after=host.queued_until(13 - 6 * (number % 2))
            )
        if waits:
            host.read()

    trace = looped(by_turns, waits=True)
    assert taken_away(trace) == pytest.approx(12 * 40 * US, rel=0.02)


def test_waits_behind_set_up_and_between_requests() -> None:
    def run(*, waits: bool) -> Trace:
        machine = Machine(seed=7)
        host = machine.host()
        host.upload(262_144_000, memory=PAGEABLE, us=9_000)
        host.capture(STEP)
        for _ in range(4):
            host.synchronize("cudaDeviceSynchronize_v3020")
        for request in range(3):
            host.work(400_000 if request else 100_000)
            for _ in range(14):
                with host.range("decode_step"):
                    host.work(250)
                    host.upload()
                    host.replay(STEP)
                    if waits:
                        host.read()
        return machine.trace()

    assert taken_away(run(waits=True)) == pytest.approx(median_step(run(waits=False)), rel=0.05)


@pytest.mark.parametrize("late_us", [0, 900])
@pytest.mark.parametrize("pauses", [(), (9, 17)])
def test_waits_of_two_ranks_that_meet(late_us: float, pauses: tuple[int, ...]) -> None:
    def run(*, waits: bool) -> Trace:
        machine = Machine(seed=7)
        hosts = [machine.host(), machine.host(1002, gpu=1)]
        for number in range(40):
            for rank, host in enumerate(hosts):
                host.work(150 + rank * (late_us + 30_000 * (number in pauses)))
                host.replay(STEP)
            collective(hosts, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 60)
            for host in hosts:
                host.kernel("sample", 12)
                if waits:
                    host.read()
        return machine.trace()

    analysis, without = Analysis(run(waits=True)), Analysis(run(waits=False))
    sites = frozenset(analysis.model.waits["site"]) if analysis.model else frozenset()
    assert analysis.model is not None
    then = predict(analysis.model, [RemoveWaits(sites)])
    assert len(then) == 2
    for rank, one in then.items():
        assert one.step_ns == pytest.approx(_median_of(without, rank), rel=0.05)


def _median_of(analysis: Analysis, rank: Rank) -> float:
    windows = analysis.steps.windows.filter(rank.mine)
    decode = windows.filter(windows["excluded"].is_null())
    return float((decode["end_ns"] - decode["start_ns"]).median() or 0)  # type: ignore[arg-type]


def test_a_blocking_upload_of_another_thread() -> None:
    def run(*, waits: bool) -> Trace:
        machine = Machine(seed=7)
        host = machine.host()
        other = host.thread(2)
        for _ in range(20):
            host.work(30)
            for number in range(60):
                host.kernel(f"forward_{number % 5}", 60)
            other.not_before(host.now + 20 * US)
            for number in range(40):
                other.kernel(f"backward_{number % 5}", 60)
            if waits:
                other.read(512)
            else:
                other.download(512)
            for _ in range(3):
                other.kernel("backward_last", 20)
            host.not_before(other.now + 30 * US)
            for _ in range(200):
                host.kernel("optimizer", 2)
        return machine.trace()

    assert taken_away(run(waits=True)) == pytest.approx(median_step(run(waits=False)), rel=0.05)
