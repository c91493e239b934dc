"""Regressions seeded into a real loop on an H200: the first suspect is the seed, and what is alike is silent."""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.diff import diff
from bubblefinder.report.build import Options, report_of
from tests import samples

if TYPE_CHECKING:
    from bubblefinder.compare.model import Diff
    from bubblefinder.report.model import Report

MOE_DOWN, MOE_UP = "moe_down_kernel", "moe_gate_up_kernel"
READ = "cudaStreamSynchronize DtoH in decode_step"
SEEDS = [
    ("base_2.node", "grid.node", "launch shape", MOE_DOWN),
    ("base_2.node", "warps.node", "launch shape", MOE_UP),
    ("base_2.node", "gate_fp32.node", "new kernel", "sgemm"),
    ("base_2.node", "eager.node", "to eager", "verify"),
    ("base_2.node", "read.node", "new wait", READ),
    ("base_2.node", "host.node", "host work", "prepare_batch"),
    ("base_2.node", "gc.node", "pause", "prepare_batch"),
    ("base_1.graph", "read.graph", "new wait", READ),
    ("base_1.graph", "host.graph", "host work", "prepare_batch"),
    ("base_1.graph", "gc.graph", "pause", "prepare_batch"),
]
ALIKE = [f"base_{number}.node" for number in range(2, 7)]
OTHERWISE = "base_1.node"
"""The capture in which every node of a replay began a third of a microsecond sooner."""
ITS_NOTE = "Every node of a replay began 3"


@cache
def of(name: str) -> Report:
    return report_of(samples.analysis(f"seeded/{name}"), Options(launch_shapes=True))


def compared(base: str, head: str) -> Diff:
    return diff([of(base)], [of(head)])


def assert_it_adds_up(result: Diff) -> None:
    (delta,) = result.deltas
    assert sum(part.delta_ns for part in delta.parts) + delta.residual_ns == delta.delta_ns
    assert sum(one.delta_ns for one in delta.classes) == sum(one.delta_ns for one in delta.roles) == delta.delta_ns
    assert abs(delta.residual_ns) <= 0.05 * abs(delta.delta_ns)


@pytest.mark.parametrize(("base", "head", "kind", "name"), SEEDS, ids=[seed[1] for seed in SEEDS])
def test_the_first_suspect_is_what_was_seeded(base: str, head: str, kind: str, name: str) -> None:
    result = compared(base, head)
    assert (result.verdict, result.suspects[0].kind) == ("regression", kind)
    assert name in str(result.suspects[0].name)
    assert_it_adds_up(result)
    back = compared(head, base)
    assert back.verdict == "improvement"
    assert_it_adds_up(back)


def test_overlap_that_tiny_kernels_lost_is_the_whole_of_a_longer_step() -> None:
    """The same loop launched with and without PDL; 17 short kernels a layer may begin early."""
    lost, gained = compared("tiny.node", "tiny_pdl_lost.node"), compared("tiny_pdl_lost.node", "tiny.node")
    assert (lost.verdict, gained.verdict) == ("regression", "improvement")
    for result, kind in ((lost, "overlap lost"), (gained, "overlap gained")):
        first = result.suspects[0]
        assert (first.kind, first.confidence) == (kind, "high")
        assert "(272 nodes)" in result.headline
        assert_it_adds_up(result)
        (delta,) = result.deltas
        overlap = sum(part.delta_ns for part in delta.parts if part.kind == kind)
        assert overlap == pytest.approx(delta.delta_ns, rel=0.05)
    assert "programmatic dependent launch" in lost.headline


def test_tracing_costs_a_kernel_that_overlaps_less_and_the_correction_knows_it() -> None:
    """Traced the two differ by 0.202 ms, untraced by 0.151: 2.542 and 2.693 ms."""
    corrected = [of(name).overhead.corrected_step_ns or 0 for name in ("tiny.node", "tiny_pdl_lost.node")]
    assert corrected == [pytest.approx(2.542e6, rel=0.01), pytest.approx(2.693e6, rel=0.01)]
    assert corrected[1] - corrected[0] == pytest.approx(0.151e6, rel=0.15)


@pytest.mark.parametrize(("base", "head"), [("host.node", "host_slow.node"), ("base_2.node", "base_slow.node")])
def test_a_busy_process_on_every_core_is_no_slower_program(base: str, head: str) -> None:
    for result in (compared(base, head), compared(head, base)):
        assert result.verdict == "can't tell"
        assert "the thread that launches was held up" in result.headline


@pytest.mark.parametrize(("base", "head"), [("base_2.node", "pdl_lost.node"), ("base_2.node", "unfused.node")])
def test_what_moves_the_untraced_step_by_less_than_the_noise_is_no_change(base: str, head: str) -> None:
    assert (compared(base, head).verdict, compared(head, base).verdict) == ("no change", "no change")


