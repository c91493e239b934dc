from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.trace.frames import in_time_order
from bubblefinder.trace.model import GRAPH, KERNEL, MEMCPY, MEMSET
from bubblefinder.trace.open import open_trace
from bubblefinder.trace.programs import find_programs
from tests.unit.trace.rows import (
    CALLS,
    COPIES,
    EVENTS,
    GLOBAL,
    GRAPHS,
    KERNELS,
    MEMSETS,
    PROCESS,
    STRINGS,
    SYNCS,
    THREAD,
    call,
    change,
    kernel,
    operation,
    save,
)

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.trace.model import Trace

NODE = 5 << 32 | 9


@pytest.fixture
def load(tmp_path: Path) -> Loader:
    return Loader(tmp_path / "x.sqlite")


class Loader:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, schema: Any = "3.28", **tables: Any) -> Trace:
        return open_trace(save(self.path, schema=schema, **tables))


def counts(trace: Trace) -> dict[str, int | None]:
    return {note.code: note.count for note in trace.notes}


def test_the_four_tables_of_operations_become_one_frame(load: Loader) -> None:
    loaded = load(**{
        KERNELS: [kernel(40, 50, graphNodeId=NODE)],
        COPIES: [operation(10, 12, bytes=8, copyKind=2, srcKind=2, dstKind=0)],
        MEMSETS: [operation(20, 21, bytes=64, memKind=2, graphNodeId=NODE + 1)],
        GRAPHS: [operation(60, 90, graphId=3, graphExecId=77)],
    }).operations  # fmt: skip
    work = (
        "kind",
        "row",
        "start_ns",
        "end_ns",
        "graph_node",
        "graph",
        "name",
        "bytes",
        "copy_kind",
        "src_kind",
        "dst_kind",
    )
    assert loaded.select(work).rows() == [
        (MEMCPY, 0, 10, 12, None, None, None, 8, 2, 2, 0),
        (MEMSET, 0, 20, 21, NODE + 1, 5, None, 64, None, None, 2),
        (KERNEL, 0, 40, 50, NODE, 5, 1, None, None, None, None),
        (GRAPH, 0, 60, 90, None, 77, None, None, None, None, None),
    ]
    places = loaded.select("process", "device", "gpu", "context", "stream", "correlation").unique().rows()
    assert places == [(PROCESS, 0, 0, 1, 7, 5)]


def test_zero_is_no_correlation_and_no_graph(load: Loader) -> None:
    loaded = load(**{KERNELS: [kernel(20, 30, correlationId=0, graphNodeId=0)], CALLS: [call(1, 2, correlationId=0)]})
    assert loaded.operations.select("correlation", "graph_node", "graph").row(0) == (None, None, None)
    assert loaded.calls["correlation"].to_list() == [None]


def test_impossible_times_are_counted_and_a_clock_that_starts_at_zero_is_fine(load: Loader) -> None:
    rows = [kernel(0, 0), kernel(0, 7), kernel(30, 20), kernel(40, 40)]
    loaded = load(**{KERNELS: rows, CALLS: [call(0, 0), call(9, 3), call(1, 2)]})
    assert loaded.operations.select("row", "start_ns", "end_ns").rows() == [(1, 0, 7), (3, 40, 40)]
    assert loaded.calls["row"].to_list() == [2]
    (note,) = (note for note in loaded.notes if note.code == "invalid-times")
    assert (note.level, note.count) == ("warn", 4)
    assert f"{KERNELS} 2" in note.message


def test_missing_times_are_counted(tmp_path: Path) -> None:
    path = save(tmp_path / "x.sqlite", **{KERNELS: [kernel(20, 30)]})
    change(path, f"ALTER TABLE {KERNELS} RENAME COLUMN 'end' TO finish")
    loaded = open_trace(path)
    assert loaded.operations.is_empty()
    assert counts(loaded)["missing-times"] == 1


def test_frames_are_in_time_order_and_ties_break_by_the_end(load: Loader) -> None:
    loaded = load(**{KERNELS: [kernel(50, 60), kernel(20, 40), kernel(20, 30), kernel(20, 30)]}).operations
    assert loaded.select("start_ns", "end_ns", "row").rows() == [(20, 30, 2), (20, 30, 3), (20, 40, 1), (50, 60, 0)]


def test_operations_of_a_gpu_lie_together(load: Loader) -> None:
    on_two = [kernel(20, 30, deviceId=1), kernel(10, 15), kernel(5, 9, deviceId=1), kernel(40, 60)]
    loaded = load(**{KERNELS: on_two}).operations
    assert loaded.select("gpu", "start_ns", "row").rows() == [(0, 10, 1), (0, 40, 3), (1, 5, 2), (1, 20, 0)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.none() | st.integers(0, 1))))
def test_sorting_by_time_loses_nothing(rows: list[tuple[int, int, int | None]]) -> None:
    frame = pl.DataFrame(rows, schema={"start_ns": pl.Int64, "end_ns": pl.Int64, "some": pl.Int32}, orient="row")
    expected = frame.sort("start_ns", "end_ns", maintain_order=True)
    found = in_time_order(frame)
    assert found.equals(expected)
    assert found.schema == expected.schema


