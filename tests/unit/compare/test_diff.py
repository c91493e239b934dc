"""Verdicts on reports whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.compare.changes import Evidence, changes
from bubblefinder.compare.diff import GATES, Options, diff, failed
from bubblefinder.compare.noise import Floors, Setting
from bubblefinder.errors import UsageError
from bubblefinder.render.formats import render
from bubblefinder.report.found import Quantiles, Site
from bubblefinder.report.ledgers import stats
from bubblefinder.trace.model import QualityNote
from tests.unit.compare.builders import (
    MS,
    US,
    a_benign,
    a_finding,
    a_kernel,
    a_report,
    with_kernels,
    with_rows,
    with_steps,
    with_trace,
)

if TYPE_CHECKING:
    from bubblefinder.compare.model import Change, Diff
    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import Report


def change(result: Diff, metric: str, **where: object) -> Change:
    return next(c for c in result.changes if c.metric == metric and c.where == (where or {"rank": 0}))


def test_a_report_against_itself_is_no_change() -> None:
    report = a_report(findings=[a_finding()])
    result = diff([report], [report])
    assert result.verdict == "no change"
    assert {c.status for c in result.changes} == {"same", "unknown"}
    assert [c.status for c in result.findings] == ["same"]
    assert result.kernels == []


@pytest.mark.parametrize("steps", [(20, 30), (200, 300), (30, 20)])
def test_the_number_of_steps_is_no_change(steps: tuple[int, int]) -> None:
    result = diff([a_report(steps=steps[0], seed=1)], [a_report(steps=steps[1], seed=2)])
    assert result.verdict == "no change"


def test_a_slower_step_over_fewer_steps_is_a_regression() -> None:
    result = diff([a_report(steps=200)], [a_report(steps=120, host_late=450 * US, seed=2)])
    assert result.verdict == "regression"
    assert failed(result)
    assert change(result, "step.host_late.p50").status == "worse"
    assert change(result, "step.busy.p50").status == "same"


def test_steps_bound_by_the_gpu_are_held_to_one_percent() -> None:
    base = a_report(jitter=0.0002)
    assert diff([base], [a_report(busy=6_040_000, jitter=0.0002)]).verdict == "no change"
    assert diff([base], [a_report(busy=6_120_000, jitter=0.0002)]).verdict == "regression"


def test_steps_bound_by_the_host_are_held_to_ten_percent() -> None:
    base = a_report(host_late=3 * MS)
    assert diff([base], [a_report(host_late=3_800_000)]).verdict == "no change"
    assert diff([base], [a_report(host_late=4_200_000)]).verdict == "regression"
    assert diff([base], [a_report(host_late=3_800_000)], Options(floors=Floors(host=0.05))).verdict == "regression"


def a_slow_host(bubble: float = 10.0 * MS, **more: Any) -> Finding:
    return a_finding("CUDA101", title="Slow host", site=Site(), bubble=bubble, recoverable_ns=None, **more)


def test_idle_time_that_passes_from_a_wait_to_the_slow_host_behind_it_is_not_new() -> None:
    read = a_report(host_late=12 * MS, findings=[a_finding(bubble=12.0 * MS)])
    late = a_report(host_late=10 * MS, findings=[a_slow_host()])
    there, back = diff([read], [late]), diff([late], [read])
    assert {f.base.title or f.head.title: (f.status, f.delta_ns is None) for f in there.findings} == {
        "A blocking read": ("gone", False),
        "Slow host": ("unknown", True),
    }
    assert [f.status for f in back.findings] == ["new", "unknown"]


def test_idle_time_that_came_or_went_is_new_or_gone() -> None:
    quick, late = a_report(), a_report(host_late=10 * MS, findings=[a_slow_host()])
    assert [f.status for f in diff([quick], [late]).findings] == ["new"]
    assert [f.status for f in diff([late], [quick]).findings] == ["gone"]


def test_a_finding_that_is_not_about_idle_time_comes_and_goes_by_itself() -> None:
    slow_kernels = a_finding("CUDA153", site=Site(), bubble_ns=Quantiles(p50=None, p95=None), recoverable_ns=None)
    assert [f.status for f in diff([a_report()], [a_report(findings=[slow_kernels])]).findings] == ["new"]


def test_with_inter_only_nothing_is_said_about_the_inside_of_graphs() -> None:
    inside = a_finding("CUDA151", site=Site(role="verify"))
    node, graph = a_report(findings=[inside, a_finding()]), a_report(mode="graph", intra_graph=None)
    result = diff([node], [graph], Options(inter_only=True))
    assert [f.site.api for f in result.findings] == ["cudaMemcpyAsync"]


def test_idle_time_of_few_steps_is_not_told_as_that_of_every_step() -> None:
    report = a_report(host_late=10 * MS, findings=[a_slow_host(107.0 * MS, steps_affected=3, per_step_count=None)])
    assert "107 ms in each of 3 steps" in str(render("diff", diff([a_report()], [report]), "text"))


def test_a_tail_that_moved_against_the_step_is_told() -> None:
    def with_stalls(report: Report, stall: int) -> Report:
        rows = [
            replace(r, host_late_ns=(r.host_late_ns or 0) + stall, duration_ns=r.duration_ns + stall)
            if r.index < 2
            else r
            for r in report.steps.rows
        ]
        return with_rows(report, rows)

    base = with_stalls(a_report(host_late=3 * MS), 90 * MS)
    better = a_report(host_late=1 * MS, seed=2)
    told = diff([base], [with_stalls(better, 99 * MS)])
    assert told.verdict == "improvement"
    assert "The tail moved the other way: p95 is " in told.headline
    assert "The tail" not in diff([base], [with_stalls(better, 91 * MS)]).headline


def test_a_rank_that_is_gone_agrees_with_nothing() -> None:
    fewer = diff([a_report(ranks=2)], [a_report(busy=9 * MS)])
    assert fewer.verdict == "regression"
    assert "agree" not in fewer.headline
    assert "1 other gated metric agrees" in diff([a_report(ranks=2)], [a_report(ranks=2, busy=9 * MS)]).headline


def test_one_capture_a_side_is_low_confidence_and_several_are_not() -> None:
    base = [a_report(seed=n) for n in range(3)]
    head = [a_report(seed=n) for n in range(3, 6)]
    assert diff(base[:1], head[:1]).confidence == "low"
    assert diff(base[:2], head[:2]).confidence == "medium"
    assert diff(base, head).confidence == "high"


def test_the_spread_of_several_captures_replaces_the_floor() -> None:
    steady = [a_report(host_late=late, seed=n) for n, late in enumerate((3_000_000, 3_020_000, 2_990_000))]
    better = [a_report(host_late=late, seed=n) for n, late in enumerate((2_380_000, 2_400_000, 2_410_000))]
    assert diff(steady[:1], better[:1]).verdict == "no change"
    assert diff(steady, better).verdict == "improvement"


def test_captures_that_lie_far_apart_raise_no_alarm() -> None:
    apart = [a_report(host_late=late, seed=n) for n, late in enumerate((1_900_000, 3_900_000, 3_400_000))]
    result = diff(apart[:2], [apart[2], a_report(host_late=3_700_000)])
    assert result.verdict == "no change"


def test_a_read_that_came_explains_a_difference_below_the_floor() -> None:
    base = a_report(host_late=3 * MS)
    unexplained = a_report(host_late=3_600_000, seed=2)
    explained = a_report(host_late=3_600_000, seed=2, findings=[a_finding(bubble=550.0 * US)])
    assert diff([base], [unexplained]).verdict == "no change"
    assert diff([base], [explained]).verdict == "regression"
    assert "explained by the calls that came or went. New: A blocking read" in diff([base], [explained]).headline
    assert diff([explained], [base]).verdict == "improvement"


@pytest.mark.parametrize(
    ("paced_us", "explained"), [(0, True), (-300, True), (300, True), (450, True), (560, False), (700, False)]
)
def test_a_read_explains_nothing_that_the_pace_of_the_host_alone_may_have_made(paced_us: int, explained: bool) -> None:
    base, head = a_report(host_late=3 * MS), a_report(host_late=3_600_000, seed=2)
    setting = Setting(waiting=0.3, step_ns=9.8 * MS, ranks=1)
    evidence = Evidence(setting, explained_ns=550.0 * US, paced_ns=paced_us * US)
    told = {row.metric: row for row in changes([base], [head], evidence, GATES)}["step.duration.p50"]
    assert told.delta == pytest.approx(600 * US, abs=45 * US)
    assert (told.explained, told.status) == ((True, "worse") if explained else (False, "same"))


def test_a_read_that_was_there_but_harmless_explains_nothing() -> None:
    finding = a_finding(bubble=550.0 * US)
    base = a_report(host_late=3 * MS, benign=[a_benign(finding.site)])
    head = a_report(host_late=3_600_000, findings=[finding])
    result = diff([base], [head])
    assert result.findings[0].status == "new"
    assert not result.findings[0].structural
    assert result.verdict == "no change"


def test_steps_that_scatter_within_a_capture_are_no_evidence() -> None:
    captures = [a_report(steps=5, jitter=0.05, seed=seed) for seed in range(8)]
    results = [diff([base], [head]) for base, head in pairwise(captures)]
    beyond = [c for c in (change(r, "step.duration.p50") for r in results) if abs(c.delta or 0) > (c.threshold or 0)]
    assert len(beyond) >= 3
    assert {c.status for c in beyond} == {"same"}


UNREAD = QualityNote("events-unread", "error", "some events could not be read", 2)


def test_what_can_not_be_compared_is_refused_with_the_reason() -> None:
    base = a_report()
    for head, reason in (
        (a_report(mode="graph", intra_graph=None), "graph and node mode"),
        (a_report(mode="unseen", intra_graph=None), "the export lacks the GPU work of its CUDA graph launches"),
        (replace(base, quality=[UNREAD]), "Nsight Systems failed to read part of its own recording"),
        (with_trace(base, gpus=[replace(base.trace.gpus[0], name="NVIDIA B200")]), "The GPUs differ"),
        (with_steps(base, by_device=[], rows=[], count=0), "has no decode steps"),
    ):
        result = diff([base], [head])
        assert result.verdict == "incomparable"
        assert reason in result.headline


def test_the_idle_time_between_replays_compares_across_capture_modes() -> None:
    base = a_report(host_late=1500 * US)
    head = a_report(mode="graph", intra_graph=None, busy=6_700_000, seed=2)
    result = diff([base], [head], Options(inter_only=True))
    assert result.verdict == "improvement"
    assert {c.metric.split(".")[1] for c in result.changes} == {
        "host_late", "launching", "queued", "unattributed", "inter_graph",
    }  # fmt: skip
    with pytest.raises(UsageError, match="not compared with --inter-only"):
        diff([base], [head], Options(inter_only=True, gates=frozenset({"step.busy.p50"})))


def test_what_else_differs_is_warned_about() -> None:
    base = a_report(run=replace(a_report().run, meta={"batch": "1", "host": "node-a"}))
    head = with_trace(base, nsys_version="2023.4", cupti_version="12.4")
    head = replace(head, run=replace(base.run, meta={"batch": "4", "host": "node-b"}))
    roles = [replace(base.steps.roles[0], nodes=95.0), base.steps.roles[1]]
    text = " ".join(diff([base], [with_steps(head, roles=roles)]).warnings)
    for said in ("Nsight Systems differs", "CUPTI differs", "batch differs: 1 against 4", "host differs",
                 "A draft replay has 90 nodes against 95"):  # fmt: skip
        assert said in text


def test_a_kernel_only_in_head_appears() -> None:
    base = with_kernels(a_report(), a_kernel("verify", "gemm", 42, 4e6), a_kernel("verify", "old", 1, 1e4))
    head = with_kernels(a_report(), a_kernel("verify", "gemm", 42, 4.2e6), a_kernel("verify", "new", 1, 3e5))
    statuses = {k.name: k.status for k in diff([base], [head]).kernels}
    assert statuses == {"gemm": "worse", "old": "gone", "new": "new"}


def test_a_kernel_of_the_same_name_in_another_role_is_another_kernel() -> None:
    base = with_kernels(a_report(), a_kernel("draft", "gemm", 3, 1e5))
    head = with_kernels(a_report(), a_kernel("verify", "gemm", 3, 1e5))
    assert {(k.role, k.status) for k in diff([base], [head]).kernels} == {("draft", "gone"), ("verify", "new")}


def test_a_part_only_in_head_appears() -> None:
    base = a_report()
    head = with_steps(base, roles=[*base.steps.roles, replace(base.steps.roles[0], role="draft-extend")])
    result = diff([base], [head])
    assert change(result, "role.duration.p50", role="draft-extend").status == "new"
    assert "Only head has a draft-extend part in its steps." in result.warnings


def test_ranks_are_paired_with_ranks() -> None:
    base = a_report(ranks=2)
    rank_one = [
        replace(r, duration_ns=r.duration_ns + 900 * US, host_late_ns=(r.host_late_ns or 0) + 900 * US)
        if r.gpu == 1 else r
        for r in base.steps.rows
    ]  # fmt: skip
    result = diff([base], [with_rows(base, rank_one)])
    assert change(result, "step.duration.p50", rank=0).status == "same"
    assert change(result, "step.duration.p50", rank=1).status == "worse"
    assert result.verdict == "regression"


def test_gated_metrics_that_disagree_are_mixed_and_fail() -> None:
    base = a_report(host_late=200 * US)
    head = a_report(host_late=0, busy=6_200_000)
    options = Options(gates=frozenset({"step.busy.p50", "step.host_late.p50"}))
    result = diff([base], [head], options)
    assert result.verdict == "mixed"
    assert failed(result)


def test_an_unknown_gate_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no metric step\.speed"):
        diff([a_report()], [a_report()], Options(gates=frozenset({"step.speed"})))


def test_a_gate_that_is_not_known_on_both_sides_is_no_pass() -> None:
    graph = a_report(mode="graph", intra_graph=None)
    result = diff([graph], [graph], Options(gates=frozenset({"step.intra_graph.p50"})))
    assert result.verdict == "incomparable"


def test_a_gate_that_no_side_has_is_no_pass() -> None:
    result = diff([a_report()], [a_report()], Options(gates=frozenset({"corrected.step.duration.p50"})))
    assert result.verdict == "incomparable"


def test_ranks_without_a_partner_are_shown_and_warned_about() -> None:
    result = diff([a_report(ranks=2)], [a_report(seed=2)])
    assert result.verdict == "no change"
    assert change(result, "step.duration.p50", rank=1).status == "gone"
    assert "The number of ranks differs: 2 against 1." in result.warnings


def test_steps_that_serve_other_numbers_of_requests_are_pointed_out() -> None:
    def serving(*requests: int) -> Report:
        return with_steps(a_report(), requests=stats(pl.Series(requests)))

    said = "The steps serve other numbers of requests: 1 against 8 in the median."
    assert said in diff([serving(1, 1, 2)], [serving(8, 8)]).warnings
    assert not any("requests" in line for line in diff([serving(1, 1)], [serving(1, 1, 2)]).warnings)
    assert not any("requests" in line for line in diff([a_report()], [serving(8)]).warnings)


def test_few_steps_are_warned_about() -> None:
    assert "base holds only 1 decode step." in diff([a_report(steps=1)], [a_report()]).warnings


def test_a_gpu_that_is_not_named_is_warned_about() -> None:
    base = a_report()
    nameless = with_trace(base, gpus=[replace(base.trace.gpus[0], name=None)])
    assert "The capture of head doesn't say which GPU it ran on." in diff([base], [nameless]).warnings


def test_the_typical_steps_add_up() -> None:
    result = diff([a_report()], [a_report(host_late=500 * US)])
    for step in (result.base_step, result.head_step):
        assert step is not None
        assert sum(step.parts.values()) == step.duration_ns


MIRROR = {"regression": "improvement", "improvement": "regression"}
STATUS = {"better": "worse", "worse": "better", "new": "gone", "gone": "new"}
loops = st.builds(
    a_report,
    steps=st.integers(2, 40),
    busy=st.sampled_from([6 * MS, 6_050_000, 6_500_000]),
    host_late=st.sampled_from([0, 50 * US, 400 * US, 3 * MS]),
    jitter=st.sampled_from([0.0, 0.001, 0.03]),
    seed=st.integers(0, 5),
    findings=st.sampled_from([[], [a_finding()], [a_finding(bubble=2.0 * MS)]]),
)


@given(base=loops, head=loops)
def test_a_diff_mirrors_its_reverse(base: Report, head: Report) -> None:
    there, back = diff([base], [head]), diff([head], [base])
    assert MIRROR.get(there.verdict, there.verdict) == back.verdict
    keys = {(c.metric, str(c.where)): c for c in back.changes}
    for one in there.changes:
        other = keys[one.metric, str(one.where)]
        recognised = {"changed"} if one.metric.startswith(("waits.", "findings.", "bubble.")) else set()
        assert other.status in {STATUS.get(one.status, one.status)} | recognised or one.status in recognised
        assert (one.delta or 0) == -(other.delta or 0)
    assert sorted(STATUS.get(f.status, f.status) for f in there.findings) == sorted(f.status for f in back.findings)


@given(sides=st.lists(loops, min_size=2, max_size=4))
def test_any_captures_against_themselves_shuffled_are_no_change(sides: list[Report]) -> None:
    assert diff(sides, sides[::-1]).verdict == "no change"


def test_a_wait_that_a_longer_step_hides_is_no_gain() -> None:
    read = a_finding()
    hidden = a_report(busy=9 * MS, benign=[a_benign(read.site)])
    result = diff([a_report(findings=[read])], [hidden])
    assert result.verdict == "regression"
    assert [f.status for f in result.findings] == ["unknown"]
    statuses = {c.metric: c.status for c in result.changes}
    assert statuses["waits.draining.per_step"] == "changed"
    assert "better" not in {status for metric, status in statuses.items() if metric.startswith(("waits.", "bubble."))}


def test_few_stalls_are_a_regression_of_the_mean() -> None:
    base = a_report(steps=60)
    rows = [
        replace(row, duration_ns=row.duration_ns + 12 * MS, host_late_ns=12 * MS) if row.index in {14, 31, 47} else row
        for row in base.steps.rows
    ]
    stalled = with_rows(a_report(steps=60, seed=2), rows)
    result = diff([base], [stalled])
    assert result.verdict == "regression"
    assert "The median stays at 6.87 ms: few steps stall." in result.headline
    assert diff([stalled], [base]).verdict == "improvement"
    twice = with_rows(stalled, [*rows[:30], *base.steps.rows[30:]])
    assert diff([base], [twice]).verdict == "no change"


def test_steps_cut_into_halves_are_refused() -> None:
    whole, half = a_report(), a_report(busy=3 * MS, intra_graph=400 * US)
    fewer = [replace(role, replays_per_step=0.5) for role in half.steps.roles]
    result = diff([whole], [with_steps(half, roles=fewer)])
    assert result.verdict == "incomparable"
    assert "the steps were cut otherwise" in result.headline
    joined = with_steps(a_report(busy=5_900_000), roles=fewer)
    assert diff([whole], [joined]).verdict != "incomparable"