def test_a_capture_that_began_cold_is_told_and_its_first_step_left_out() -> None:
    for base, head in (("warm.node", "cold.node"), ("cold.node", "warm.node")):
        result = compared(base, head)
        assert result.verdict == "no change"
        (told,) = result.warnings
        assert told.startswith("The first step of cold.node.sqlite.xz took 201 ms, others 2.57 ms: it is left out.")


@pytest.mark.parametrize("names", [ALIKE, [f"base_{number}.graph" for number in (1, 2, 3)]], ids=["node", "graph"])
def test_processes_that_are_alike_are_silent_in_both_directions(names: list[str]) -> None:
    for base, head in permutations(names, 2):
        result = compared(base, head)
        assert (result.verdict, result.suspects, result.warnings) == ("no change", [], [])


def test_three_against_three_other_processes_are_silent_in_both_directions() -> None:
    names = {OTHERWISE, *ALIKE}
    for side in combinations(sorted(names), 3):
        result = diff([of(name) for name in side], [of(name) for name in sorted(names - set(side))])
        assert (result.verdict, result.suspects) == ("no change", [])
        assert all(note.startswith("Every node of a replay began 1") for note in result.warnings)


@pytest.mark.parametrize("other", ALIKE)
def test_nodes_that_all_begin_later_are_the_tracers_and_left_out(other: str) -> None:
    for base, head, word in ((OTHERWISE, other, "later"), (other, OTHERWISE, "sooner")):
        result = compared(base, head)
        assert (result.verdict, result.suspects, result.kernels) == ("no change", [], [])
        assert {row.status for row in result.changes} <= {"same", "changed"}
        assert {one.status for one in result.findings} <= {"same", "unknown"}
        (note,) = result.warnings
        assert note.startswith(ITS_NOTE)
        assert f"{word} in head" in note
        (delta,) = result.deltas
        gaps = sum(part.delta_ns for part in delta.parts if part.kind == "node gaps")
        assert gaps == pytest.approx(delta.delta_ns, rel=0.05)
        assert_it_adds_up(result)


def test_overlap_that_was_lost_besides_can_not_be_told_from_it() -> None:
    assert compared(OTHERWISE, "pdl_lost.node").verdict == "can't tell"


@pytest.mark.parametrize(("head", "kind", "name"), [seed[1:] for seed in SEEDS[:7]], ids=[s[1] for s in SEEDS[:7]])
def test_a_seed_on_top_of_nodes_that_begin_later_is_still_the_first_suspect(head: str, kind: str, name: str) -> None:
    result = compared(OTHERWISE, head)
    assert (result.verdict, result.suspects[0].kind) == ("regression", kind)
    assert name in str(result.suspects[0].name)
    assert_it_adds_up(result)


def test_a_kernel_is_judged_by_what_it_adds_and_not_by_what_it_waits_inside() -> None:
    lost = compared("base_2.node", "pdl_lost.node")
    assert lost.kernels == []
    (waits,) = {k.name for k in compared("base_2.node", "warps.node").kernels}
    assert waits == MOE_UP


def test_nothing_is_better_in_a_longer_step_because_the_gpu_is_busier() -> None:
    result = compared("base_2.node", "warps.node")
    assert "better" not in {row.status for row in result.changes}


def test_the_same_program_on_another_machine_is_no_slower_program() -> None:
    for base, head in (("base_2.node", "base_other.node"), ("base_other.node", "base_2.node")):
        result = compared(base, head)
        assert (result.verdict, result.suspects, result.warnings) == ("no change", [], [])
    slower, faster = compared("host_other.node", "host.node"), compared("host.node", "host_other.node")
    assert slower.headline.startswith("Can't tell: the host was 1.5 times slower in head on the 7 kinds of calls")
    assert faster.headline.startswith("Can't tell: the host was 1.5 times faster in head on the 7 kinds of calls")
    seeded = compared("base_other.node", "host.node")
    assert (seeded.verdict, seeded.suspects[0].name) == ("regression", "prepare_batch")


def test_a_slower_rank_is_told_from_the_one_that_waits_for_it() -> None:
    result = compared("tp2_base.node", "tp2_slowrank.node")
    assert result.verdict == "regression"
    first, second = result.suspects[:2]
    assert (first.kind, first.name) == ("host work", "prepare_batch")
    assert "on rank 1" in result.headline
    assert "AllReduce" in str(second.name)
    assert compared("tp2_slowrank.node", "tp2_base.node").verdict == "improvement"
    for delta in result.deltas:
        assert sum(part.delta_ns for part in delta.parts) + delta.residual_ns == delta.delta_ns
        assert abs(delta.residual_ns) <= 0.05 * abs(delta.delta_ns)


def test_a_host_that_keeps_its_own_gpu_fed_is_not_fine_where_another_rank_is_late() -> None:
    late, healthy = of("tp2_slowrank.node").verdict, of("tp2_base.node").verdict
    assert late is not None
    assert late.blame.startswith("First to fix: GPU 1 reaches ncclDevKernel_AllReduce")
    assert healthy is not None
    assert healthy.blame.startswith("The host is fine")
