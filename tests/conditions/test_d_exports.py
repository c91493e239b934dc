"""Conditions of captures and their export: what is missing, impossible, renamed or too much."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from benchmarks.generate import generate
from bubblefinder.errors import CannotAnswerError, InputError, NotATraceError
from bubblefinder.report.build import analyze_trace
from bubblefinder.trace import nsysrep
from bubblefinder.trace.open import open_trace
from tests.conditions.ask import ask, change, codes, device_of, exported, ledger, warnings, written
from tests.unit.trace.test_nsysrep import install

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.report.model import Report

KERNELS = "CUPTI_ACTIVITY_KIND_KERNEL"
CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
GRAPHS = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
PLAIN = """
api      | A....B..
gpu0 s7  | .AA...B.
"""
PLAIN_LEDGER = {"busy": 3, "host_late": 2, "launching": 1}
STEPS = """
nvtx     | [decode_step                           ]
api      | D.V..CCCCCCCCCCCCCCCCCCC...............
gpu0 s7  | DDDVVVVVVVVVVVVVVVVVVVVC...............
D = graph 1
V = graph 2
C = copy DtoH 8 pageable
"""
LAUNCHES = [
    "cudaLaunchKernel_v7000",
    "cudaLaunchKernelExC_v11060",
    "cudaLaunchCooperativeKernel_v9000",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cudaLaunch_v3020",
    "cuSomethingOfTheFuture",
]
ENOUGH_S = 20


def marks(report: Report) -> tuple[str, str | None, int]:
    return report.steps.method, report.steps.mark, report.steps.count


def test_d1_a_rank_without_gpu_rows_was_not_captured() -> None:
    report = ask("""
        api        | A.....B
        gpu0 s7    | .A....B
        p2 api     | L..L..L
        L = cudaLaunchKernel_v7000
    """)
    assert [device.gpu for device in report.devices] == [0]
    assert ledger(report) == {"busy": 2, "host_late": 4}


def test_d1_a_rank_without_gpu_rows_is_named(tmp_path: Path) -> None:
    two = "api | A.B\ngpu0 s7 | A.B\np2 api | L.L\nL = cudaLaunchKernel_v7000"
    report = exported(tmp_path / "a.sqlite", two)
    note = next(note for note in report.quality if note.code == "process-without-work")
    assert note.message.endswith(" 1002")


def test_d2_a_recording_that_was_never_finished_is_called_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "killed.qdstrm"
    path.write_bytes(b"CDFVEVENTS")
    monkeypatch.setattr(nsysrep, "installed_nsys", lambda: None)
    with pytest.raises(InputError, match="raw recording that must be imported"):
        open_trace(path)


@pytest.mark.parametrize("number", [2, 3])
def test_d3_tables_with_a_number_in_their_name_are_found(tmp_path: Path, number: int) -> None:
    renamed = [f"ALTER TABLE {name} RENAME TO {name}_V{number}" for name in ("NVTX_EVENTS", GRAPHS, CALLS)]
    plain = exported(tmp_path / "a.sqlite", STEPS, repeat=8)
    report = exported(tmp_path / "b.sqlite", STEPS, *renamed, repeat=8)
    assert marks(report) == marks(plain) == ("nvtx", "decode_step", 7)


def test_d4_without_nvtx_the_rest_is_reported(tmp_path: Path) -> None:
    report = exported(tmp_path / "a.sqlite", STEPS, "DROP TABLE NVTX_EVENTS", repeat=8)
    assert report.steps.count >= 6
    assert "no-nvtx-ranges" in codes(report)


def test_d5_ranges_with_text_and_no_registered_string_are_named(tmp_path: Path) -> None:
    report = exported(tmp_path / "a.sqlite", STEPS, "ALTER TABLE NVTX_EVENTS DROP COLUMN textId", repeat=8)
    assert marks(report) == ("nvtx", "decode_step", 7)


def test_d7_a_trace_of_the_cpu_alone_has_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    change(
        path,
        "CREATE TABLE StringIds (id INT PRIMARY KEY, value TEXT)",
        "CREATE TABLE COMPOSITE_EVENTS (id INT, start INT, cpuCycles INT)",
        "CREATE TABLE SCHED_EVENTS (start INT, cpu INT)",
    )
    with pytest.raises(CannotAnswerError, match="no GPU activity recorded"):
        analyze_trace(open_trace(path))


@pytest.mark.parametrize(
    ("start", "end", "left_out"),
    [(0, 0, 1), (5_000, 0, 1), (0, 1_000, 0), (9_000, 8_000, 1), (2**63 - 1, 2**63 - 1, 1)],
)
def test_d9_rows_without_a_usable_time_are_left_out_and_counted(
    tmp_path: Path, start: int, end: int, left_out: int
) -> None:
    row = f"INSERT INTO {KERNELS} SELECT * FROM {KERNELS} LIMIT 1"
    bad = f"UPDATE {KERNELS} SET start = {start}, end = {end} WHERE rowid = 3"
    report = exported(tmp_path / "a.sqlite", PLAIN, row, bad)
    assert codes(report).get("invalid-times", 0) == left_out
    assert device_of(report).span_ns == (6_000 if left_out else 7_000)
    assert ("invalid-times" in warnings(report)) is bool(left_out)


def test_d10_kernels_that_end_before_they_start_are_dropped_and_counted(tmp_path: Path) -> None:
    swapped = f"UPDATE {KERNELS} SET start = end, end = start WHERE rowid % 10 = 0"
    picture = "api | " + "AB" * 50 + "\ngpu0 s7 | " + "AB" * 50
    report = exported(tmp_path / "a.sqlite", picture, swapped)
    assert codes(report)["invalid-times"] == 10
    assert device_of(report).busy_ns == 90_000


def test_d12_the_head_of_a_capture_without_kernels_is_not_idle() -> None:
    report = ask("api | L.L.L.A..B\ngpu0 s7 | ......A..B\nL = cudaLaunchKernel_v7000")
    assert device_of(report).span_ns == 4_000
    assert codes(report)["launches-without-work"] == 3


@pytest.mark.parametrize("api", LAUNCHES)
def test_d13_whatever_call_has_gpu_work_launched_it(api: str) -> None:
    report = ask(f"api | A....BB.\ngpu0 s7 | .A....B.\nA = kernel a via {api}\nB = kernel b via {api}")
    assert ledger(report) == {"busy": 2, "host_late": 3, "launching": 1}


def test_d14_a_new_capture_under_an_old_name_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    first = exported(path, PLAIN)
    second = exported(path, "api | A\ngpu0 s7 | A")
    assert (device_of(first).span_ns, device_of(second).span_ns) == (6_000, 1_000)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a.sqlite"]


def test_d15_a_large_capture_takes_time_in_proportion(tmp_path: Path) -> None:
    generate(tmp_path / "a.sqlite", 300_000)
    began = time.process_time()
    report = analyze_trace(open_trace(tmp_path / "a.sqlite"))
    assert report.steps.count
    assert time.process_time() - began < ENOUGH_S


def test_d17_a_capture_range_without_gpu_work_says_so(tmp_path: Path) -> None:
    path = written(tmp_path / "a.sqlite", PLAIN, f"DELETE FROM {KERNELS}")
    with pytest.raises(
        CannotAnswerError, match=r"a\.sqlite: no GPU activity recorded although 2 API calls were traced"
    ):
        analyze_trace(open_trace(path))


def test_d18_a_report_of_a_newer_version_names_the_version_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = tmp_path / "run.nsys-rep"
    report.write_bytes(b"\1report")
    said = "Report was created in Nsight Systems version 2026.5, newer than your current version 2024.2"
    install(monkeypatch, tmp_path / "bin", f"echo '{said}' >&2; exit 1")
    with pytest.raises(NotATraceError, match=r"2026\.5, newer than your current version 2024\.2"):
        open_trace(report)
