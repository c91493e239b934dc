"""Regressions seeded into a loop whose host scatters: the first suspect is the seed, and what is alike is silent."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.compare.delta.suspect import WARM_UP
from bubblefinder.compare.diff import diff
from tests.noisy import VERIFY, Loop, trace
from tests.seeded import Seed, ranks, report

if TYPE_CHECKING:
    from bubblefinder.compare.model import Diff
    from bubblefinder.report.model import Report

READ = "cudaMemcpyAsync DtoH in sample"
SHAPE = ("40x8", "256")


def seeded(**seed: Any) -> Loop:
    return Loop(Seed(**{"work_us": 220, "pdl": False, **seed}))


NODE = [
    ("another shape", seeded(shape=SHAPE, slower="moe_down", factor=1.18), "launch shape", "moe_down"),
    ("kernel swapped", seeded(swapped=("gate_v2", 5.5)), "another kernel", "gate"),
    ("kernel slower", seeded(slower="attn_decode", factor=1.12), "same kernel", "attn_decode"),
    ("kernel added", seeded(added="transpose"), "new kernel", "transpose"),
    ("more drafts", Loop(drafts=5), "replays", "draft"),
]
BOTH = [
    ("graph given up", seeded(eager=VERIFY.id), "to eager", "verify"),
    ("a new read", seeded(read=True), "new wait", READ),
    ("longer host phase", seeded(work_us=1_600), "host work", "prepare_batch"),
    ("pauses", seeded(pause_us=5_000, pause_every=9), "pause", "prepare_batch"),
    ("a call in each step", Loop(calls=(("cudaFuncSetAttribute_v9000", 1_400),)), "new call", "cudaFuncSetAttribute"),
    ("no warm-up", seeded(cold=9), WARM_UP, None),
    ("a read and a shape", seeded(read=True, shape=SHAPE, slower="moe_down", factor=1.3), "new wait", READ),
    ("a read on a slower GPU", seeded(read=True, gpu_speed=1.03), "new wait", READ),
]
CASES = [pytest.param(*one[1:], True, id=one[0]) for one in [*NODE, *BOTH]]
CASES += [pytest.param(*one[1:], False, id=f"{one[0]}, graph mode") for one in BOTH[:6]]


@pytest.fixture(scope="module")
def healthy() -> dict[bool, Report]:
    return {mode: report(trace(Loop(), number=11, node_mode=mode)) for mode in (True, False)}


def assert_it_adds_up(result: Diff) -> None:
    for delta in result.deltas:
        assert sum(part.delta_ns for part in delta.parts) + delta.residual_ns == delta.delta_ns
        assert sum(one.delta_ns for one in delta.classes) == sum(one.delta_ns for one in delta.roles) == delta.delta_ns
        assert abs(delta.residual_ns) <= 0.05 * abs(delta.delta_ns)


@pytest.mark.parametrize(("loop", "kind", "name", "node_mode"), CASES)
def test_the_first_suspect_is_what_was_seeded(
    loop: Loop, kind: str, name: str | None, node_mode: bool, healthy: dict[bool, Report]
) -> None:
    head = report(trace(loop, number=12, node_mode=node_mode))
    result = diff([healthy[node_mode]], [head])
    assert (result.verdict, result.suspects[0].kind, result.suspects[0].name) == ("regression", kind, name)
    assert result.offsets == []
    assert_it_adds_up(result)
    back = diff([head], [healthy[node_mode]])
    assert back.verdict == "improvement"
    assert_it_adds_up(back)


def test_a_graph_that_fell_back_is_told_whatever_the_others_are_called_then(healthy: dict[bool, Report]) -> None:
    """Without verify nobody can tell draft from extension: both are one part, which is replayed as often as they."""
    for mode in (True, False):
        head = report(trace(seeded(eager=VERIFY.id), number=12, node_mode=mode))
        assert [role.role for role in head.steps.roles] == ["decode"]
        (there,) = diff([healthy[mode]], [head]).suspects
        (back,) = diff([head], [healthy[mode]]).suspects
        assert (there.kind, there.name, back.kind, back.name) == ("to eager", "verify", "to graph", "verify")


def test_what_offsets_itself_is_no_change_and_told(healthy: dict[bool, Report]) -> None:
    head = seeded(shape=("20x4", "128"), slower="moe_down", factor=1.35)
    head.times["attn_decode"] = 8.2
    result = diff([healthy[True]], [report(trace(head, number=12))])
    assert (result.verdict, result.suspects) == ("no change", [])
    worse, better = result.offsets
    assert worse.startswith("moe_down is launched in another shape in verify (20 nodes): grid 80x4 to 20x4: +56.")
    assert better.startswith("attn_decode takes less time in verify (20 nodes): -5")


def test_a_cold_capture_is_no_slower_gpu(healthy: dict[bool, Report]) -> None:
    result = diff([healthy[True]], [report(trace(seeded(cold=4), number=12))])
    assert result.suspects[0].kind == WARM_UP
    assert not any("the GPU was" in warning.lower() for warning in result.warnings)


def test_a_mean_that_two_stalls_moved_is_not_called_within_the_noise() -> None:
    base, head = (
        report(trace(seeded(work_us=2_600, pause_us=us, pause_every=19), number=number))
        for us, number in ((0, 11), (20_000, 12))
    )
    result = diff([base], [head])
    assert (result.verdict, result.offsets) == ("no change", [])
    assert "but the steps in these captures scatter as much: more steps would tell." in result.headline


@pytest.mark.parametrize("work_us", [220, 850, 2_600])
def test_loops_that_are_alike_are_silent(work_us: float) -> None:
    alike = [report(trace(seeded(work_us=work_us), number=number)) for number in (1, 2, 3, 4)]
    for base, head in permutations(alike, 2):
        result = diff([base], [head])
        assert (result.verdict, result.suspects, result.offsets) == ("no change", [], [])
    assert diff(alike[::2], alike[1::2]).verdict == "no change"


@pytest.mark.parametrize(("late", "late_us", "count"), [(0, 700, 2), (1, 150, 2), (2, 400, 3)])
def test_whichever_rank_is_late_is_the_suspect(late: int, late_us: float, count: int) -> None:
    base, head = (report(ranks(late_us=us, late=late, count=count, number=n)) for us, n in ((0, 21), (late_us, 22)))
    result = diff([base], [head])
    first = result.suspects[0]
    assert (result.verdict, first.kind, first.rank) == ("regression", "host work", late)
    assert f"on rank {late}" in first.sentence
