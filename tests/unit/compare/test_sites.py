"""Findings are matched by their place in the program."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.compare.sites import site_changes
from bubblefinder.report.found import DeviceRef, Expected, Site
from tests.unit.compare.builders import MS, US, a_benign, a_finding, a_report

if TYPE_CHECKING:
    from bubblefinder.report.found import Finding

LINE = 100.0 * US


def statuses(base: list[object], head: list[object], **more: Any) -> list[tuple[str, bool]]:
    before, after = a_report(findings=base), a_report(findings=head, **more)
    return [(c.status, c.structural) for c in site_changes([before], [after], LINE)]


def test_another_rule_about_the_same_read_is_the_same_finding() -> None:
    assert statuses([a_finding("core.blocking-read")], [a_finding("sglang.seq-lens")]) == [("same", False)]


def test_a_finding_is_worse_or_better_beyond_the_line_only() -> None:
    for bubble, status in ((1.45 * MS, "same"), (1.6 * MS, "worse"), (1.2 * MS, "better")):
        assert statuses([a_finding(bubble=1.4 * MS)], [a_finding(bubble=bubble)]) == [(status, False)]


def test_reads_that_come_and_go_are_structural() -> None:
    assert statuses([], [a_finding()]) == [("new", True)]
    assert statuses([a_finding()], []) == [("gone", True)]


def test_a_read_that_became_harmless_or_expected_is_gone_but_not_structural() -> None:
    finding = a_finding()
    expected = Expected(finding=finding, reason="known", owner="us")
    assert statuses([finding], [], benign=[a_benign(finding.site)]) == [("gone", False)]
    assert statuses([finding], [], expected=[expected]) == [("gone", False)]


def test_reads_of_other_places_are_other_findings() -> None:
    elsewhere = a_finding(site=replace(a_finding().site, nvtx="plan"))
    assert sorted(statuses([a_finding()], [elsewhere])) == [("gone", True), ("new", True)]


def test_renamed_parts_of_the_step_keep_a_finding() -> None:
    renamed = a_finding(site=replace(a_finding().site, after_role="target", before_role="draft"))
    assert statuses([a_finding()], [renamed]) == [("same", False)]


def test_findings_about_a_part_match_by_the_part_and_those_about_all_by_their_rule() -> None:
    inside = a_finding("gaps", site=Site(role="verify"))
    everywhere = a_finding("host", site=Site())
    assert statuses([inside], [replace(inside, rule="gaps-with-pdl")]) == [("same", False)]
    assert sorted(statuses([everywhere], [replace(everywhere, rule="other")])) == [("gone", False), ("new", False)]


def test_findings_about_parts_pair_by_the_part_in_whatever_order_they_cost() -> None:
    def inside(role: str, bubble: float) -> Finding:
        return a_finding("gaps", site=Site(role=role), bubble=bubble)

    base, head = (
        [inside("verify", 3.0 * MS), inside("draft", 1.0 * MS)],
        [inside("draft", 1.0 * MS), inside("verify", 3.0 * MS)],
    )
    assert statuses(list(base), list(head)) == [("same", False), ("same", False)]


def test_ranks_pair_in_their_order() -> None:
    base = [a_finding(devices=[DeviceRef(gpu=g, pid=g)], bubble=(1 + g) * 1.0 * MS) for g in (0, 1)]
    head = [a_finding(devices=[DeviceRef(gpu=g, pid=50 + g)], bubble=(1 + g) * 1.0 * MS) for g in (1, 0)]
    assert statuses(list(base), list(head)) == [("same", False), ("same", False)]


def test_a_side_has_what_most_of_its_captures_have() -> None:
    with_it, without = a_report(findings=[a_finding()]), a_report()
    assert [c.status for c in site_changes([without] * 3, [with_it, with_it, without], LINE)] == ["new"]
    assert site_changes([without] * 3, [with_it, without, without], LINE) == []


def test_costs_are_compared_by_one_measure() -> None:
    unknown = a_finding(bubble=1.4 * MS, recoverable_ns=None)
    known = a_finding(bubble=1.4 * MS, recoverable_ns=10 * US)
    assert [c.delta_ns for c in site_changes([a_report(findings=[unknown])], [a_report(findings=[known])], LINE)] == [0]


@pytest.mark.parametrize(
    ("title", "told"),
    [
        ("9.9 % of the decode time is launch gaps inside the verify graph", "Launch gaps inside the verify graph"),
        ("The host is late: its own work takes 14.8 ms a step", "The host is late: its own work takes long"),
        ("The host is late inside CUDA calls: cudaMalloc (31.0 %), cudaFree (2 %)",
         "The host is late inside CUDA calls: cudaMalloc, cudaFree"),
        ("Host-bound without CUDA graphs: 1,204 launches and copies a step", "Host-bound without CUDA graphs"),
        ("Piecewise graphs: 33.5 graph launches a step", "Piecewise graphs"),
        ("eager after draft runs as 33 single launches beside graph replays",
         "Eager after draft runs as single launches beside graph replays"),
        ("7 tiny kernels between verify and draft", "Tiny kernels between verify and draft"),
        ("GPU 3 reaches AllReduce late by 120 us a step", "GPU 3 reaches AllReduce late"),
        ("plan() with a custom mask writes a scalar", "plan() with a custom mask writes a scalar"),
        ("decode_step2 sorts the vocabulary to sample", "decode_step2 sorts the vocabulary to sample"),
        ("cudaFree runs in the step while the GPU idles", "cudaFree runs in the step while the GPU idles"),
    ],
)  # fmt: skip
def test_titles_carry_no_figure_of_one_side_and_names_keep_their_case(title: str, told: str) -> None:
    (change,) = site_changes([a_report(findings=[a_finding(title=title)])], [a_report()], 0.0)
    assert change.base.title == told


def test_what_a_finding_is_worth_comes_with_its_range_or_as_one() -> None:
    told = [a_finding(recoverable_range_ns=[1.0 * MS, high * MS]) for high in (1.6, 1.8, 2.0)]
    (change,) = site_changes([a_report(findings=[])] * 3, [a_report(findings=[one]) for one in told], LINE)
    assert change.head.recoverable_range_ns == [1.0 * MS, 1.8 * MS]
    assert change.base.recoverable_range_ns is None
    (change,) = site_changes(
        [a_report(findings=[])],
        [a_report(findings=[a_finding(recoverable_ns=None, recoverable_range_ns=[0, 2 * MS])])],
        LINE,
    )
    assert (change.head.recoverable_ns, change.head.recoverable_range_ns) == (None, [0, 2 * MS])
