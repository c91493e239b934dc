"""Captures of small PyTorch loops of 40 steps each: what they did is known, and how long a step takes untraced."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest

from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.model import IdleClass
from tests.reference import ledger
from tests.samples import analysis, report, unmarked

SAMPLES = Path(__file__).parents[2] / "sample_traces"
MS = 1_000_000
STEPS = 40


@dataclass(frozen=True, slots=True)
class Known:
    """What a loop did: nodes of its graphs by role, replays of each a step, the rule that names its worst, its step."""

    rule: str
    untraced_ms: float
    nodes: dict[str, int] = field(default_factory=dict)
    replays: dict[str, int] = field(default_factory=dict)
    prefills: int = 0


KNOWN = {
    "torch_adaptive.node": Known("CUDA001", 1.889, {"draft": 22, "verify": 147, "draft-extend": 36}),
    "torch_batches.node": Known("CUDA006", 0.911, {"decode": 147}, {"decode": 1}),
    "torch_prefill.node": Known("CUDA006", 0.936, {"decode": 147}, {"decode": 1}, prefills=4),
    "torch_piecewise.node": Known("CUDA101", 0.943, {"decode": 5}, {"decode": 24}),
    "torch_eager": Known("CUDA102", 0.685),
}
DRAFTS = (1, 4, 3, 2)


@pytest.mark.parametrize("name", KNOWN)
def test_every_step_is_found_and_those_with_prefill_are_told(name: str) -> None:
    found, prefills = report(name).steps, KNOWN[name].prefills
    assert found.confidence == "high"
    assert found.count == STEPS - 2
    assert found.excluded == {"capture_start": 1, "tail": 1} | ({"prefill": prefills} if prefills else {})


@pytest.mark.parametrize("name", KNOWN)
def test_steps_are_the_same_without_nvtx(name: str) -> None:
    bare = unmarked(analysis(name).trace)
    assert find_steps(bare).windows["start_ns"].equals(analysis(name).steps.windows["start_ns"])


@pytest.mark.parametrize("name", KNOWN)
def test_roles_have_their_graphs(name: str) -> None:
    roles = report(name).steps.roles
    assert {role.role: role.nodes for role in roles} == KNOWN[name].nodes
    replays = {role.role: role.replays_per_step for role in roles}
    assert KNOWN[name].replays.items() <= replays.items()


def test_the_drafts_of_an_adaptive_loop_are_counted_step_by_step() -> None:
    replays = analysis("torch_adaptive.node").steps.replays
    drafts = replays.filter(pl.col("role") == "draft").group_by("window_index").len().sort("window_index")["len"]
    assert drafts.to_list() == [DRAFTS[step % len(DRAFTS)] for step in range(STEPS)]


@pytest.mark.parametrize("name", KNOWN)
def test_the_costliest_finding_is_what_the_loop_does(name: str) -> None:
    assert report(name).findings[0].rule == KNOWN[name].rule


@pytest.mark.parametrize("name", KNOWN)
def test_the_untraced_step_lies_in_the_corrected_range(name: str) -> None:
    low, high = report(name).overhead.range_ns or (0, 0)
    assert low < KNOWN[name].untraced_ms * MS < high


@pytest.mark.parametrize("name", ["torch_adaptive.node", "torch_batches.node"])
def test_the_corrected_step_of_a_gpu_kept_busy_is_the_untraced_one(name: str) -> None:
    assert report(name).overhead.corrected_step_ns == pytest.approx(KNOWN[name].untraced_ms * MS, rel=0.025)


@pytest.mark.parametrize("name", ["torch_prefill.node", "torch_eager"])
def test_the_plain_reference_agrees(name: str) -> None:
    timeline = analysis(name).timeline
    length = pl.col("end_ns") - pl.col("start_ns")
    rows = timeline.pieces.group_by("idle_class").agg(length.sum()).rows()
    found = Counter({IdleClass(number).name.lower(): time for number, time in rows})
    assert found + Counter(busy=timeline.devices[0].busy_ns) == ledger(timeline.trace, 0)