def test_only_ranges_are_ranges_and_open_ones_stay_open(load: Loader) -> None:
    kinds = [33, 34, 39, 59, 60, 70, 71, 75, 76]
    rows = [{"start": n, "end": n + 5, "eventType": n, "globalTid": THREAD, "text": str(n)} for n in kinds]
    loaded = load(NVTX_EVENTS=[*rows, {"start": 80, "eventType": 59, "globalTid": THREAD, "text": "open"}]).nvtx
    assert loaded["text"].to_list() == ["59", "60", "70", "71", "open"]
    assert loaded["end_ns"].to_list() == [64, 65, 75, 76, None]
    assert loaded["row"].to_list() == [3, 4, 5, 6, 9]


def test_range_names_come_plain_registered_or_not_at_all(load: Loader) -> None:
    ranges = [{"start": n, "end": 90, "eventType": 59, "globalTid": THREAD} for n in (1, 2, 3)]
    named = [ranges[0] | {"text": "plain"}, ranges[1] | {"textId": 3}, ranges[2]]
    assert load(NVTX_EVENTS=named).nvtx["text"].to_list() == ["plain", "a range", ""]


def test_each_process_names_its_own_domains(load: Loader) -> None:
    other = GLOBAL + (1 << 24)
    rows = [
        {"start": -5, "eventType": 75, "globalTid": GLOBAL, "domainId": 1, "text": "NCCL"},
        {"start": -5, "eventType": 75, "globalTid": other, "domainId": 1, "textId": 3},
        {"start": 1, "end": 2, "eventType": 59, "globalTid": THREAD, "domainId": 1, "text": "x"},
        {"start": 2, "end": 3, "eventType": 59, "globalTid": other | 3, "domainId": 1, "text": "x"},
        {"start": 3, "end": 4, "eventType": 59, "globalTid": THREAD, "domainId": 0, "text": "x"},
    ]
    assert load(NVTX_EVENTS=rows).nvtx["domain"].to_list() == ["NCCL", "a range", None]


def test_profiler_overhead_of_both_tables_is_kept_apart_and_raw_types_are_shifted_down(load: Loader) -> None:
    row = {"start": 1, "end": 2, "globalTid": THREAD, "nameId": 3}
    loaded = load(
        PROFILER_OVERHEAD=[row | {"overheadType": 3}],
        CUPTI_ACTIVITY_KIND_OVERHEAD=[row | {"start": 0, "overheadType": 8 << 16}, row | {"start": 0, "end": 0}],
    )
    kept = loaded.overheads.select("table", "start_ns", "name", "overhead_type", "process").rows()
    assert kept == [
        ("CUPTI_ACTIVITY_KIND_OVERHEAD", 0, "a range", 8, PROCESS),
        ("PROFILER_OVERHEAD", 1, "a range", 3, PROCESS),
    ]
    (note,) = (note for note in loaded.notes if note.code == "invalid-times")
    assert (note.level, note.count) == ("info", 1)


@pytest.mark.parametrize(("schema", "table"), [("3.7", "CUDA_GRAPH_EVENTS"), ("3.11", "CUDA_GRAPH_NODE_EVENTS")])
def test_node_creations_are_found_in_either_table_and_may_precede_the_capture(
    load: Loader, schema: str, table: str
) -> None:
    row = {"end": 0, "eventClass": 77, "globalTid": THREAD, "nameId": 3, "graphNodeId": NODE}
    loaded = load(schema=schema, **{table: [row | {"start": 9}, row | {"start": -700}]}).graph_nodes
    assert loaded.rows() == [(-700, THREAD), (9, THREAD)]


def test_newer_graph_events_are_no_nodes(tmp_path: Path) -> None:
    path = save(tmp_path / "x.sqlite")
    change(path, "CREATE TABLE CUDA_GRAPH_EVENTS(start INTEGER, globalTid INTEGER, graphId INTEGER)")
    change(path, "INSERT INTO CUDA_GRAPH_EVENTS VALUES (1, 2, 3)")
    assert open_trace(path).graph_nodes.is_empty()


def test_waits_have_no_stream_where_cupti_has_none(load: Loader) -> None:
    rows = [
        operation(n, n + 1, syncType=4, streamId=stream, eventId=0xFFFF_FFFF)
        for n, stream in ((1, 0xFFFF_FFFF), (2, -1), (3, 7))
    ]
    loaded = load(**{SYNCS: rows}).syncs
    assert loaded["stream"].to_list() == [None, None, 7]
    assert loaded["event"].to_list() == [None] * 3


def test_events_without_a_time_have_none(load: Loader) -> None:
    place = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 5, "globalPid": GLOBAL, "eventId": 4}
    loaded = load(**{EVENTS: [place | {"timestamp": 0}, place | {"timestamp": 90}]}).events
    assert loaded["timestamp_ns"].to_list() == [None, 90]


