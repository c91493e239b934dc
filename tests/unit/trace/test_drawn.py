from __future__ import annotations

import pytest

from bubblefinder.errors import UsageError
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.model import GRAPH, KERNEL, MEMCPY, MEMSET, Trace
from bubblefinder.trace.sketch import process_key, thread_key

ME, OTHER = process_key(1001), process_key(1002)


def operations(trace: Trace, *columns: str) -> list[tuple[object, ...]]:
    return trace.operations.select(columns).rows()


def names(trace: Trace) -> list[str | None]:
    return [None if name is None else trace.names[name] for name in trace.operations["name"]]


def test_a_run_of_a_letter_is_a_kernel_and_a_character_is_a_slice_of_time() -> None:
    trace = draw("gpu0 | AA.B", us_per_char=2.5)
    assert operations(trace, "kind", "start_ns", "end_ns") == [(KERNEL, 0, 5_000), (KERNEL, 7_500, 10_000)]
    assert names(trace) == ["A", "B"]
    assert trace.info.duration_ns == 10_000


def test_blanks_and_dots_are_nothing() -> None:
    assert draw("gpu0 | A  B").operations.equals(draw("gpu0 | A..B").operations)


def test_gpu_tracks_name_device_and_stream() -> None:
    trace = draw("gpu0 | A\ngpu1 s14 | B")
    assert operations(trace, "gpu", "device", "stream") == [(0, 0, 7), (1, 1, 14)]
    assert [gpu.gpu for gpu in trace.info.gpus] == [0, 1]


def test_rows_of_one_stream_may_overlap() -> None:
    trace = draw("gpu0 s7 | AAA\ngpu0 s7 | .BBB")
    assert operations(trace, "start_ns", "end_ns", "stream") == [(0, 30_000, 7), (10_000, 40_000, 7)]


def test_calls_launch_the_operations_of_their_letter_in_order() -> None:
    trace = draw("api | A.B.A\ngpu0 | .AA.AA\ngpu0 s8 | ...B")
    launch = dict(trace.calls.select("correlation", "start_ns").rows())
    assert [(names(trace)[i], launch[c]) for i, c in enumerate(trace.operations["correlation"])] == [
        ("A", 0),
        ("B", 20_000),
        ("A", 40_000),
    ]


def test_threads_share_the_correlation_ids_of_their_process_and_processes_do_not() -> None:
    trace = draw("api | A\napi2 | .B\np2 api | ..A\ngpu0 | ...AB\np2 gpu0 | .....A")
    assert trace.calls.select("process", "thread", "correlation").rows() == [
        (ME, thread_key(ME, 1), 1),
        (ME, thread_key(ME, 2), 2),
        (OTHER, thread_key(OTHER, 1), 1),
    ]
    assert [(p.process, p.pid) for p in trace.info.processes] == [(ME, 1001), (OTHER, 1002)]


def test_a_graph_without_nodes_is_one_record_a_launch() -> None:
    trace = draw("api | G..G\ngpu0 | .GG.GG\nG = graph 12")
    assert operations(trace, "kind", "graph", "graph_node", "correlation") == [
        (GRAPH, 12, None, 1),
        (GRAPH, 12, None, 2),
    ]
    assert set(trace.names.values()) == {"cudaGraphLaunch_v10000"}


def test_a_graph_with_nodes_deals_them_out_to_its_launches() -> None:
    trace = draw("""
        api  | G.......G.......
        gpu0 | .a.b.a...a.b.a..
        G = graph 5 a*2 b
        b = copy DtoD 8
    """)
    rows = operations(trace, "kind", "correlation", "graph", "graph_node")
    first = [(KERNEL, 1, 5, 5 << 32 | 1), (MEMCPY, 1, 5, 5 << 32 | 3), (KERNEL, 1, 5, 5 << 32 | 2)]
    assert rows == first + [(kind, 2, graph, node) for kind, _, graph, node in first]


def test_graphs_without_an_id_get_one_each() -> None:
    trace = draw("api | GH\ngpu0 | ..GH\nG = graph\nH = graph")
    assert trace.operations["graph"].n_unique() == 2


def test_a_copy_says_direction_bytes_and_memory() -> None:
    trace = draw("api | C\ngpu0 | CD.E\nC = copy DtoH 8 pageable\nD = copy HtoD 64\nE = copy DtoD 32")
    columns = ("kind", "bytes", "copy_kind", "src_kind", "dst_kind")
    assert operations(trace, *columns) == [(MEMCPY, 8, 2, 2, 0), (MEMCPY, 64, 1, 1, 2), (MEMCPY, 32, 8, 2, 2)]


def test_a_memset_and_a_named_kernel() -> None:
    trace = draw("gpu0 | MK\nM = memset 16\nK = kernel void moe<int, 4>()")
    assert operations(trace, "kind", "bytes") == [(MEMSET, 16), (KERNEL, None)]
    assert names(trace) == [None, "void moe<int, 4>()"]


