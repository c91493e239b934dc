from __future__ import annotations

from collections import Counter
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bubblefinder.errors import CannotAnswerError
from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.model import CaptureMode, IdleClass, Timeline
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.model import GRAPH, KERNEL, Trace
from bubblefinder.trace.sketch import Sketch, process_key, thread_key
from tests.captures import captures, moved, relabelled
from tests.reference import ledger

ME = process_key(1001)


def classes(timeline: Timeline, gpu: int = 0) -> Counter[str]:
    """Nanoseconds by class, `busy` among them, of one GPU."""
    length = (pl.col("end_ns") - pl.col("start_ns")).sum()
    idle = timeline.pieces.filter(pl.col("gpu") == gpu).group_by("idle_class").agg(length).rows()
    busy = timeline.busy.filter(pl.col("gpu") == gpu).select(length).item()
    return Counter({IdleClass(number).name.lower(): time for number, time in idle} | {"busy": busy})


def measure(picture: str, gpu: int = 0) -> dict[str, int]:
    """Microseconds by class of a picture with one microsecond a character."""
    return {name: time // 1000 for name, time in classes(build_timeline(draw(picture, us_per_char=1)), gpu).items()}


def test_overlap_across_streams_is_counted_once() -> None:
    assert measure("""
        gpu0 s7  | AAAA......DDDD
        gpu0 s14 | ..BBBB........
    """) == {"busy": 10, "unattributed": 4}


def test_kernels_that_overlap_in_one_stream_are_counted_once() -> None:
    assert measure("""
        api     | ABC.......
        gpu0 s7 | .AAAA...CC
        gpu0 s7 | ...BBB....
    """) == {"busy": 7, "queued": 2}


def test_a_long_operation_reaches_over_the_short_ones_it_contains() -> None:
    assert measure("""
        api      | ABC..........D.
        gpu0 s7  | .AAAAAAAAA...DD
        gpu0 s14 | ..BB.CC........
    """) == {"busy": 11, "host_late": 3}


def test_a_copy_on_another_stream_fills_a_gap() -> None:
    assert measure("""
        api      | A.C......B...
        gpu0 s7  | .AAA......BBB
        gpu0 s14 | ....CCCC.....
        C = copy HtoD 64
    """) == {"busy": 10, "host_late": 1, "launching": 1}


def test_a_gap_inside_a_replay_is_intra_graph_and_one_between_replays_is_not() -> None:
    assert measure("""
        api     | GG......GG........
        gpu0 s7 | ..aa.b.....aa..b..
        G = graph a b
    """) == {"busy": 6, "intra_graph": 3, "host_late": 2, "launching": 2, "queued": 1}


def test_another_streams_work_between_two_nodes_does_not_end_the_replay() -> None:
    assert measure("""
        api      | GGK..........
        gpu0 s7  | ..aa.......bb
        gpu0 s14 | .....KK......
        G = graph a b
    """) == {"busy": 6, "intra_graph": 5}


def test_between_two_blocks_of_one_launch_nothing_was_measured() -> None:
    sketch = Sketch()
    launch = sketch.call("cudaGraphLaunch_v10000", 0, 1_000, thread_key(ME, 1))
    for start in (1_000, 5_000):
        sketch.operation(GRAPH, start, start + 2_000, process=ME, correlation=launch, graph=9)
    assert classes(build_timeline(sketch.trace())) == {"busy": 4_000, "queued": 2_000}


def test_a_gap_is_cut_where_the_replay_span_ends() -> None:
    # The last node takes no time: the replay ends inside the gap, 3 us after its last busy moment.
    sketch = Sketch()
    thread = thread_key(ME, 1)
    graph = sketch.call("cudaGraphLaunch_v10000", 0, 1_000, thread)
    kernel = sketch.call("cudaLaunchKernel_v7000", 9_000, 11_000, thread)
    node = {"process": ME, "correlation": graph, "name": "node"}
    sketch.operation(KERNEL, 1_000, 4_000, **node, graph_node=5 << 32 | 1)
    sketch.operation(KERNEL, 7_000, 7_000, **node, graph_node=5 << 32 | 2)
    sketch.operation(KERNEL, 12_000, 13_000, process=ME, correlation=kernel, name="kernel")
    found = classes(build_timeline(sketch.trace()))
    assert found == {"busy": 4_000, "intra_graph": 3_000, "host_late": 2_000, "launching": 2_000, "queued": 1_000}


def test_two_processes_share_a_gpu_although_their_correlation_ids_collide() -> None:
    # Were C joined by correlation id alone, its launch would be A's and the first gap queued.
    assert measure("""
        p1 api  | A.......B..
        p2 api  | ....C......
        p1 gpu0 | .AAA.....BB
        p2 gpu0 | ......CC...
    """) == {"busy": 7, "launching": 2, "queued": 1}


def test_each_gpu_has_its_own_ledger() -> None:
    picture = """
        p1 api  | A..B...
        p2 api  | A.....B
        p1 gpu0 | .AA.BB.......
        p2 gpu1 | .AA......BB..
    """
    assert measure(picture, gpu=0) == {"busy": 4, "launching": 1}
    assert measure(picture, gpu=1) == {"busy": 4, "host_late": 3, "launching": 1, "queued": 2}


def test_a_launch_call_may_end_after_its_kernel_started() -> None:
    assert measure("""
        api  | A..BBBBB
        gpu0 | .A...BB.
    """) == {"busy": 3, "host_late": 1, "launching": 2}


def test_a_kernel_that_starts_before_its_launch_call_leaves_only_a_late_host() -> None:
    assert measure("""
        api  | A......BB
        gpu0 | .A...BB..
    """) == {"busy": 3, "host_late": 3}


@pytest.mark.parametrize("rows", [("C", "B"), ("B", "C")])
def test_of_operations_that_end_a_gap_together_the_first_launched_counts(rows: tuple[str, str]) -> None:
    assert measure(f"""
        api      | A.....BC.
        gpu0 s7  | .AA.....{rows[0]}
        gpu0 s14 | ........{rows[1]}
    """) == {"busy": 3, "host_late": 3, "launching": 1, "queued": 1}


def test_a_known_launch_is_preferred_to_none_among_operations_that_end_a_gap_together() -> None:
    assert measure("""
        api      | A.....B..
        gpu0 s7  | .AA.....C
        gpu0 s14 | ........B
    """) == {"busy": 3, "host_late": 3, "launching": 1, "queued": 1}


PROFILED = """
    api      | A........B...
    gpu0     | .AA........BB
    profiler | .....PPP.....
"""


def test_profiler_windows_are_no_idle_time_of_the_program() -> None:
    assert measure(PROFILED) == {"busy": 4, "profiler": 3, "host_late": 3, "launching": 1, "queued": 1}


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("CUDA profiling data flush on cudaProfilerStop", True),
        ("CUDA profiling data flush overhead", True),
        ("CUDA profiling stop overhead", True),
        ("CUDA profiling overhead", True),
        ("CUDA profiling initialization", True),
        ("CUPTI Buffer flush", True),
        ("CUPTI: Buffer flush", True),
        ("TLS allocation", False),
        ("NVTX profiling initialization", False),
        ("OS runtime libraries profiling initialization", False),
    ],
)
def test_only_the_profilers_own_work_on_the_gpu_counts_as_profiler_time(name: str, counts: bool) -> None:
    found = measure(f"{PROFILED}\nP = name '{name}'")
    assert (found.get("profiler", 0), found["host_late"]) == ((3, 3) if counts else (0, 6))


