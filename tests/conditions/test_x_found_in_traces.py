"""Conditions seen in real exports: versions, lost records, foreign files."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import CannotAnswerError, NotATraceError
from bubblefinder.report.build import analyze_trace
from bubblefinder.trace.open import open_trace
from tests.conditions.ask import ask, change, codes, device_of, drawn, exported, ledger, rules, warnings, written
from tests.exports import export

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.report.model import Report

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
SYNCS = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
PLAIN = """
api      | A....B..
gpu0 s7  | .AA...B.
"""
WAITS_AND_STREAM_WAITS = """
nvtx     | [decode_step                            ]
api      | D.WCSSSSSSSSSSSSSSSSSSS......E.............
gpu0 s7  | DDDDDDDDDDDDDDDDDDDDDD........EEEEEEEEE....
gpu0 s14 | ....C......................................
D = graph 1
E = graph 2
W = cudaStreamWaitEvent s7 e3
C = copy DtoH 8 pinned
S = cudaStreamSynchronize s7
"""
FIRST_READ = """
nvtx     | [decode_step                                ]
api      | GGCCCCCCCCCCCCCCCCCCCCCCC.DD.EE.FF...............
gpu0 s7  | .GGGGGGGGGGGGGGGGGGGGGG.........................
gpu0 s14 | .......................C...D..E..F..............
G = graph 1
C = copy DtoH 16 pageable
D = copy DtoH 16 pageable
E = copy DtoH 16 pageable
F = copy DtoH 16 pageable
"""


def told(report: Report) -> tuple[object, ...]:
    return (report.devices, report.steps.per_step, [(f.rule, f.bubble_ns, f.recoverable_ns) for f in report.findings])


@pytest.mark.parametrize("number", range(6))
def test_x1_sync_type_numbers_decide_nothing(tmp_path: Path, number: int) -> None:
    whole = exported(tmp_path / "a.sqlite", WAITS_AND_STREAM_WAITS, repeat=6)
    changed = exported(
        tmp_path / "b.sqlite", WAITS_AND_STREAM_WAITS, f"UPDATE {SYNCS} SET syncType = {number}", repeat=6
    )
    assert rules(whole)
    assert {finding.site.api for finding in whole.findings} == {"cudaStreamSynchronize"}
    assert told(changed) == told(whole)


def test_x2_sync_type_0_everywhere_hides_no_wait(tmp_path: Path) -> None:
    report = exported(tmp_path / "a.sqlite", WAITS_AND_STREAM_WAITS, f"UPDATE {SYNCS} SET syncType = 0", repeat=6)
    assert "cudaStreamSynchronize" in {finding.site.api for finding in report.findings}


def test_x3_work_recorded_as_whole_graphs_is_busy_time() -> None:
    report = ask("""
        api      | G..........G.........
        gpu0 s7  | .GGGGGGGGGG.GGGGGGGGG
        G = graph 5
    """)
    assert report.trace.capture_mode == "graph"
    assert ledger(report) == {"busy": 19, "launching": 1}
    assert device_of(report).intra_graph_ns is None


def test_x4_a_replay_without_record_is_no_bubble() -> None:
    report = ask("""
        api      | G.........L..........G.........
        gpu0 s7  | .GGGGGGGGG............GGGGGGGGG
        G = graph 5
        L = cudaGraphLaunch_v10000
    """)
    assert ledger(report) == {"busy": 18, "unrecorded": 12}
    assert (device_of(report).launches.seen, device_of(report).launches.recorded) == (3, 2)
    assert codes(report)["launches-without-work"] == 1


def test_x5_the_first_read_of_a_step_waits_for_the_graph_and_costs_what_follows() -> None:
    report = ask(FIRST_READ, repeat=8)
    (finding,) = [found for found in report.findings if found.severity != "info" and found.site.api]
    assert (finding.host_blocked_ns.p50, finding.bubble_ns.p50) == (29_000, 23_000)
    assert finding.per_step_count == 4
    assert finding.site.bytes == 16


def test_x6_correlation_ids_of_two_processes_are_kept_apart() -> None:
    report = ask("""
        p1 api     | A...C...
        p1 gpu0 s7 | .AA..C..
        p2 api     | S.S.S...
        p2 api     | .B.B....
        p2 gpu1 s7 | ..B.B...
        A = kernel a
        B = kernel b
        C = copy DtoH 8 pageable via cudaMemcpy_v3020
        S = cudaStreamSynchronize s7
    """)
    assert ledger(report) == {"busy": 3, "host_late": 1, "launching": 1}


def test_x7_copies_are_busy_time() -> None:
    report = ask("""
        api      | A.C.....B
        gpu0 s7  | .A......B
        gpu0 s14 | ..CCCCCC.
        C = copy HtoD 4096 pinned
    """)
    assert ledger(report) == {"busy": 8}


def test_x8_calls_without_gpu_rows_can_not_be_answered(tmp_path: Path) -> None:
    path = export(drawn("api | L.L.S\nL = cuGraphLaunch\nS = cudaDeviceSynchronize"), tmp_path / "a.sqlite")
    with pytest.raises(CannotAnswerError, match="no GPU activity recorded although 3 API calls") as error:
        analyze_trace(open_trace(path))
    assert error.value.exit_code == 3


def test_x9_a_kernel_that_starts_before_its_launch_is_counted_and_clamped() -> None:
    report = ask("api | A...BB.\ngpu0 s7 | AA.BB..")
    assert ledger(report) == {"busy": 4, "host_late": 1}
    assert codes(report)["starts-before-launch"] == 1


def test_x10_kernels_of_one_stream_may_overlap() -> None:
    report = ask("api | AB....C.\ngpu0 s7 | .AAA....\ngpu0 s7 | ..BBB..C")
    assert ledger(report) == {"busy": 5, "launching": 1, "host_late": 1}


def test_x11_kernels_without_a_call_are_kept_and_their_gaps_unattributed(tmp_path: Path) -> None:
    report = exported(tmp_path / "a.sqlite", PLAIN, f"DELETE FROM {CALLS} WHERE correlationId = 2")
    assert ledger(report) == {"busy": 3, "unattributed": 3}
    assert codes(report)["work-without-launches"] == 1


@pytest.mark.parametrize("schema", ["none", "3.0"])
def test_x12_old_exports_lack_tables_and_columns(tmp_path: Path, schema: str) -> None:
    gone = (f"ALTER TABLE {KERNELS} DROP COLUMN {name}" for name in ("contextId", "globalPid", "graphNodeId"))
    report = exported(tmp_path / "a.sqlite", PLAIN, *gone, schema=schema)
    assert ledger(report) == {"busy": 3, "host_late": 2, "launching": 1}
    assert codes(report)["process-assumed"] == 2


def test_x13_an_export_that_failed_is_not_an_idle_capture(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    change(path, "CREATE TABLE StringIds (id, value)", "CREATE TABLE ProcessStreams (globalPid)")
    with pytest.raises(NotATraceError, match="an export that failed"):
        open_trace(path)


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("a.nsys-rep", "CREATE TABLE StringTable (id)", "an nvprof database"),
        ("a.sqlite", "CREATE TABLE dlprof_ops (id)", "a DLProf database"),
        ("a.db", "CREATE TABLE rocpd_api (id)", "a ROCm profiler database"),
        ("a.sqlite", "CREATE TABLE notes (id)", "without the tables of an Nsight Systems export"),
        ("a.sqlite", b"", "is empty"),
        ("a.nsys-rep", b"", "is empty"),
        ("a.sqlite", b"SQLite format 3\0" + bytes(40), "cut short"),
    ],
)
def test_x14_other_files_are_called_what_they_are(tmp_path: Path, name: str, content: str | bytes, what: str) -> None:
    path = tmp_path / name
    if isinstance(content, str):
        change(path, content)
    else:
        path.write_bytes(content)
    with pytest.raises(NotATraceError, match=what) as error:
        open_trace(path)
    assert error.value.hint
    assert "\n" not in str(error.value)


def test_x15_moves_of_unified_memory_are_no_reads(tmp_path: Path) -> None:
    report = exported(
        tmp_path / "a.sqlite",
        """
        api      | A........B..
        gpu0 s7  | .AA.......B.
        gpu0 s14 | ....UUU.....
        U = copy "UVM DtoH" 4096 managed
        """,
    )
    assert ledger(report) == {"busy": 6, "unattributed": 1, "host_late": 2, "launching": 1}
    assert codes(report)["unified-memory"] == 1
    assert rules(report) == []


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CUPTI buffers: 49 of 50. Some CUPTI events might be missing.", "records-lost"),
        ("Not all CUDA events might have been collected.", "events-incomplete"),
        ("No CUDA events collected. Does the process use CUDA?", "diagnostic"),
    ],
)
def test_x16_what_the_profiler_says_of_lost_events_is_passed_on(tmp_path: Path, text: str, code: str) -> None:
    path = written(tmp_path / "a.sqlite", PLAIN)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(
            "CREATE TABLE DIAGNOSTIC_EVENT (timestamp INT, timestampType INT, source INT, severity INT, text TEXT, "
            "globalPid INT)"
        )
        db.execute("INSERT INTO DIAGNOSTIC_EVENT VALUES (0, 0, 0, 3, ?, 0)", (text,))
    report = analyze_trace(open_trace(path))
    assert codes(report)[code] == 1
    # The second is said of every capture that a call ends; here each launch call has its work, so nothing is missing.
    assert (code in warnings(report)) is (code == "records-lost")


def test_x18_ranges_without_end_or_text_do_no_harm(tmp_path: Path) -> None:
    thread = "(SELECT globalTid FROM CUPTI_ACTIVITY_KIND_RUNTIME LIMIT 1)"
    nvtx = (
        "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, globalTid INT, text TEXT, textId INT)",
        f"INSERT INTO NVTX_EVENTS VALUES (1, NULL, 59, {thread}, NULL, NULL)",
        f"INSERT INTO NVTX_EVENTS VALUES (1, NULL, 34, {thread}, 'mark', NULL)",
    )
    report = exported(tmp_path / "a.sqlite", PLAIN, *nvtx)
    assert ledger(report) == {"busy": 3, "host_late": 2, "launching": 1}


def test_x20_only_gpus_with_work_are_reported(tmp_path: Path) -> None:
    others = (f"INSERT INTO TARGET_INFO_GPU (vmId, id, name) VALUES (1, {gpu}, 'GPU')" for gpu in (0, 1, 2, 4))
    picture = PLAIN.replace("gpu0", "gpu3")
    report = exported(tmp_path / "a.sqlite", picture, *others)
    assert [device.gpu for device in report.devices] == [3]
    assert codes(report)["gpus-unused"] == 4