def test_a_meaning_may_name_its_api_its_error_and_its_frames() -> None:
    trace = draw("api | K.F\ngpu0 | .K\nK = kernel k via cuLaunchKernel\nF = cudaGraphLaunch fails 700 at leaf at root")
    assert [trace.names[name] for name in trace.calls["name"]] == ["cuLaunchKernel", "cudaGraphLaunch"]
    assert trace.calls["return_value"].to_list() == [0, 700]
    chain = trace.calls["callchain"][1]
    assert trace.frames.rows() == [(chain, "leaf", 0), (chain, "root", 1)]


def test_waits_and_events_leave_their_records() -> None:
    trace = draw("""
        api | R.W.SD
        R = cudaEventRecord s14 e3
        W = cudaEventSynchronize e3
        S = cudaStreamSynchronize s14
        D = cudaDeviceSynchronize
    """)
    assert trace.events.select("stream", "event").rows() == [(14, 3)]
    assert trace.syncs["sync_type"].to_list() == [1, 3, 4]
    assert trace.syncs["event"].to_list() == [3, None, None]
    assert trace.syncs["event_sync"][0] == trace.events["event_sync"][0]


def test_nvtx_ranges_carry_their_text() -> None:
    trace = draw("nvtx | [ step 0 ].[x]\np2 nvtx3 | .[=]")
    assert trace.nvtx.select("start_ns", "end_ns", "process", "thread", "text").rows() == [
        (0, 100_000, ME, thread_key(ME, 1), "step 0"),
        (10_000, 40_000, OTHER, thread_key(OTHER, 3), "="),
        (110_000, 140_000, ME, thread_key(ME, 1), "x"),
    ]


def test_profiler_and_os_rows() -> None:
    trace = draw("profiler | .PQ\nos2 | O.\nnodes | .N\nQ = name TLS allocation\nO = name futex")
    assert trace.overheads.select("table", "name", "start_ns").rows() == [
        ("PROFILER_OVERHEAD", "CUPTI Buffer flush", 10_000),
        ("PROFILER_OVERHEAD", "TLS allocation", 20_000),
    ]
    assert trace.os_calls.select("name", "thread").rows() == [("futex", thread_key(ME, 2))]
    assert trace.graph_nodes.rows() == [(10_000, thread_key(ME, 1))]


def test_a_run_can_be_many_kernels_with_a_call_each() -> None:
    trace = draw("api | KK..K\ngpu0 | ..KK.K\nK = kernel layer *4")
    assert operations(trace, "start_ns", "end_ns")[:5] == [
        (20_000, 25_000), (25_000, 30_000), (30_000, 35_000), (35_000, 40_000), (50_000, 52_500),
    ]  # fmt: skip
    assert len(trace.calls) == 8
    assert trace.calls["start_ns"][:2].to_list() == [0, 5_000]
    assert operations(trace, "correlation") == [(number,) for number in trace.calls["correlation"]]


def test_rows_are_numbered_by_table() -> None:
    trace = draw("gpu0 | ACB\nC = copy DtoD 8")
    assert operations(trace, "kind", "row") == [(KERNEL, 0), (MEMCPY, 0), (KERNEL, 1)]


@pytest.mark.parametrize(
    ("picture", "problem"),
    [
        ("gpu0 | A\nnonsense", r"line 2: neither a track .* nor a letter's meaning"),
        ("cpu0 | A", "neither a track"),
        ("gpu0 |A", "leave one blank after the bar"),
        ("gpu0 | A+", r"can't read '\+'"),
        ("nvtx | [open", r"can't read '\[open'"),
        ("A = copy XtoY 8", "'copy XtoY 8' is no kernel, copy, memset, graph, name or API call"),
        ("A = copy DtoH", "is no kernel"),
        ("A = copy DtoH 8 papery", "'papery' is no kind of memory: unknown|'papery' is no kind of memory: pageable"),
        ("A = kernel", "is no kernel"),
        ("A = kernel k via", "'via' needs a word behind it"),
        ("A = kernel k via x y", "unexpected 'y'"),
        ("A = kernel k fails often", "invalid literal"),
        ("A = graph 5 ab", "'ab' is no node of a graph"),
        ("A = kernel 'k", "No closing quotation"),
        ("api | A", "A is launched, but A is nowhere on a gpu row"),
        ("api | A.A\ngpu0 | .A", "A has 1 runs on gpu rows, but 2 launches of 1 each"),
        ("api | G\ngpu0 | .a\nG = graph a b", "G is launched, but b is nowhere on a gpu row"),
        ("gpu0 | S\nS = cudaStreamSynchronize", "S can't run on a gpu row"),
    ],
)
def test_a_picture_that_cannot_be_read_is_refused(picture: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem) as caught:
        draw(picture)
    assert caught.value.hint
