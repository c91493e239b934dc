from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from bubblefinder.errors import CannotAnswerError
from bubblefinder.timeline.build import build_timeline
from bubblefinder.trace.open import open_trace
from tests.unit.trace.rows import DEVICES, GLOBAL, GRAPHS, KERNELS, PID, device, kernel, operation, save

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.trace.model import Trace

HOST_FIRST = 0x7FFF_FFFF
GPU = {"vmId": 0, "name": "NVIDIA H200"}


def counts(trace: Trace) -> dict[str, int | None]:
    return {note.code: note.count for note in trace.notes}


def test_a_device_number_is_looked_up_for_its_process(tmp_path: Path) -> None:
    other = GLOBAL + (1 << 24)
    rows = {
        KERNELS: [kernel(20, 30), kernel(21, 31, globalPid=other), kernel(22, 32, globalPid=other, deviceId=1)],
        DEVICES: [device(gpu=3), device(gpu=1, pid=PID + 1), device(gpu=0, cuda=1, pid=PID + 1)],
    }
    loaded = open_trace(save(tmp_path / "x.sqlite", **rows))
    assert loaded.operations.select("device", "gpu").rows() == [(1, 0), (0, 1), (0, 3)]
    assert "gpu-assumed" not in counts(loaded)


@pytest.mark.parametrize(("gpus", "level"), [(1, "info"), (2, "warn")])
def test_without_the_table_device_numbers_are_taken_and_that_is_said(tmp_path: Path, gpus: int, level: str) -> None:
    listed = [GPU | {"id": number} for number in range(gpus)]
    loaded = open_trace(save(tmp_path / "x.sqlite", schema="3.11", TARGET_INFO_GPU=listed))
    assert loaded.operations["gpu"].to_list() == [0]
    assert [(note.level, note.count) for note in loaded.notes if note.code == "gpu-assumed"] == [(level, 1)]


def test_an_entry_without_an_index_is_matched_by_unique_id(tmp_path: Path) -> None:
    listed = [GPU | {"id": 4, "uuid": "GPU-a"}, GPU | {"id": 5, "uuid": "GPU-b"}]
    loaded = open_trace(
        save(tmp_path / "x.sqlite", TARGET_INFO_GPU=listed, **{DEVICES: [device(gpu=None, uuid="GPU-b")]})
    )
    assert loaded.operations["gpu"].to_list() == [5]
    assert counts(loaded)["gpus-unused"] == 1


def test_a_graph_that_begins_on_the_host_is_placed_by_its_process(tmp_path: Path) -> None:
    rows = {
        KERNELS: [kernel(20, 30, deviceId=2)],
        GRAPHS: [operation(40, 50, deviceId=HOST_FIRST, contextId=HOST_FIRST, graphId=1, graphExecId=1)],
        DEVICES: [device(gpu=6, cuda=2)],
    }
    loaded = open_trace(save(tmp_path / "x.sqlite", **rows))
    assert loaded.operations.select("device", "gpu").rows() == [(2, 6), (2, 6)]


def test_one_that_could_be_on_either_device_is_left_out_and_counted(tmp_path: Path) -> None:
    rows = {
        KERNELS: [kernel(20, 30), kernel(21, 31, deviceId=1)],
        GRAPHS: [operation(40, 50, deviceId=HOST_FIRST, contextId=HOST_FIRST, graphId=1, graphExecId=1)],
    }
    loaded = open_trace(save(tmp_path / "x.sqlite", **rows))
    assert loaded.operations.height == 2
    assert counts(loaded)["device-unknown"] == 1


def test_gpu_work_on_no_known_device_is_no_answer(tmp_path: Path) -> None:
    rows = {KERNELS: [], GRAPHS: [operation(4, 5, deviceId=HOST_FIRST, contextId=HOST_FIRST, graphId=1, graphExecId=1)]}
    with pytest.raises(CannotAnswerError, match="on no device"):
        open_trace(save(tmp_path / "x.sqlite", **rows))


def test_a_capture_without_gpu_work_loads_empty(tmp_path: Path) -> None:
    loaded = open_trace(save(tmp_path / "x.sqlite", **{KERNELS: []}))
    assert loaded.operations.is_empty()
    assert loaded.calls.height == 1
    assert loaded.info.gpus == ()


