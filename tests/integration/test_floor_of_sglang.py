"""The floor under verify for the configs that the captures of SGLang ran with: random weights, a prompt of 512."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import bubblefinder
from bubblefinder.economics.shapes import load_shape
from bubblefinder.economics.traffic import Load
from bubblefinder.report.economics_build import Question
from tests.unit.economics.test_hub import LING, SMALL

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("read_once")

CONTEXT = 560
"""Tokens half-way through the 120 that were generated behind 512."""


@pytest.mark.parametrize(
    ("capture", "config", "floor_ms", "share"),
    [
        ("fi.graph", LING, 5.28, (0.95, 1.0)),
        ("triton.graph", LING, 5.28, (0.80, 0.85)),
        ("triton_functions.graph", SMALL, 1.03, (0.30, 0.36)),
    ],
)
def test_the_floor_of_verify(
    root: Path, tmp_path: Path, capture: str, config: dict[str, Any], floor_ms: float, share: tuple[float, float]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    load = Load(draft_steps=3, draft_tokens=4, context=CONTEXT)
    question = Question(shape=load_shape(str(tmp_path / "config.json")), load=load)
    path = root / "sample_traces" / "sglang" / f"{capture}.sqlite.xz"
    report = bubblefinder.analyze(path, economics=question)
    assert report.economics is not None
    assert report.economics.floor is not None
    verify = next(role for role in report.economics.floor.roles if role.role == "verify")
    assert verify.floor_ns / 1e6 == pytest.approx(floor_ms, abs=0.01)
    assert verify.achieved_share is not None
    assert share[0] < verify.achieved_share < share[1]
    assert verify.least_ns < verify.floor_ns
