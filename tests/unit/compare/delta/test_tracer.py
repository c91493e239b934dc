"""What the tracer adds to each capture, and what is left without it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.delta.front import SEEN_NS
from bubblefinder.compare.delta.tracer import added_by_tracer, delays_of, without_tracer
from bubblefinder.compare.metrics import measure
from tests.unit.compare.builders import a_report
from tests.unit.compare.delta.accounts import STEPS, US, a_call, a_role, an_account

if TYPE_CHECKING:
    from bubblefinder.report.account import Account
    from bubblefinder.report.model import Report

NAMES = [f"kernel {number}" for number in range(30)]


def traced(gap_ns: int, *, early_us: float = 0) -> Report:
    """A report whose nodes wait so long each."""
    role = a_role(range(30), gap_ns=[gap_ns * STEPS] * 30, early_us=early_us)
    return with_account(an_account([role], names=NAMES))


def with_account(account: Account) -> Report:
    report = a_report(steps=STEPS)
    return replace(report, detail=replace(report.detail, accounts=[account]))


def test_every_capture_is_held_against_the_one_where_nodes_begin_soonest() -> None:
    (delay,) = delays_of([traced(450), traced(100)], [traced(455), traced(450)])
    assert delay.base_ns == (350, 0)
    assert delay.head_ns == (355, 350)
    assert delay.later_ns == pytest.approx(177.5)
    assert delay.tracers


def test_more_than_tracing_was_seen_to_do_and_overlap_that_is_lost_may_be_the_programs() -> None:
    (beyond,) = delays_of([traced(100)], [traced(100 + SEEN_NS + 1)])
    assert not beyond.tracers
    some = a_role(range(30), gap_ns=[0] + [100 * STEPS] * 29, early_ns=[2_000 * STEPS] + [0] * 29)
    (lost,) = delays_of([with_account(an_account([some], names=NAMES))], [traced(400)])
    assert (lost.later_ns, lost.tracers) == (300, False)


def test_reports_without_accounts_have_no_delay() -> None:
    assert delays_of([a_report()], [traced(100)]) == []
    assert added_by_tracer([a_report()], []) == [{}]


def test_the_step_its_idle_time_and_its_part_go_without_it() -> None:
    report = traced(450)
    (added,) = added_by_tracer([report], [(350.0,)])
    rank, role = (("rank", 0),), (("role", "verify"),)
    assert added["step.duration.mean", rank] == added["step.intra_graph.p95", rank] == 30 * 350
    assert added["role.duration.p50", role] == 30 * 350
    assert ("step.busy.mean", rank) not in added
    for one in measure(report):
        left = without_tracer(one, report, added)
        assert left is not None
        if one.metric.id == "step.duration.p50":
            assert one.value is not None
            assert left.value == one.value - 30 * 350
            assert left.samples == tuple(value - 30 * 350 for value in one.samples)
        if one.metric.id == "step.busy.p50":
            assert left == one


def test_a_step_is_longer_only_as_far_as_the_host_waits_for_the_gpu() -> None:
    for waits_us, whole in ((2, 2 * US), (50, 30 * 350)):
        role = a_role(range(30), gap_ns=[450 * STEPS] * 30)
        calls = [a_call("cudaEventSynchronize", waits_us, waits=True)]
        (added,) = added_by_tracer([with_account(an_account([role], names=NAMES, calls=calls))], [(350.0,)])
        assert added["step.duration.mean", (("rank", 0),)] == whole
        assert added["step.intra_graph.mean", (("rank", 0),)] == 30 * 350


def test_shares_are_those_of_the_shorter_step() -> None:
    report = traced(450)
    (added,) = added_by_tracer([report], [(350.0,)])
    step = report.steps.by_device[0].per_step["duration"].mean or 0.0
    shares = {one.metric.id: without_tracer(one, report, added) for one in measure(report)}
    inside, outside = shares["bubble.share.intra_graph"], shares["bubble.share.inter_graph"]
    assert inside is not None
    assert outside is not None
    assert inside.value == pytest.approx((0.1 * step - 30 * 350) / (step - 30 * 350))
    assert outside.value == pytest.approx(0.01 * step / (step - 30 * 350))
    assert without_tracer(None, report, added) is None
