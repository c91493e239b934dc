from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from bubblefinder.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("read_once")

LOOP = ("--model", "sample-loop", "--draft-steps", "3", "--draft-tokens", "4")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["floor", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def found(sample: Callable[[str], Path]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run(str(sample("nextn_after.node")), *LOOP, "--json"))
    return document


def test_the_floor_of_the_loop_s_verify_over_its_own_length(found: dict[str, Any]) -> None:
    verify = next(role for role in found["roles"] if role["role"] == "verify")
    assert found["bandwidth"] == 4_814_304_000_000
    assert found["bandwidth_source"] == "capture"
    assert verify["bytes"] == pytest.approx(5.394e9, rel=1e-3)
    assert verify["floor_ns"] == pytest.approx(1.120e6, rel=1e-3)
    assert verify["length_ns"] == pytest.approx(6.61e6, rel=5e-3)
    assert verify["achieved_share"] == pytest.approx(0.169, abs=0.001)


def test_the_waterfall_of_a_capture_sums_to_its_mean_step(found: dict[str, Any]) -> None:
    assert sum(found["waterfall_ns"].values()) == pytest.approx(found["step_ns"], abs=10)


def test_a_graph_capture_has_no_time_inside_graphs(sample: Callable[[str], Path]) -> None:
    document = json.loads(run(str(sample("nextn_before.graph")), *LOOP, "--json"))
    assert document["waterfall_ns"]["intra_graph"] is None
    assert sum(value or 0 for value in document["waterfall_ns"].values()) == pytest.approx(document["step_ns"], abs=10)


def test_words_say_that_no_counter_was_read(sample: Callable[[str], Path]) -> None:
    said = run(str(sample("nextn_after.node")), *LOOP)
    assert said.startswith("A step of sample-loop moves at least 6.286 GB: 1.31 ms at 4,814 GB/s")
    assert "no counter was read" in said


def test_another_load_than_the_one_that_ran_is_found_out(sample: Callable[[str], Path]) -> None:
    said = run(str(sample("nextn_after.node")), *LOOP, "--batch", "16", "--bandwidth", "2000")
    assert "took less time than the floor: another model ran" in said


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (("--model", "nothing"), 2, "no model shape is called 'nothing'"),
        (("--model", "sample-loop", "--gpu", "7"), 3, "GPU or process asked for"),
    ],
)
def test_what_can_t_be_told(sample: Callable[[str], Path], arguments: tuple[str, ...], code: int, reason: str) -> None:
    result = CliRunner().invoke(app, ["floor", str(sample("nextn_after.node")), *arguments])
    assert reason in str(result.exception)
    assert getattr(result.exception, "exit_code", None) == code
