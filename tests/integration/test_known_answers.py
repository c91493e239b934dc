"""What independent programs found in the sample captures, to the nanosecond."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
import pytest

from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.model import CaptureMode, Device, IdleClass, Timeline
from tests import samples
from tests.reference import ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Sample = Callable[[str], Path]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one GPU of a capture, in ns; the inside of graph-mode replays is not measured: null."""

    capture: str
    gpu: int
    span: int
    busy: int
    intra_graph: int | None
    host_late: int
    launching: int
    queued: int
    replays: int
    cycles: int
    step_p50: int


KNOWN = (
    Known("nextn_before.node", 0, 88322618, 63992732, 8736718, 14394116, 1187396, 11656, 30, 10, 8941993),
    Known("nextn_after.node", 0, 73590096, 63941025, 8683438, 564886, 148171, 252576, 30, 10, 7289064),
    Known("nextn_before.graph", 0, 254664984, 208914471, None, 43964403, 1652282, 133828, 90, 30, 8422857),
    Known("nextn_after_pdl.node", 0, 59063082, 51092420, 6779716, 590146, 404351, 196449, 24, 8, 7264202),
    Known("dspark_before.node", 0, 75320439, 64052651, 8669130, 1475888, 907773, 214997, 30, 10, 7480137),
    Known("dspark_after.node", 0, 73428996, 63985912, 8697387, 380132, 127421, 238144, 30, 10, 7295558),
    Known("nextn_before.nsys2023.node", 0, 55933420, 38471406, 1538119, 14895168, 1024926, 3801, 18, 6, 9652301),
    Known("tp2_before.node", 0, 31446187, 22455289, 3051245, 5294266, 642210, 3177, 15, 5, 6404545),
    Known("tp2_before.node", 1, 31730147, 20890421, 3198773, 6723522, 915368, 2063, 15, 5, 6536512),
    Known("tp2_after.graph", 0, 93358191, 92561619, None, 315874, 59708, 420990, 60, 20, 4649735),
    Known("tp2_after.graph", 1, 96857029, 96104423, None, 275036, 65987, 411583, 60, 20, 4651881),
    Known("hard_before.graph", 0, 764892620, 127371880, None, 633457242, 3811788, 251710, 90, 30, 16559065),
    Known("hard_after.graph", 0, 728605473, 127315939, None, 597645348, 3267866, 376320, 90, 30, 14572793),
)
EAGER = Known("eager_item", 0, 82114908, 13586862, None, 42072319, 18407235, 8048492, 0, 6, 0)
# Busy time, replays, cycles and the step's p50; the rest of these was not written down.
REPEATED = {
    "null_host_1.graph": (254727864, 180, 60, 7708445),
    "null_host_2.graph": (254601302, 180, 60, 7548925),
    "null_host_3.graph": (254564688, 180, 60, 7893982),
    "null_gpu_1.graph": (254597865, 180, 60, 4267198),
    "null_gpu_2.graph": (254581276, 180, 60, 4267040),
    "null_gpu_3.graph": (254665238, 180, 60, 4268607),
}


@pytest.fixture(scope="module")
def timeline_of() -> Callable[[str], Timeline]:
    return lambda name: samples.analysis(name).timeline


def device_of(timeline: Timeline, gpu: int) -> Device:
    return next(device for device in timeline.devices if device.gpu == gpu)


def idle(timeline: Timeline, gpu: int) -> Counter[str]:
    length = (pl.col("end_ns") - pl.col("start_ns")).sum()
    rows = timeline.pieces.filter(pl.col("gpu") == gpu).group_by("idle_class").agg(length).rows()
    return Counter({IdleClass(number).name.lower(): time for number, time in rows})


def label(known: Known) -> str:
    return f"{known.capture}, GPU {known.gpu}"


@pytest.mark.parametrize("known", [*KNOWN, EAGER], ids=label)
def test_the_ledger_is_exact(known: Known, timeline_of: Callable[[str], Timeline]) -> None:
    timeline = timeline_of(known.capture)
    device = device_of(timeline, known.gpu)
    assert (device.end_ns - device.start_ns, device.busy_ns, device.replays) == (known.span, known.busy, known.replays)
    found = idle(timeline, known.gpu)
    assert (found["host_late"], found["launching"], found["queued"]) == (known.host_late, known.launching, known.queued)
    assert found["intra_graph"] == (known.intra_graph or 0)
    assert found["profiler"] == found["unrecorded"] == found["unattributed"] == 0
    assert device.launches_seen == device.launches_recorded


@pytest.mark.parametrize("capture", REPEATED)
def test_busy_time_of_the_repeated_captures_is_exact(capture: str, timeline_of: Callable[[str], Timeline]) -> None:
    device = device_of(timeline_of(capture), 0)
    assert (device.busy_ns, device.replays) == REPEATED[capture][:2]


@pytest.mark.parametrize(
    ("capture", "mode"),
    [
        ("nextn_before.node", CaptureMode.NODE),
        ("nextn_before.graph", CaptureMode.GRAPH),
        ("eager_item", CaptureMode.NONE),
        ("dspark_before.nsys2023.graph", CaptureMode.UNSEEN),
        ("nextn_before.nsys2023.node", CaptureMode.NODE),
    ],
)
def test_the_capture_mode_is_told(capture: str, mode: CaptureMode, timeline_of: Callable[[str], Timeline]) -> None:
    assert timeline_of(capture).mode is mode