def test_nested_operating_system_calls_count_once(load: Loader) -> None:
    row = {"start": 1, "end": 5, "globalTid": THREAD, "nameId": 3}
    calls = {CALLS: [call(1, 2)]}
    loaded = load(OSRT_API=[row | {"nestingLevel": level} for level in (None, 0, 1)], **calls).os_calls
    assert loaded.select("row", "name").rows() == [(0, "a range"), (1, "a range")]


def test_operating_system_calls_of_threads_without_cuda_are_left_out_when_they_have_been_counted(load: Loader) -> None:
    row = {"start": 4, "end": 5, "globalTid": THREAD, "nameId": 3}
    idle = row | {"globalTid": THREAD + 1}
    loaded = load(OSRT_API=[idle, row, idle | {"end": 3}], **{CALLS: [call(1, 2)]})
    assert loaded.os_calls.select("row", "thread").rows() == [(1, THREAD)]
    assert counts(loaded)["invalid-times"] == 1


def test_a_thread_is_off_its_cpu_from_each_switch_out_to_the_next_switch_in(load: Loader) -> None:
    switches = [(5, 1), (10, 0), (14, 1), (20, 0), (22, 0), (30, 1), (40, 0)]
    rows = [{"start": start, "cpu": 0, "isSchedIn": to, "globalTid": THREAD} for start, to in switches]
    other = {"start": 11, "cpu": 1, "isSchedIn": 1, "globalTid": THREAD + 1}
    loaded = load(SCHED_EVENTS=[*rows[:2], other, *rows[2:]], **{CALLS: [call(1, 2)]}).off_cpu
    assert loaded.select("start_ns", "end_ns").rows() == [(10, 14), (22, 30)]
    assert set(loaded["thread"]) == {THREAD}


def test_call_chains_in_use_are_read_innermost_first(load: Loader) -> None:
    strings = [*STRINGS, {"id": 4, "value": "inner"}, {"id": 5, "value": "outer"}]
    chains = [
        {"id": number, "symbol": symbol, "stackDepth": depth}
        for number, symbol, depth in ((8, 5, 1), (8, 4, 0), (9, 4, 0), (8, 4, 80))
    ]
    loaded = load(StringIds=strings, CUDA_CALLCHAINS=chains, **{CALLS: [call(1, 2, callchainId=8)]}).frames
    assert loaded.rows() == [(8, "inner", 0), (8, "outer", 1)]


def test_a_call_told_twice_is_one_call_with_its_chain(load: Loader) -> None:
    """With call chains the tool that walks the stack writes a row around CUPTI's."""
    rows = [
        call(10, 40, callchainId=8, eventClass=67),
        call(12, 38),
        call(50, 60, correlationId=6),
        call(70, 95, correlationId=7),
        call(70, 90, correlationId=7),
    ]
    loaded = load(**{CALLS: rows}).calls
    assert loaded.select("start_ns", "end_ns", "callchain", "row").rows() == [
        (10, 40, 8, 0),
        (50, 60, None, 2),
        (70, 95, None, 3),
    ]


def test_calls_of_several_sessions_or_threads_may_share_an_id(load: Loader) -> None:
    rows = [call(10, 40), call(50, 60), call(12, 20, globalTid=THREAD + 1)]
    assert len(load(**{CALLS: rows}).calls) == 3


def test_a_call_that_names_no_thread_is_left_out_and_counted(load: Loader) -> None:
    loaded = load(**{KERNELS: [kernel(40, 50)], CALLS: [call(10, 20), call(30, 35, globalTid=None, correlationId=6)]})
    assert loaded.calls.select("row", "thread").rows() == [(0, THREAD)]
    assert counts(loaded)["thread-unknown"] == 1
    assert find_programs(loaded) == ()


def test_a_thread_keeps_its_last_name(load: Loader) -> None:
    names = [{"nameId": 1, "globalTid": THREAD}, {"nameId": 3, "globalTid": THREAD}]
    assert load(ThreadNames=names).thread_names == {THREAD: "a range"}


def test_operations_without_a_process_belong_to_the_only_one(load: Loader) -> None:
    loaded = load(**{KERNELS: [kernel(20, 30, globalPid=None)]})
    assert loaded.operations["process"].to_list() == [PROCESS]
    assert counts(loaded)["process-assumed"] == 1


def test_missing_tables_are_empty_frames_with_their_columns(tmp_path: Path) -> None:
    path = save(tmp_path / "x.sqlite")
    full, bare = open_trace(path), open_trace(save(tmp_path / "y.sqlite", lazy=False))
    for name in ("nvtx", "overheads", "graph_nodes", "syncs", "events", "os_calls", "frames"):
        frame: pl.DataFrame = getattr(full, name)
        assert frame.is_empty()
        assert frame.schema == getattr(bare, name).schema
        assert frame.width > 1


def test_times_that_no_clock_reaches_are_impossible(load: Loader) -> None:
    rows = [kernel(-(2**63), 5), kernel(7, 2**63 - 1), kernel(10, 20)]
    loaded = load(**{KERNELS: rows})
    assert loaded.operations["row"].to_list() == [2]
    assert counts(loaded)["invalid-times"] == 2
