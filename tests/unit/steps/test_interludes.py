from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

from tests.simulate import Graph, Machine, nodes
from tests.unit.steps.found import reasons, step_begins, steps_of

if TYPE_CHECKING:
    from tests.simulate import Host

STEP = Graph(3, nodes("attention", "mlp") * 24)


def decode(host: Host, steps: int) -> None:
    for _ in range(steps):
        host.work(250)
        host.upload(64)
        host.replay(STEP)
        host.read(8)


def prefill(host: Host) -> None:
    host.upload(1 << 16)
    for number in range(60):
        host.kernel(f"prefill_{number % 5}", 50)
    host.read(8)


@pytest.mark.parametrize("told_by", ["a prefill", "the operating system"])
def test_waits_for_requests_are_windows_of_their_own(told_by: str) -> None:
    machine = Machine()
    host = machine.host()
    for request in range(3):
        if request:
            if told_by == "a prefill":
                host.work(400_000)
            else:
                host.os_call("epoll_wait", 400_000)
        if told_by == "a prefill":
            prefill(host)
        decode(host, 30)
    windows = steps_of(machine.trace()).windows.with_columns(length=pl.col("end_ns") - pl.col("start_ns"))
    kept = windows.filter(pl.col("excluded").is_null())
    assert kept["length"].max() < 1_500_000  # type: ignore[operator] # a step takes 0.8 ms
    assert len(kept) == 87
    lulls = windows.filter(pl.col("excluded") == "no_load")["length"]
    assert len(lulls) == 2
    assert lulls.min() > 390_000_000  # type: ignore[operator]


def test_a_prefill_for_which_kernels_are_compiled_is_no_wait_for_requests() -> None:
    machine = Machine()
    host = machine.host()
    for request in range(3):
        if request:
            host.work(130_000)
            host.call("cuModuleLoadData", 100)
        prefill(host)
        decode(host, 30)
    found = reasons(steps_of(machine.trace()))
    assert "no_load" not in found
    assert found.count("prefill") == 3
    assert found.count(None) == 87


def test_what_samples_a_prompts_first_token_is_no_step() -> None:
    """vLLM with log-probabilities: two dozen kernels behind the graph of a step, and behind a prompt's pass alike."""
    machine = Machine(node_mode=False)
    host = machine.host()

    def sample() -> None:
        for number in range(20):
            host.kernel(f"logits_{number}", 3)
        host.read(8)

    with host.range("execute_context_1(60)_generation_0(0)"):
        host.upload(1 << 16)
        for number in range(60):
            host.kernel(f"prefill_{number % 5}", 50)
        sample()
    for _ in range(30):
        with host.range("execute_context_0(0)_generation_1(1)"):
            host.work(250)
            host.upload(64)
            host.replay(STEP)
            sample()
    assert reasons(steps_of(machine.trace())) == ["prefill"] + [None] * 29 + ["tail"]


def test_a_pause_of_the_host_is_a_slow_step() -> None:
    machine = Machine()
    host = machine.host()
    decode(host, 15)
    host.work(30_000)
    decode(host, 15)
    windows = steps_of(machine.trace()).windows.with_columns(length=pl.col("end_ns") - pl.col("start_ns"))
    assert windows["excluded"].to_list() == [None] * 29 + ["tail"]
    assert windows["length"].max() > 30_000_000  # type: ignore[operator]


def test_a_slow_kernel_of_the_step_is_no_prefill() -> None:
    machine = Machine()
    host = machine.host()
    for number in range(40):
        host.work(250)
        host.upload(64)
        host.replay(STEP)
        host.kernel("all_reduce", 3_000 if number in {9, 20, 31} else 60)
        host.replay(Graph(4, nodes("moe", "norm") * 24))
        host.read(8)
    steps = steps_of(machine.trace())
    assert reasons(steps) == [None] * 39 + ["tail"]


def test_a_whole_run_gives_its_steady_part() -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(12):
        host.work(20_000)
        host.upload(200_000_000, us=8_000)
    for name, us in STEP.nodes * 2:
        host.kernel(name, 4 * us, call_us=20)
    host.synchronize("cudaDeviceSynchronize_v3020")
    for number in range(6):
        captured = Graph(10 + number, STEP.nodes)
        host.capture(captured)
        host.replay(captured)
        host.synchronize("cudaDeviceSynchronize_v3020")
    host.work(700_000)
    prefill(host)
    decode(host, 40)
    steps = steps_of(machine.trace())
    assert reasons(steps) == ["set_up", "prefill", *[None] * 39, "tail"]
    assert steps.confidence == "high"


def test_a_program_that_captures_in_every_step_has_no_set_up() -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(20):
        host.work(250)
        host.upload(64)
        host.capture(STEP)
        host.replay(STEP)
        host.read(8)
    assert len(step_begins(steps_of(machine.trace()))) == 20


def test_windows_left_out_cost_confidence() -> None:
    machine = Machine()
    host = machine.host()
    decode(host, 20)
    whole = steps_of(machine.trace()).confidence
    for number in range(400):
        host.work(30)
        host.kernel(f"other_{number}", 20)
    steps = steps_of(machine.trace())
    assert whole == "high"
    assert steps.confidence == "medium"


@pytest.mark.parametrize(("every", "sure"), [(2, "low"), (5, "high")])
def test_prefills_among_the_steps_cost_confidence(every: int, sure: str) -> None:
    """A few are told from steps; those of every other step are not."""
    machine = Machine()
    host = machine.host()
    for number in range(40):
        if number % every == 0:
            prefill(host)
        decode(host, 1)
    assert steps_of(machine.trace()).confidence == sure


def test_short_prompts_among_the_steps_cost_confidence() -> None:
    """Kernel by kernel, by the kernels of the step's graph: nothing but their length tells them from steps."""
    machine = Machine()
    host = machine.host()
    for number in range(40):
        if number % 3 == 0:
            host.upload(400)
            for name, us in STEP.nodes:
                host.kernel(name, 8 * us)
            host.read(8)
        decode(host, 1)
    steps = steps_of(machine.trace())
    assert steps.confidence == "low" or len(step_begins(steps)) == 40


def test_weights_that_arrive_one_by_one_are_no_steps() -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(3):
        host.upload(200_000_000, us=20_000)
        host.synchronize()
        host.work(200)
    begun = []
    for _ in range(14):
        host.work(250)
        first = host.upload(128)
        for number in range(60):
            host.kernel(f"gemm_{number % 7}", 40)
        begun.append(first)
    steps = steps_of(machine.trace())
    assert step_begins(steps) == begun
    assert reasons(steps)[0] == "set_up"