def test_profiler_windows_overlap_and_reach_every_gpu_of_their_process_only() -> None:
    picture = """
        p1 api       | A........B...
        p2 api       | A........B...
        p1 gpu0      | .AA........BB
        p2 gpu1      | .AA........BB
        p1 profiler  | .....PPP.....
        p1 profiler2 | ....QQQ......
    """
    assert measure(picture, gpu=0)["profiler"] == 4
    assert "profiler" not in measure(picture, gpu=1)


def test_profiler_time_comes_before_intra_graph_time() -> None:
    assert measure("""
        api      | G..........
        gpu0     | .aa.....bb.
        profiler | ....PP.....
        G = graph a b
    """) == {"busy": 4, "profiler": 2, "intra_graph": 3}


@pytest.mark.parametrize(
    ("kind", "counts"), [(3, True), (4, True), (5, True), (2, False), (6, False), (7, False), (8, False), (None, False)]
)
def test_overhead_records_count_by_type(kind: int | None, counts: bool) -> None:
    sketch = Sketch()
    for start in (0, 10):
        sketch.operation(KERNEL, start, start + 1, process=ME, name="kernel")
    owner = {"process": ME, "thread": thread_key(ME, 1), "table": "CUPTI_ACTIVITY_KIND_OVERHEAD"}
    sketch.add("overheads", 4, 7, **owner, name="CUPTI: whatever", overhead_type=kind)
    assert classes(build_timeline(sketch.trace()))["profiler"] == (3 if counts else 0)


