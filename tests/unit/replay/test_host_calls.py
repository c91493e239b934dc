from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.overhead.model import Cost, Costs
from bubblefinder.replay.host_calls import excess_behind, excess_of, host_of
from bubblefinder.timeline.build import build_timeline
from bubblefinder.trace.model import KERNEL, MEMCPY
from bubblefinder.trace.sketch import Sketch, process_key, thread_key

if TYPE_CHECKING:
    from bubblefinder.replay.host_calls import HostCalls

US = 1_000
PROCESS = process_key(7)
THREAD = thread_key(PROCESS, 1)


def one(value: float) -> Cost:
    return Cost(value, value, value)


def host() -> HostCalls:
    """A graph launch, a kernel launch with the driver's own call inside, a blocking read, a quick and a long wait."""
    sketch = Sketch()
    launch = sketch.call("cudaGraphLaunch_v10000", 0, 100 * US, THREAD)
    for number in range(50):
        at = (60 + 2 * number) * US
        place = {"process": PROCESS, "correlation": launch}
        sketch.operation(KERNEL, at, at + US, graph_node=5 << 32 | number, **place)
    kernel = sketch.call("cudaLaunchKernel_v7000", 110 * US, 116 * US, THREAD)
    sketch.call("cuLaunchKernel", 111 * US, 115 * US, THREAD)
    sketch.operation(KERNEL, 200 * US, 210 * US, process=PROCESS, correlation=kernel)
    read = sketch.call("cudaMemcpyAsync_v3020", 120 * US, 225 * US, THREAD)
    sides = {"copy_kind": 2, "src_kind": 2, "dst_kind": 0, "bytes": 8}
    sketch.operation(MEMCPY, 215 * US, 220 * US, process=PROCESS, correlation=read, **sides)
    sketch.call("cudaStreamSynchronize_v3020", 226 * US, 230 * US, THREAD)
    late = sketch.call("cudaLaunchKernel_v7000", 231 * US, 236 * US, THREAD)
    sketch.operation(KERNEL, 240 * US, 300 * US, process=PROCESS, correlation=late)
    sketch.call("cudaEventSynchronize_v3020", 240 * US, 305 * US, THREAD)
    return host_of(build_timeline(sketch.trace()))


def test_only_outermost_calls_count() -> None:
    assert (host().starts // US).tolist() == [0, 110, 120, 226, 231, 240]


def test_reads_and_long_waits_are_held_by_gpu_work_and_quick_ones_find_it_done() -> None:
    assert host().held.tolist() == [False, False, True, False, False, True]


def test_a_graph_launch_is_compared_with_what_it_takes_untraced() -> None:
    costs = Costs(launch_call=one(3 * US), launch_node=one(20))
    assert excess_of(host(), costs, 1.0).tolist() == [100 * US - 3 * US - 50 * 20, 0, 0, 0, 0, 0]
    assert excess_of(host(), costs, 0.5)[0] == pytest.approx(48 * US)
    assert excess_of(host(), costs, 9.0)[0] == 100 * US
    assert excess_of(host(), costs, -1.0)[0] == 0


def test_other_calls_have_a_fixed_cost_unless_work_held_them_up() -> None:
    costs = Costs(kernel_call=one(2 * US), copy_call=one(9 * US), other_call=one(50 * US))
    assert excess_of(host(), costs, 1.0).tolist() == [0, 2 * US, 0, 4 * US, 2 * US, 0]


def test_what_lies_behind_a_call_reaches_no_further_than_the_next_call_of_its_thread() -> None:
    behind = excess_behind(host(), Costs(around_call=one(5 * US)), 1.0)
    assert behind.tolist() == [5 * US, 4 * US, 0, 1 * US, 4 * US, 0]
    assert not excess_behind(host(), Costs(), 1.0).any()


def test_the_profilers_own_calls_are_no_calls_of_the_program() -> None:
    sketch = Sketch()
    for at in (0, 20):
        launch = sketch.call("cudaLaunchKernel_v7000", at * US, (at + 5) * US, THREAD)
        sketch.call("cuKernelGetName", (at + 6) * US, (at + 7) * US, THREAD)
        sketch.operation(KERNEL, (at + 8) * US, (at + 9) * US, process=PROCESS, correlation=launch)
    calls = host_of(build_timeline(sketch.trace()))
    assert (calls.starts // US).tolist() == [0, 20]
    assert (calls.following // US).tolist() == [20, 25]
