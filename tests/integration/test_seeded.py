"""Regressions seeded into a simulated loop: the first suspect is the seed, and loops that are alike are silent."""

from __future__ import annotations

from functools import cache
from itertools import permutations
from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.delta.suspect import WARM_UP
from bubblefinder.compare.diff import diff
from tests.seeded import EXTEND, HEALTHY, VERIFY, Seed, ranks, report, trace

if TYPE_CHECKING:
    from bubblefinder.report.model import Report

READ = "cudaMemcpyAsync DtoH in sample"
NODE = [
    ("launch shape", Seed(shape=("20x4", "128"), slower="moe_down", factor=1.6), "launch shape", "moe_down"),
    ("kernel swapped", Seed(swapped=("gate_fp32", 9.0)), "another kernel", "gate"),
    ("PDL lost", Seed(pdl=False), "overlap lost", None),
    ("fallen back to eager", Seed(eager=VERIFY.id), "to eager", "verify"),
    ("a new read", Seed(read=True), "new wait", READ),
    ("longer host phase", Seed(work_us=1200), "host work", "prepare_batch"),
    ("collector pauses", Seed(pause_us=9_000), "pause", "prepare_batch"),
    ("a call that stalls", Seed(alloc_us=9_000), "new call", "cudaHostAlloc"),
    ("a kernel added", Seed(added="cast"), "new kernel", "cast"),
    ("a kernel slower", Seed(slower="moe_up", factor=1.5), "same kernel", "moe_up"),
    ("no warm-up", Seed(cold=6), WARM_UP, None),
]
ON_THE_HOST = {"a new read", "longer host phase", "collector pauses", "a call that stalls"}
GRAPH = [case for case in NODE if case[0] in ON_THE_HOST]


@cache
def of(seed: Seed, number: int, *, node_mode: bool = True) -> Report:
    return report(trace(seed, number=number, node_mode=node_mode))


@pytest.mark.parametrize(("seed", "kind", "name"), [case[1:] for case in NODE], ids=[case[0] for case in NODE])
def test_the_first_suspect_is_what_was_seeded(seed: Seed, kind: str, name: str | None) -> None:
    result = diff([of(HEALTHY, 1)], [of(seed, 2)])
    assert result.verdict == "regression"
    first = result.suspects[0]
    assert (first.kind, first.name) == (kind, name)
    assert first.sentence in result.headline
    assert first.remedy
    (delta,) = result.deltas
    assert sum(part.delta_ns for part in delta.parts) + delta.residual_ns == delta.delta_ns
    assert abs(delta.residual_ns) <= 0.05 * abs(delta.delta_ns)


@pytest.mark.parametrize(("seed", "kind", "name"), [case[1:] for case in GRAPH], ids=[case[0] for case in GRAPH])
def test_what_the_host_does_is_seen_in_graph_mode_as_well(seed: Seed, kind: str, name: str | None) -> None:
    result = diff([of(HEALTHY, 1, node_mode=False)], [of(seed, 2, node_mode=False)])
    assert (result.verdict, result.suspects[0].kind, result.suspects[0].name) == ("regression", kind, name)


@pytest.mark.parametrize("early_us", [0.8, 2.0])
def test_lost_overlap_is_told_from_the_tracer_however_short_it_was(early_us: float) -> None:
    """By 1.6 us and more all nodes begin later: no tracer was seen to do that."""
    base, head = of(Seed(early_us=early_us), 1), of(Seed(pdl=False), 2)
    result = diff([base], [head])
    assert (result.verdict, result.suspects[0].kind) == ("regression", "overlap lost")
    assert diff([head], [base]).suspects[0].kind == "overlap gained"


def test_taking_the_seed_out_again_is_an_improvement_by_the_same() -> None:
    result = diff([of(Seed(swapped=("gate_fp32", 9.0)), 2)], [of(HEALTHY, 1)])
    assert result.verdict == "improvement"
    assert (result.suspects[0].kind, result.suspects[0].name) == ("another kernel", "gate_fp32")


def test_a_fall_back_that_the_gpu_hides_changes_nothing() -> None:
    assert diff([of(HEALTHY, 1)], [of(Seed(eager=EXTEND.id), 2)]).verdict == "no change"


def test_the_rank_that_comes_late_is_the_first_suspect() -> None:
    result = diff([report(ranks(number=1))], [report(ranks(late_us=300, number=2))])
    assert result.verdict == "regression"
    first = result.suspects[0]
    assert (first.kind, first.rank) == ("host work", 1)
    assert "on rank 1" in first.sentence


def test_few_stalls_that_leave_the_median_are_a_regression() -> None:
    result = diff([of(HEALTHY, 1)], [of(Seed(alloc_us=12_000), 2)])
    gated = {c.metric: c.status for c in result.changes if c.gated}
    assert (gated["step.duration.mean"], gated["step.duration.p50"]) == ("worse", "same")
    assert result.verdict == "regression"
    assert "The median stays at" in result.headline


BOUND = Seed(work_us=6_000)
STALLS = Seed(work_us=6_000, pause_us=12_000, pause_every=20)


def test_stalls_are_told_however_slow_the_host() -> None:
    base, head = report(trace(BOUND, steps=60, number=1)), report(trace(STALLS, steps=60, number=2))
    result = diff([base], [head])
    assert result.verdict == "regression"
    assert "by 3 steps longer than all of base's. The median stays" in result.headline
    assert (result.suspects[0].kind, result.suspects[0].name) == ("pause", "prepare_batch")
    assert diff([head], [base]).verdict == "improvement"


def test_too_few_steps_without_a_stall_prove_nothing() -> None:
    base, head = report(trace(BOUND, steps=20, number=1)), report(trace(STALLS, steps=60, number=2))
    assert not any(row.stalls for row in diff([base], [head]).changes)


