from __future__ import annotations

import json

import pytest

from bubblefinder.economics.floor import floor_of
from bubblefinder.economics.hardware import Bandwidth, bandwidth_of
from bubblefinder.economics.shapes import load_shape
from bubblefinder.economics.traffic import Load
from bubblefinder.errors import CannotAnswerError
from bubblefinder.render.formats import render

LOOP = load_shape("sample-loop")
LOAD = Load(draft_steps=3, draft_tokens=4)
H200 = bandwidth_of("NVIDIA H200", 4_814_304_000_000)
MEANS: dict[str, float | None] = {
    "duration": 7.29e6, "busy": 6.4e6, "intra_graph": 0.87e6, "host_late": 0.02e6, "launching": 0.0, "queued": 0.0,
    "unattributed": 0.0, "unrecorded": 0.0, "profiler": 0.0,
}  # fmt: skip


def test_the_capture_s_bandwidth_comes_before_the_datasheet_s_and_a_given_one_before_both() -> None:
    assert (H200.bytes_per_second, H200.source) == (4.814304e12, "capture")
    assert H200.ridge == pytest.approx(205, abs=1)
    stated = bandwidth_of("NVIDIA H200", None)
    assert (stated.bytes_per_second, stated.source, stated.achievable) == (4.8e12, "datasheet", 0.9)
    assert stated.ridge == pytest.approx(206, abs=1)
    assert bandwidth_of("Something", 1, 273e9) == Bandwidth(bytes_per_second=273e9, source="given")
    with pytest.raises(CannotAnswerError, match="not known"):
        bandwidth_of("Something", None)


def test_a_role_s_floor_is_its_bytes_over_the_bandwidth() -> None:
    floor = floor_of(LOOP, LOAD, H200, {"verify": 6.61e6}, MEANS)
    draft, verify, _ = floor.roles
    assert verify.floor_ns == pytest.approx(verify.traffic.total / 4814.304)
    assert verify.achieved_share == pytest.approx(verify.floor_ns / 6.61e6)
    assert verify.effective_bandwidth == pytest.approx(verify.traffic.total / 6.61e-3)
    assert verify.least_ns < verify.floor_ns
    assert draft.length_ns is None
    assert draft.achieved_share is None


def test_the_waterfall_sums_to_the_step() -> None:
    floor = floor_of(LOOP, LOAD, H200, {}, MEANS)
    assert floor.waterfall is not None
    assert sum(value or 0 for value in floor.waterfall.values()) == pytest.approx(7.29e6)
    assert floor.achieved_share == pytest.approx(floor.floor_ns / 7.29e6)


def test_no_step_leaves_only_the_floor() -> None:
    floor = floor_of(LOOP, LOAD, H200, {}, {})
    assert (floor.step_ns, floor.achieved_share, floor.effective_bandwidth, floor.waterfall) == (None, None, None, None)


def test_a_role_faster_than_its_floor_is_called_impossible() -> None:
    floor = floor_of(LOOP, LOAD, H200, {"verify": 1e6, "draft": 1e6}, MEANS | {"busy": 1e5})
    assert floor.impossible == ("verify",)
    assert floor.waterfall is None


def test_many_tokens_come_near_the_ridge() -> None:
    shape = load_shape("ling-3.0-flash")
    assert floor_of(shape, Load(batch=1), H200, {}, {}).bound_by_arithmetic == ()
    assert floor_of(shape, Load(batch=4000), H200, {}, {}).bound_by_arithmetic == ("decode",)


def test_the_document_has_floor_bytes_and_shares_by_role() -> None:
    document = json.loads(render("floor", floor_of(LOOP, LOAD, H200, {"verify": 6.61e6}, MEANS), "json"))
    assert document["schema"] == "bubblefinder.floor/1"
    assert {"floor_ns", "bytes", "effective_bandwidth", "achieved_share", "roles", "waterfall_ns"} <= set(document)
    assert document["bytes"] == sum(role["bytes"] for role in document["roles"])
    assert document["roles"][1]["length_ns"] == 6_610_000