TRAIN = """
    api  | G..H..G..H..
    gpu0 | .GG.HH.GG.HH
    G = graph 5
    H = graph 5
"""
TRAIN_WITHOUT_ONE = """
    api  | G..X..G..H..
    gpu0 | .GG....GG.HH
    G = graph 5
    H = graph 5
    X = cudaGraphLaunch_v10000
"""


def test_a_replay_deleted_from_a_regular_train_is_unrecorded_and_no_new_bubble() -> None:
    assert measure(TRAIN) == {"busy": 8, "launching": 3}
    # From the lost launch's begin at 3 to the next operation at 7; the gap elsewhere is what it was.
    assert measure(TRAIN_WITHOUT_ONE) == {"busy": 6, "launching": 1, "unrecorded": 4}


def test_a_lost_launch_taints_from_its_own_begin_on() -> None:
    assert measure("""
        api  | A....X...B.
        gpu0 | .AA.......B
        X = cudaLaunchKernel_v7000
    """) == {"busy": 3, "host_late": 2, "unrecorded": 5}


def test_a_lost_launch_far_ahead_taints_the_gap_where_its_work_belongs() -> None:
    assert measure("""
        api  | AXBC...........
        gpu0 | .AAAAA...BB..CC
        X = cudaLaunchKernelExC_v11060
    """) == {"busy": 9, "unrecorded": 3, "queued": 2}


def test_profiler_and_graph_time_come_before_unrecorded_time() -> None:
    assert measure("""
        api      | A..X..B......
        gpu0     | .AA......BB..
        profiler | .....P.......
        X = cudaLaunchKernel_v7000
    """) == {"busy": 4, "unrecorded": 5, "profiler": 1}


@pytest.mark.parametrize(
    "lost",
    [
        pytest.param("X = cudaLaunchKernel_v7000 fails 2", id="it failed"),
        pytest.param("X = cudaLaunchHostFunc_v10000", id="a host function"),
        pytest.param("X = cudaMemcpyAsync_v3020", id="a copy that may be empty or between hosts"),
        pytest.param("X = cudaMallocAsync_v11020", id="no work"),
        pytest.param("X = cudaEventRecord_v3020", id="an event"),
    ],
)
def test_a_call_that_needs_no_record_taints_nothing(lost: str) -> None:
    assert measure(f"""
        api  | A..X...B..
        gpu0 | .AA.....BB
        {lost}
    """) == {"busy": 4, "host_late": 4, "launching": 1}


CAPTURE = """
    api  | A.{begin}KK{end}...C...
    gpu0 | .AA........CC
    K = cudaLaunchKernel_v7000
    B = cudaStreamBeginCapture_v10000
    E = cudaStreamEndCapture_v10000
"""


def test_launches_during_stream_capture_are_not_unrecorded() -> None:
    captured = measure(CAPTURE.format(begin="B", end="E"))
    assert captured == {"busy": 4, "host_late": 6, "launching": 1, "queued": 1}
    assert measure(CAPTURE.format(begin=".", end="."))["unrecorded"] == 8


def test_capture_on_one_thread_does_not_excuse_a_lost_launch_on_another() -> None:
    assert (
        measure("""
        api  | A...K....C...
        api2 | ..B....E.....
        gpu0 | .AA........CC
        K = cudaLaunchKernel_v7000
        B = cudaStreamBeginCapture_v10000
        E = cudaStreamEndCapture_v10000
    """)["unrecorded"]
        == 7
    )


def test_launches_that_made_graph_nodes_were_captured_even_if_the_capture_calls_are_not_traced() -> None:
    assert measure("""
        api   | A..KK....C...
        nodes | ...N.........
        gpu0  | .AA........CC
        K = cudaLaunchKernel_v7000
    """) == {"busy": 4, "host_late": 6, "launching": 1, "queued": 1}


@pytest.mark.parametrize(
    "picture",
    [
        pytest.param("api2 | ...X......\napi  | A......B..\ngpu0 | .AA.....BB", id="another thread"),
        pytest.param("p2 api | ...X......\napi  | A......B..\ngpu0 | .AA.....BB", id="another process"),
        pytest.param("api  | A.......BX\ngpu0 | .AA......B", id="launched after the operation that ends the gap"),
        pytest.param("api  | XA.....B..\ngpu0 | ..A.....BB", id="launched before the operation that precedes it"),
    ],
)
def test_a_lost_launch_that_is_not_between_its_neighbours_taints_nothing(picture: str) -> None:
    assert "unrecorded" not in measure(f"{picture}\nX = cudaLaunchKernel_v7000")