BUSY = Seed(work_us=800)


def test_a_slower_host_is_no_slower_program() -> None:
    result = diff([of(BUSY, 1)], [of(Seed(work_us=800, host_speed=1.9), 2)])
    assert result.verdict == "can't tell"
    assert result.headline.startswith("Can't tell: the host was 1.9 times slower in head")
    assert result.suspects == []
    back = diff([of(Seed(work_us=800, host_speed=1.9), 2)], [of(BUSY, 1)])
    assert back.verdict == "can't tell"


@pytest.mark.parametrize(("hold_us", "every_us"), [(100, 200), (500, 1_000), (1_000, 3_000), (3_000, 3_000)])
@pytest.mark.parametrize("number", [2, 3, 4, 5])
def test_a_thread_that_shares_its_core_is_no_slower_program(hold_us: float, every_us: float, number: int) -> None:
    base = Seed(work_us=2_500)
    shared = of(Seed(work_us=2_500, hold_us=hold_us, hold_every_us=every_us), number)
    for result in (diff([of(base, 1)], [shared]), diff([shared], [of(base, 1)])):
        assert result.speed is not None
        hit = max(result.speed.head_held, result.speed.base_held)
        assert result.verdict == "can't tell" if hit > 1.1 else result.verdict in {"regression", "improvement"}


@pytest.mark.parametrize("work_us", [3_500, 5_000, 10_000])
def test_more_work_beside_it_is_more_work(work_us: float) -> None:
    base = of(Seed(work_us=2_500, hold_us=500, hold_every_us=5_000), 1)
    result = diff([base], [of(Seed(work_us=work_us, hold_us=500, hold_every_us=5_000), 2)])
    assert (result.verdict, result.suspects[0].name) == ("regression", "prepare_batch")


def test_a_program_that_is_far_slower_is_told_from_a_thread_that_was_held_up_half_of_the_time() -> None:
    head = Seed(work_us=12_000, hold_us=500, hold_every_us=500)
    assert diff([of(Seed(work_us=1_000), 1)], [of(head, 2)]).verdict == "regression"


def test_more_work_on_a_slower_host_is_still_more_work() -> None:
    result = diff([of(BUSY, 1)], [of(Seed(work_us=1_400, host_speed=1.3), 2)])
    assert (result.verdict, result.suspects[0].name) == ("regression", "prepare_batch")


def test_a_gpu_of_another_clock_is_no_slower_program() -> None:
    result = diff([of(HEALTHY, 1)], [of(Seed(gpu_speed=1.1), 2)])
    assert result.verdict == "can't tell"
    assert result.speed is not None
    assert result.speed.gpu == pytest.approx(1.1, rel=0.01)


def delayed(ns: int, **more: float | str) -> Seed:
    return Seed(pdl=False, later_ns=ns, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("ns", [20, 40, 60, 90, 150, 355, 490])
def test_a_tracer_that_lets_every_node_begin_later_is_no_slower_program(ns: int) -> None:
    base, head = of(delayed(0), 1), of(delayed(ns), 2)
    for result in (diff([base], [head]), diff([head], [base])):
        assert (result.verdict, result.suspects) == ("no change", [])
        assert {row.status for row in result.changes if row.gated} == {"same"}


def test_one_capture_of_three_that_was_traced_otherwise_changes_nothing() -> None:
    base = [of(delayed(0), 1), of(delayed(0), 2), of(delayed(355), 3)]
    head = [of(delayed(0), number) for number in (4, 5, 6)]
    for result in (diff(base, head), diff(head, base)):
        assert (result.verdict, result.suspects) == ("no change", [])
    slower = [of(delayed(0, slower="moe_up", factor=1.1), number) for number in (4, 5, 6)]
    assert diff(base, slower).verdict == "regression"


@pytest.mark.parametrize("work_us", [100, 600, 700, 2_000])
@pytest.mark.parametrize("read", [False, True])
def test_what_the_tracer_adds_is_left_out_of_a_step_only_as_far_as_the_host_waits(work_us: float, read: bool) -> None:
    base = [of(delayed(0, work_us=work_us, read=read), number) for number in (1, 2, 3)]
    head = [of(delayed(450, work_us=work_us, read=read), number) for number in (4, 5, 6)]
    for one, other in ((base[:1], head[:1]), (head[:1], base[:1]), (base, head), (head, base)):
        assert diff(one, other).verdict == "no change"


def test_what_the_program_does_besides_the_tracer_is_told_by_itself() -> None:
    result = diff([of(delayed(0), 1)], [of(delayed(355, slower="moe_up", factor=1.5), 2)])
    assert result.verdict == "regression"
    first = result.suspects[0]
    assert (first.kind, first.name) == ("same kernel", "moe_up")
    assert first.share == pytest.approx(1, abs=0.05)
    assert "of it the tracer's" in result.headline


def test_more_than_tracing_was_seen_to_do_is_not_told_from_the_program() -> None:
    result = diff([of(delayed(0), 1)], [of(delayed(900), 2)])
    assert result.verdict == "can't tell"
    assert result.headline.startswith("Can't tell: every node of a replay began 900 ns later in head")


@pytest.mark.parametrize("seed", [HEALTHY, BUSY], ids=["bound by the GPU", "bound by the host"])
def test_loops_that_are_alike_are_silent(seed: Seed) -> None:
    alike = [of(seed, number) for number in (1, 2, 3)]
    for base, head in permutations(alike, 2):
        result = diff([base], [head])
        assert (result.verdict, result.suspects) == ("no change", [])
    assert diff(alike, alike[::-1]).verdict == "no change"