def test_processes_that_share_an_id_get_a_gpu_each_and_that_is_said(tmp_path: Path) -> None:
    other = GLOBAL + (1 << 48)
    rows = {
        KERNELS: [kernel(20, 30), kernel(21, 31, globalPid=other)],
        DEVICES: [device(gpu=0, uuid="GPU-a"), device(gpu=1, uuid="GPU-b")],
    }
    loaded = open_trace(save(tmp_path / "x.sqlite", **rows))
    assert loaded.operations["gpu"].to_list() == [0, 1]
    assert counts(loaded)["gpu-ambiguous"] == 2


def test_slices_of_one_gpu_are_said(tmp_path: Path) -> None:
    other = GLOBAL + (1 << 24)
    rows = {
        KERNELS: [kernel(20, 30), kernel(21, 31, globalPid=other)],
        DEVICES: [device(gpu=0, uuid="MIG-a"), device(gpu=0, pid=PID + 1, uuid="MIG-b")],
    }
    loaded = open_trace(save(tmp_path / "x.sqlite", **rows))
    assert loaded.operations["gpu"].to_list() == [0, 0]
    assert counts(loaded)["gpu-sliced"] == 1


@pytest.mark.parametrize(("gpus", "entries", "said"), [(2, 1, True), (1, 1, False), (2, 2, False), (8, 1, True)])
def test_one_entry_for_processes_that_share_an_id_may_be_one_of_theirs_alone(
    tmp_path: Path, gpus: int, entries: int, said: bool
) -> None:
    other = GLOBAL + (1 << 48)
    rows = {
        KERNELS: [kernel(20, 30), kernel(21, 31, globalPid=other)],
        DEVICES: [device(gpu=0, uuid=f"GPU-{number}") for number in range(entries)],
        "TARGET_INFO_GPU": [GPU | {"id": number} for number in range(gpus)],
    }
    loaded = open_trace(save(tmp_path / "x.sqlite", **rows))
    assert loaded.operations["gpu"].to_list() == [0, 0]
    assert counts(loaded).get("gpu-ambiguous") == (2 if said else None)


def test_containers_that_number_their_devices_apart_are_told_apart(tmp_path: Path) -> None:
    other = GLOBAL + (1 << 48)
    rows = {
        KERNELS: [kernel(20, 30), kernel(21, 31, globalPid=other, deviceId=1)],
        DEVICES: [device(gpu=0), device(gpu=0), device(gpu=1, cuda=1), device(gpu=1, cuda=1)],
        "TARGET_INFO_GPU": [GPU | {"id": number} for number in range(2)],
    }
    loaded = open_trace(save(tmp_path / "x.sqlite", **rows))
    assert loaded.operations["gpu"].to_list() == [0, 1]
    assert "gpu-ambiguous" not in counts(loaded)


@pytest.mark.parametrize("processes", [1, 2, 3])
def test_slices_are_told_by_the_name_of_their_gpu_too(tmp_path: Path, processes: int) -> None:
    rows = {
        KERNELS: [kernel(20 + number, 30 + number, globalPid=GLOBAL + (number << 24)) for number in range(processes)],
        DEVICES: [device(gpu=0, pid=PID + number) for number in range(processes)],
        "TARGET_INFO_GPU": [GPU | {"id": 0, "name": "NVIDIA H200 MIG 1g.18gb"}],
    }
    loaded = open_trace(save(tmp_path / "x.sqlite", **rows))
    assert counts(loaded).get("gpu-sliced") == (1 if processes > 1 else None)


@pytest.mark.parametrize("at_work", [1, 17_570])
def test_as_many_gpus_as_a_hostile_capture_lists_are_read_in_time_and_told_in_a_line(
    tmp_path: Path, at_work: int
) -> None:
    rows = {
        KERNELS: [kernel(20 + 2 * turn, 21 + 2 * turn, globalPid=GLOBAL + (turn << 24)) for turn in range(at_work)],
        DEVICES: [device(gpu=number, pid=PID + number, uuid=f"GPU-{number}") for number in range(17_570)],
    }
    listed = [GPU | {"id": number, "uuid": f"GPU-{number}"} for number in range(17_570)]
    path = save(tmp_path / "x.sqlite", TARGET_INFO_GPU=listed, **rows)
    begun = time.process_time()
    loaded = open_trace(path)
    assert time.process_time() - begun < 8
    assert loaded.operations["gpu"].to_list() == list(range(at_work))
    assert all(len(note.message) < 300 for note in loaded.notes)
    if at_work > 1:
        with pytest.raises(CannotAnswerError, match="17,570 ranks"):
            build_timeline(loaded)
    else:
        assert counts(loaded)["gpus-unused"] == 17_569
        assert len(build_timeline(loaded).devices) == 1