@pytest.mark.parametrize("capture", ["eager_item", "hard_before.graph", "tp2_after.graph"])
def test_the_plain_reference_agrees_on_real_captures(capture: str, timeline_of: Callable[[str], Timeline]) -> None:
    timeline = timeline_of(capture)
    for device in timeline.devices:
        known = idle(timeline, device.gpu) + Counter(busy=device.busy_ns)
        assert known == ledger(timeline.trace, device.gpu)


# The p50 was taken between the first graphs of the cycles. Cut elsewhere in the seam it moves: by the skew of ranks,
# and where garbage collection makes the steps bimodal.
SPREAD = {"tp2_before.node": 0.015, "hard_after.graph": 0.025}
STEPS = [(k.capture, k.gpu, k.cycles, k.step_p50) for k in KNOWN]
STEPS += [(capture, 0, cycles, p50) for capture, (_, _, cycles, p50) in REPEATED.items()]


@pytest.mark.parametrize(("capture", "gpu", "cycles", "p50"), STEPS)
@pytest.mark.parametrize("nvtx", [True, False], ids=["nvtx", "no nvtx"])
def test_steps_are_found_with_nvtx_and_without(
    capture: str,
    gpu: int,
    cycles: int,
    p50: int,
    nvtx: bool,
    timeline_of: Callable[[str], Timeline],
) -> None:
    timeline = timeline_of(capture)
    if not nvtx:
        timeline = samples.unmarked(timeline.trace)
    windows = find_steps(timeline).windows.filter(pl.col("gpu") == gpu)
    why = windows["excluded"].to_list()
    assert len(windows) - why.count("head") == cycles
    assert why.count("tail") == 1
    assert why.count(None) + why.count("capture_start") == cycles - 1
    decode = windows.filter(pl.col("excluded").is_null())
    length = (decode["end_ns"] - decode["start_ns"]).median()
    assert length == pytest.approx(p50, rel=SPREAD.get(capture, 0.01))


@pytest.mark.parametrize(("capture", "gpu"), [row[:2] for row in STEPS])
def test_without_nvtx_each_step_is_cut_in_the_same_seam(
    capture: str, gpu: int, timeline_of: Callable[[str], Timeline]
) -> None:
    timeline = timeline_of(capture)
    unmarked = samples.unmarked(timeline.trace)
    replays = timeline.replays.filter(pl.col("gpu") == gpu)["start_ns"]
    seams = []
    for found in (find_steps(timeline), find_steps(unmarked)):
        steps = found.windows.filter((pl.col("gpu") == gpu) & (pl.col("excluded").fill_null("") != "head"))
        seams.append([int((replays < start).sum()) for start in steps["start_ns"]])
    assert seams[0] == seams[1]


@pytest.mark.parametrize("nvtx", [True, False], ids=["nvtx", "no nvtx"])
def test_an_eager_program_has_its_steps(nvtx: bool, timeline_of: Callable[[str], Timeline]) -> None:
    timeline = timeline_of("eager_item")
    if not nvtx:
        timeline = samples.unmarked(timeline.trace)
    steps = find_steps(timeline)
    assert steps.method == ("nvtx" if nvtx else "sequence")
    assert len(steps.windows.filter(pl.col("excluded").fill_null("") != "head")) == 6


def test_a_first_cycle_that_stands_out_is_capture_start(timeline_of: Callable[[str], Timeline]) -> None:
    for capture, gpu in (("tp2_after.graph", 1), ("nextn_after_pdl.node", 0)):
        windows = find_steps(timeline_of(capture)).windows.filter(pl.col("gpu") == gpu)
        assert windows["excluded"].to_list().count("capture_start") == 1


@pytest.mark.parametrize("capture", [k.capture for k in KNOWN if k.gpu == 0])
def test_windows_tile_the_span_of_their_gpu(capture: str, timeline_of: Callable[[str], Timeline]) -> None:
    timeline = timeline_of(capture)
    for (gpu, _), windows in find_steps(timeline).windows.group_by("gpu", "process", maintain_order=True):
        device = device_of(timeline, int(str(gpu)))
        assert [device.start_ns, *windows["end_ns"]] == [*windows["start_ns"], device.end_ns]


def test_draft_verify_and_extend_are_told_apart(timeline_of: Callable[[str], Timeline]) -> None:
    roles = find_steps(timeline_of("nextn_before.node")).replays["role"]
    assert roles.to_list() == ["draft", "verify", "draft-extend"] * 10


SAME = [
    ("dspark_before.node", "dspark_before.node_pqtdir"),
    ("nextn_before.nsys2023.node", "nextn_before.nsys2023.node_arwdir"),
]


@pytest.mark.parametrize(("sqlite", "folder"), SAME)
def test_folders_hold_the_same_capture_as_the_database(
    sqlite: str, folder: str, timeline_of: Callable[[str], Timeline]
) -> None:
    one, other = timeline_of(sqlite), timeline_of(folder)
    assert one.pieces.equals(other.pieces)
    assert one.operations.equals(other.operations)
    assert one.trace.nvtx.equals(other.trace.nvtx)
