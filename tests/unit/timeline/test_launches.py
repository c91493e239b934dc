from __future__ import annotations

from dataclasses import replace

import polars as pl

from bubblefinder.timeline.build import build_timeline
from bubblefinder.trace.model import KERNEL, MEMCPY, Trace
from bubblefinder.trace.sketch import Sketch, process_key, thread_key

ME = process_key(1001)


def launched_at(trace: Trace) -> list[int | None]:
    """The start of each operation's launch call."""
    timeline = build_timeline(trace)
    starts = timeline.calls["start_ns"]
    return [None if index is None else starts[index] for index in timeline.operations["call_index"]]


def sketch(calls: list[tuple[int, int, int | None]], operations: list[tuple[int, int | None]]) -> Trace:
    """Calls of (start, end, correlation) and kernels of (start, correlation)."""
    drawing = Sketch()
    for start, end, correlation in calls:
        drawing.call("cudaLaunchKernel_v7000", start, end, thread_key(ME, 1))
        drawing.rows["calls"][-1]["correlation"] = correlation
    for start, correlation in operations:
        drawing.operation(KERNEL, start, start + 5, process=ME, correlation=correlation, name="kernel")
    return drawing.trace()


def test_an_operation_is_launched_by_the_call_of_its_correlation_id() -> None:
    assert launched_at(sketch([(0, 1, 7), (2, 3, 8)], [(10, 8), (20, 7)])) == [2, 0]


def test_without_a_correlation_id_there_is_no_launch() -> None:
    assert launched_at(sketch([(0, 1, 7), (2, 3, None)], [(10, None), (20, 9)])) == [None, None]


def test_an_id_used_again_by_a_later_session_belongs_to_the_last_call_before_the_operation() -> None:
    trace = sketch([(0, 1, 7), (100, 101, 7)], [(10, 7), (110, 7)])
    assert launched_at(trace) == [0, 100]


def test_of_nested_calls_with_one_id_the_outermost_launched() -> None:
    # A runtime call and the driver call that it makes.
    assert launched_at(sketch([(0, 9, 7), (2, 5, 7)], [(10, 7)])) == [0]


def test_an_operation_before_all_calls_of_its_id_belongs_to_the_first() -> None:
    assert launched_at(sketch([(12, 13, 7), (50, 51, 7)], [(10, 7), (60, 7)])) == [12, 50]


def test_ids_of_other_processes_are_other_ids() -> None:
    drawing = Sketch()
    for pid in (1001, 1002):
        process = process_key(pid)
        correlation = drawing.call("cudaLaunchKernel_v7000", pid, pid + 1, thread_key(process, 1))
        drawing.operation(KERNEL, pid + 10, pid + 11, process=process, correlation=correlation, name="kernel")
    assert launched_at(drawing.trace()) == [1001, 1002]


def test_a_graph_is_one_launch_with_a_lead_by_its_first_node() -> None:
    drawing = Sketch()
    thread = thread_key(ME, 1)
    first = drawing.call("cudaLaunchKernel_v7000", 0, 2, thread)
    drawing.operation(KERNEL, 5, 50, process=ME, correlation=first, name="kernel")
    graph = drawing.call("cudaGraphLaunch_v10000", 10, 20, thread)
    for number, start in enumerate((55, 70), 1):
        drawing.operation(
            KERNEL, start, start + 5, process=ME, correlation=graph, name="node", graph_node=5 << 32 | number
        )
    leads = build_timeline(drawing.trace()).leads
    assert leads.select("op_index", "lead_ns").rows() == [(0, None), (1, 30)]


def test_a_launch_on_two_gpus_has_a_lead_on_each() -> None:
    drawing = Sketch()
    for gpu in (0, 1):
        drawing.operation(KERNEL, 0, 10 + gpu, process=ME, name="before", gpu=gpu)
    both = drawing.call("cudaLaunchCooperativeKernelMultiDevice_v9000", 2, 4, thread_key(ME, 1))
    for gpu in (0, 1):
        drawing.operation(KERNEL, 20, 25, process=ME, correlation=both, name="kernel", gpu=gpu)
    assert build_timeline(drawing.trace()).leads.select("gpu", "lead_ns").rows() == [(0, 6), (1, 7)]


def test_calls_know_their_api_and_whether_they_left_work() -> None:
    drawing = Sketch()
    thread = thread_key(ME, 1)
    done = drawing.call("cudaLaunchKernel_v7000", 0, 2, thread)
    drawing.operation(KERNEL, 5, 50, process=ME, correlation=done, name="kernel")
    for number, api in enumerate(
        ("cudaLaunchKernelExC_v11060", "cudaStreamSynchronize_v3020", "cuGraphLaunch_ptsz"), 1
    ):
        drawing.call(api, 10 * number, 10 * number + 2, thread)
    calls = build_timeline(drawing.trace()).calls
    assert calls["api"].cast(pl.String).to_list() == [
        "cudaLaunchKernel",
        "cudaLaunchKernelExC",
        "cudaStreamSynchronize",
        "cuGraphLaunch",
    ]
    assert calls["recorded"].to_list() == [True, False, None, False]


def test_a_call_with_an_unknown_name_is_no_launch() -> None:
    trace = sketch([(0, 1, 7)], [(10, 7)])
    timeline = build_timeline(replace(trace, names={}))
    assert timeline.calls["recorded"].to_list() == [True]
    assert (timeline.devices[0].launches_seen, timeline.devices[0].launches_recorded) == (0, 0)


def test_the_launch_of_a_graph_waits_for_none_of_its_copies() -> None:
    """Tracing its nodes makes the call outlast the first of them."""
    drawing = Sketch()
    correlation = drawing.call("cudaGraphLaunch_v10000", 0, 100, thread_key(ME, 1))
    for number, (kind, start) in enumerate(((MEMCPY, 10), (KERNEL, 20)), 1):
        drawing.operation(kind, start, start + 5, process=ME, correlation=correlation, graph_node=5 << 32 | number)
    assert build_timeline(drawing.trace()).operations["blocking"].to_list() == [False, False]
