from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.trace.open import open_trace
from tests.unit.trace.rows import CALLS, COPIES, GLOBAL, KERNELS, call, change, kernel, operation, save

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.trace.model import QualityNote


def notes(path: Path) -> dict[str, QualityNote]:
    return {note.code: note for note in open_trace(path).notes}


def test_a_capture_without_api_calls_can_blame_nobody(tmp_path: Path) -> None:
    assert notes(save(tmp_path / "x.sqlite", **{CALLS: []}))["no-api-calls"].level == "warn"
    assert "no-api-calls" not in notes(save(tmp_path / "y.sqlite"))


def test_migrations_of_unified_memory_are_counted(tmp_path: Path) -> None:
    copies = [operation(n, n + 1, copyKind=kind, bytes=4, correlationId=None) for n, kind in ((1, 11), (2, 12), (3, 2))]
    assert notes(save(tmp_path / "x.sqlite", **{COPIES: copies}))["unified-memory"].count == 2


def test_several_sessions_in_one_file_are_named(tmp_path: Path) -> None:
    path = save(tmp_path / "x.sqlite")
    change(path, "CREATE TABLE TARGET_INFO_SESSION_START_TIME(utcEpochNs INTEGER)")
    change(path, "INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1), (2)")
    assert notes(path)["several-sessions"].count == 2


@pytest.mark.parametrize(("table", "cut"), [("META_DATA_EXPORT", True), ("NVTX_EVENTS", False)])
def test_a_newer_export_without_its_last_table_was_cut(tmp_path: Path, table: str, *, cut: bool) -> None:
    assert ("export-incomplete" in notes(save(tmp_path / "x.sqlite", **{table: []}))) is cut


def test_an_old_export_never_had_that_table(tmp_path: Path) -> None:
    assert "export-incomplete" not in notes(save(tmp_path / "x.sqlite", schema="3.0"))


def test_a_process_whose_gpu_was_not_recorded_is_named(tmp_path: Path) -> None:
    silent = call(10, 15, globalTid=GLOBAL + (23 << 24))
    note = notes(save(tmp_path / "x.sqlite", **{CALLS: [call(10, 15), silent]}))["process-without-work"]
    assert (note.level, note.count) == ("warn", 1)
    assert "123" in note.message


def test_a_process_that_launches_nothing_is_not(tmp_path: Path) -> None:
    strings = [{"id": 1, "value": "k"}, {"id": 2, "value": "cudaLaunchKernel"}, {"id": 9, "value": "cudaGetDevice"}]
    asks = call(10, 15, globalTid=GLOBAL + (23 << 24), nameId=9)
    assert "process-without-work" not in notes(
        save(tmp_path / "x.sqlite", StringIds=strings, **{CALLS: [call(1, 2), asks]})
    )


def test_correlation_ids_repeat_inside_a_process_only(tmp_path: Path) -> None:
    other = {"globalTid": GLOBAL + (23 << 24)}
    apart = [call(10, 15), call(11, 12, **other), call(12, 13, correlationId=None), call(13, 14, correlationId=0)]
    kernels = [kernel(20, 30), kernel(20, 30, globalPid=GLOBAL + (23 << 24))]
    assert "repeated-correlations" not in notes(save(tmp_path / "x.sqlite", **{CALLS: apart, KERNELS: kernels}))
    again = [*apart, call(15, 16), call(16, 17)]
    assert notes(save(tmp_path / "y.sqlite", **{CALLS: again, KERNELS: kernels}))["repeated-correlations"].count == 2