def test_launches_outside_the_span_count_in_the_coverage_only() -> None:
    timeline = build_timeline(
        draw("""
        api  | X.A......BX
        gpu0 | ...AA.....B
        X = cudaLaunchKernel_v7000
    """)
    )
    (device,) = timeline.devices
    assert (device.launches_seen, device.launches_recorded) == (4, 2)
    assert classes(timeline)["unrecorded"] == 0


@pytest.mark.parametrize(
    ("picture", "mode"),
    [
        ("api | G\ngpu0 | .aa\nG = graph a", CaptureMode.NODE),
        ("api | G\ngpu0 | .GG\nG = graph", CaptureMode.GRAPH),
        ("api | GH\ngpu0 | .GGaa\nG = graph\nH = graph a", CaptureMode.MIXED),
        ("api | K\ngpu0 | .KK", CaptureMode.NONE),
        ("api | KG\ngpu0 | .KK\nG = cudaGraphLaunch_v10000", CaptureMode.UNSEEN),
        ("api | KG\ngpu0 | .KK\nG = cuGraphLaunch_ptsz", CaptureMode.UNSEEN),
        ("api | KG\ngpu0 | .KK\nG = cudaGraphLaunch_v10000 fails 700", CaptureMode.NONE),
        ("api | KG\ngpu0 | .KK\nG = cudaGraphInstantiate_v10000", CaptureMode.NONE),
    ],
)
def test_the_mode_says_what_was_recorded_of_graphs(picture: str, mode: CaptureMode) -> None:
    assert build_timeline(draw(picture)).mode is mode


def test_replays_are_told_apart_by_their_launch() -> None:
    replays = build_timeline(
        draw("""
        api      | GH...G.......
        gpu0 s7  | .ab.cd...ab..
        gpu0 s14 | ..e.......e..
        G = graph 5 a b e
        H = graph 6 c d
    """)
    ).replays
    columns = ("graph", "start_ns", "end_ns", "nodes", "call_index")
    assert replays.select(columns).rows() == [
        (5, 10_000, 30_000, 3, 0),
        (6, 40_000, 60_000, 2, 1),
        (5, 90_000, 110_000, 3, 2),
    ]


def test_a_replay_recorded_as_one_row_has_no_node_count() -> None:
    replays = build_timeline(draw("api | G....G..\ngpu0 | .GGG..GG\nG = graph 8")).replays
    assert replays.select("graph", "start_ns", "end_ns", "nodes").rows() == [
        (8, 10_000, 40_000, None),
        (8, 60_000, 80_000, None),
    ]


def test_gaps_name_the_operations_around_them_and_the_launch_that_ends_them() -> None:
    timeline = build_timeline(
        draw("""
        api  | A..B....C.
        gpu0 | .AA.BB...C
    """)
    )
    columns = ("start_ns", "end_ns", "before_index", "after_index", "call_index")
    assert timeline.gaps.select(columns).rows() == [(30_000, 40_000, 0, 1, 1), (60_000, 90_000, 1, 2, 2)]


def test_launch_lead_is_how_long_the_work_waited_for_the_gpu() -> None:
    timeline = build_timeline(
        draw("""
        api  | A.B....C.D..
        gpu0 | .AAAABB..CDD
    """)
    )
    # B was queued at 3, 2 before the GPU was free at 5; C at 8, 1 after it ran dry; D when C ended.
    assert timeline.leads["lead_ns"].to_list() == [None, 20_000, -10_000, 0]
    assert timeline.devices[0].run_ahead_share == pytest.approx(1 / 3)


def test_blocking_copies_are_left_out_of_the_run_ahead_share() -> None:
    timeline = build_timeline(
        draw("""
        api      | A.BCCCC...
        gpu0 s7  | .AAAABB...
        gpu0 s14 | ......C...
        C = copy DtoH 8 pageable
    """)
    )
    assert timeline.devices[0].run_ahead_share == 1.0


@pytest.mark.parametrize(
    ("copy", "blocks"),
    [
        ("copy DtoH 8 pageable", True),
        ("copy DtoH 8 pageable via cudaMemcpyAsync_ptsz_v7000", True),
        ("copy DtoH 8 pinned", False),
        ("copy DtoH 8 pinned via cudaMemcpy_v3020", True),
        ("copy DtoH 8 pinned via cuMemcpyDtoH_v2", True),
        ("copy DtoH 8 pinned via cuMemcpyDtoHAsync_v2", False),
        ("copy HtoD 8 pageable", True),
        ("copy DtoD 8 via cudaMemcpy_v3020", True),
        ("copy DtoD 8", False),
    ],
)
def test_a_copy_blocks_if_its_name_says_so_or_its_host_side_is_pageable(copy: str, blocks: bool) -> None:
    timeline = build_timeline(draw(f"api | CCCC\ngpu0 | ..C.\nC = {copy}"))
    assert timeline.operations["blocking"].to_list() == [blocks]


