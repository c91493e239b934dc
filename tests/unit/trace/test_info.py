from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.trace.open import open_trace
from tests.unit.trace.rows import CALLS, GLOBAL, KERNELS, call, kernel, save

if TYPE_CHECKING:
    from pathlib import Path

EPOCH = 1_769_101_053_378_733_600


def test_what_is_unknown_is_null(tmp_path: Path) -> None:
    info = open_trace(save(tmp_path / "x.sqlite", schema="none")).info
    found = (info.nsys_version, info.schema_version, info.cupti_version, info.driver_version, info.cuda_version)
    assert found == (None,) * 5
    assert (info.duration_ns, info.start_ns) == (None, 0)


@pytest.mark.parametrize(
    ("stored", "driver", "cuda"),
    [
        (("580.159.04", "13000"), "580.159.04", "13.0"),
        (("550.54.15", "12040"), "550.54.15", "12.4"),
        (("0", "0"), None, None),
    ],
)
def test_versions_of_the_driver(tmp_path: Path, stored: tuple[str, str], driver: str | None, cuda: str | None) -> None:
    rows = [
        {"devStateName": "Local", "name": name, "value": value}
        for name, value in zip(("NvDriverVersion", "CudaDriverVersion"), stored, strict=True)
    ]
    info = open_trace(save(tmp_path / "x.sqlite", TARGET_INFO_SYSTEM_ENV=rows)).info
    assert (info.driver_version, info.cuda_version) == (driver, cuda)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("Loaded CUPTI library: /opt/nvidia/lib/libcupti.so.13.0", "13.0"),
        (r"Loaded CUPTI library: C:\Program Files\NVIDIA\cupti64_132.dll", "13.2"),
        ("Loaded CUPTI library: C:\\x\\cupti64_2023.3.1.dll", "2023.3.1"),
        ("Loaded CUPTI library: <path>", None),
    ],
)
def test_the_collector_names_its_cupti(tmp_path: Path, text: str, version: str | None) -> None:
    rows = [{"severity": 1, "text": text}]
    assert open_trace(save(tmp_path / "x.sqlite", DIAGNOSTIC_EVENT=rows)).info.cupti_version == version


def test_the_capture_starts_where_the_export_was_shifted_to(tmp_path: Path) -> None:
    meta = [{"name": "EXPORT_CONFIG_TIME_SHIFT", "value": "-500"}]
    assert open_trace(save(tmp_path / "x.sqlite", META_DATA_EXPORT=meta)).info.start_ns == -500


def test_times_counted_from_1970_are_noticed(tmp_path: Path) -> None:
    loaded = open_trace(save(tmp_path / "x.sqlite", **{KERNELS: [kernel(EPOCH, EPOCH + 5)]}))
    assert loaded.info.start_ns == EPOCH
    assert loaded.operations["start_ns"].to_list() == [EPOCH]


@pytest.mark.parametrize(
    ("stored", "name"),
    [
        ("/usr/bin/python3", "python3"),
        (r"C:\Program Files\x\tool.exe", "tool.exe"),
        ("python3 --api-key=hunter2", "python3"),
        ("VLLM::EngineCore", "VLLM::EngineCore"),
        (None, None),
    ],
)
def test_a_process_is_called_by_its_program_alone(tmp_path: Path, stored: str | None, name: str | None) -> None:
    rows = [
        {"globalPid": GLOBAL, "pid": 100, "name": stored},
        {"globalPid": GLOBAL + (9 << 24), "pid": 109, "name": "a bystander"},
    ]
    info = open_trace(save(tmp_path / "x.sqlite", PROCESSES=rows)).info
    assert [(process.pid, process.name) for process in info.processes] == [(100, name)]


def test_processes_with_calls_alone_are_listed(tmp_path: Path) -> None:
    rows = {CALLS: [call(10, 15), call(11, 12, globalTid=GLOBAL + (3 << 24))]}
    assert [process.pid for process in open_trace(save(tmp_path / "x.sqlite", **rows)).info.processes] == [100, 103]


def test_what_a_capture_says_of_itself_is_bounded_where_it_enters(tmp_path: Path) -> None:
    long = "9" * 900_000
    rows = {
        "META_DATA_EXPORT": [{"name": f"EXPORT_{what}_VERSION", "value": long} for what in ("PRODUCT", "SCHEMA")],
        "TARGET_INFO_GPU": [{"id": 0, "name": long}],
        "PROCESSES": [{"globalPid": GLOBAL, "name": long}],
        "ThreadNames": [{"nameId": 3, "globalTid": GLOBAL | 7}],
        "NVTX_EVENTS": [{"start": 1, "end": 2, "globalTid": GLOBAL | 7, "eventType": 59, "text": long}],
        "TARGET_INFO_SYSTEM_ENV": [{"devStateName": "Local", "name": "NvDriverVersion", "value": long}],
    }
    loaded = open_trace(save(tmp_path / "x.sqlite", **rows))
    info = loaded.info
    found = (info.nsys_version, info.schema_version, info.driver_version, info.gpus[0].name, info.processes[0].name)
    assert [len(text or "") for text in found] == [64, 64, 64, 128, 128]
    assert loaded.nvtx["text"].str.len_chars().to_list() == [1_024]
    assert {note.code for note in loaded.notes} >= {"names-cut"}