def test_a_copy_whose_call_returned_before_it_ended_blocked_nobody() -> None:
    timeline = build_timeline(draw("api | CC..\ngpu0 | ..CC\nC = copy HtoD 8 pageable via cudaMemcpy_v3020"))
    assert timeline.operations["blocking"].to_list() == [False]


def test_without_gpu_activity_there_is_nothing_to_say() -> None:
    with pytest.raises(CannotAnswerError, match="no GPU activity"):
        build_timeline(draw("api | S\nS = cudaDeviceSynchronize"))


def test_a_gpu_whose_operations_take_no_time_has_no_timeline() -> None:
    sketch = Sketch()
    sketch.operation(KERNEL, 0, 5, process=ME, name="kernel")
    sketch.operation(KERNEL, 3, 3, process=ME, name="kernel", gpu=1)
    assert [device.gpu for device in build_timeline(sketch.trace()).devices] == [0]


@given(captures())
def test_the_ledger_is_what_its_definition_says(trace: Trace) -> None:
    timeline = build_timeline(trace)
    for device in timeline.devices:
        found = classes(timeline, device.gpu)
        assert found == ledger(trace, device.gpu)
        assert found.total() == device.end_ns - device.start_ns


@given(captures(), st.integers(-(10**6), 10**18))
def test_shifting_all_times_changes_nothing(trace: Trace, offset: int) -> None:
    before, after = build_timeline(trace), build_timeline(moved(trace, offset))
    assert after.pieces.equals(before.pieces.with_columns(pl.col("start_ns", "end_ns") + offset))
    assert after.leads.equals(before.leads)


@given(captures())
def test_relabelling_ids_changes_nothing(trace: Trace) -> None:
    before, after = build_timeline(trace), build_timeline(relabelled(trace))
    assert after.pieces.equals(before.pieces)
    assert after.gaps.equals(before.gaps)
    assert after.mode is before.mode


def halves(trace: Trace, time: int) -> tuple[Trace, Trace]:
    """The capture cut in two: operations at `time` are cut, calls stay with their work, all else is in both."""
    left = trace.operations.filter(pl.col("start_ns") < time).with_columns(pl.col("end_ns").clip(upper_bound=time))
    right = trace.operations.filter(pl.col("end_ns") > time).with_columns(pl.col("start_ns").clip(lower_bound=time))
    keys = ["process", "correlation"]
    without = trace.calls.join(trace.operations.select(keys), on=keys, how="anti")

    def half(operations: pl.DataFrame) -> Trace:
        mine = trace.calls.join(operations.select(keys).unique(), on=keys, how="semi")
        return replace(trace, operations=operations, calls=pl.concat([mine, without]).sort("start_ns", "end_ns", "row"))

    return half(left), half(right)


@given(captures(), st.data())
def test_splitting_a_trace_at_a_busy_moment_splits_the_ledger(trace: Trace, data: st.DataObject) -> None:
    divisible = trace.operations.filter((pl.col("gpu") == 0) & (pl.col("end_ns") - pl.col("start_ns") > 1))
    assume(len(divisible))
    start, end = data.draw(st.sampled_from(divisible.select("start_ns", "end_ns").rows()))
    moment = data.draw(st.integers(start + 1, end - 1))
    trace = replace(trace, operations=trace.operations.filter(pl.col("gpu") == 0))
    # A half knows of a process's profiling only if the process has work in it.
    earlier, later = (set(half.operations["process"]) for half in halves(trace, moment))
    trace = replace(trace, overheads=trace.overheads.filter(pl.col("process").is_in(earlier & later)))
    timeline = build_timeline(trace)
    running = (pl.col("start_ns") < moment) & (pl.col("end_ns") > moment)
    cut = timeline.operations.filter(running)
    straddling = set(timeline.replays.with_row_index().filter(running)["index"])
    # A replay must be at work at the moment itself: else the halves can't know that it goes on.
    assume(straddling <= set(cut["replay_index"]))
    left, right = (classes(build_timeline(half)) for half in halves(trace, moment))
    assert left + right == classes(timeline)
