"""What the page draws: parts in their place, on one scale."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from bubblefinder.render.kit.bars import WIDTH
from bubblefinder.render.report import html_charts
from bubblefinder.report.found import Joint
from bubblefinder.report.model import Stats
from bubblefinder.units import duration
from tests import samples
from tests.unit.report.sample import graph_report, sample_report, unseen_report


def test_the_strip_is_the_mean_step_and_fills_the_bar() -> None:
    strip = html_charts.strip(sample_report().steps.per_step)
    assert sum(one.share or 0 for one in strip) == pytest.approx(1)
    assert [one.css for one in strip] == ["busy", "intra_graph", "host_late", "launching", "queued"]
    assert strip[2].x == pytest.approx(strip[0].width + strip[1].width, abs=0.05)


def test_each_part_of_the_waterfall_starts_where_the_one_before_ends() -> None:
    rows = html_charts.waterfall(sample_report())
    assert [row.css for row in rows][:6] == ["step", "busy", "intra_graph", "host_late", "launching", "queued"]
    for before, after in pairwise(rows[1:6]):
        assert after.raw[0].x == pytest.approx(before.raw[0].x + before.raw[0].width, abs=0.2)
        assert after.corrected[0].x == pytest.approx(before.corrected[0].x + before.corrected[0].width, abs=0.2)


def test_the_waterfall_shows_what_medians_do_not_add_up_to() -> None:
    base = sample_report()
    late = base.steps.per_step["host_late"]
    changed = base.steps.per_step | {"host_late": replace(late, p50=(late.p50 or 0) - 400_000)}
    rows = html_charts.waterfall(replace(base, steps=replace(base.steps, per_step=changed)))
    assert rows[-1].css == "rest"
    assert rows[-1].raw_ns == pytest.approx(400_000, abs=20_000)
    assert sum(row.raw_ns or 0 for row in rows[1:]) == pytest.approx(rows[0].raw_ns)


def test_busy_is_cut_by_role_and_the_parts_add_up() -> None:
    report = sample_report()
    parts = html_charts.busy_by_role(report)
    assert [name for name, _ in parts] == ["draft", "verify", "draft-extend", "outside graphs"]
    assert sum(ns for _, ns in parts) == pytest.approx(report.steps.per_step["busy"].p50)


def test_roles_that_overlap_are_not_cut() -> None:
    report = sample_report()
    roles = [replace(role, p50_ns=9_000_000) for role in report.steps.roles]
    assert html_charts.busy_by_role(replace(report, steps=replace(report.steps, roles=roles))) == []


def test_an_unmeasured_part_has_no_row_and_no_zero() -> None:
    assert "intra_graph" not in [row.css for row in html_charts.waterfall(graph_report())]
    figures = {one.name: one.value for one in html_charts.key_figures(graph_report())}
    assert figures["Idle inside replays"] == "–"


def test_a_wait_that_only_hands_on_to_the_next_recovers_what_all_of_them_give() -> None:
    base = sample_report()
    joint = Joint(findings=3, step_ns=5_000_000, recoverable_ns=1_900_000, range_ns=[5_000_000, 5_000_000])

    def figure(in_turn_ns: int | None) -> tuple[str, str]:
        first = replace(base.findings[0], recoverable_ns=1_000_000, in_turn_ns=in_turn_ns)
        figures = html_charts.key_figures(replace(base, findings=[first], joint=joint))
        return next((one.value, one.note) for one in figures if one.name == "To recover")

    assert figure(None) == ("1.00 ms", "a step, from the first finding")
    assert figure(1_100_000) == ("1.00 ms", "a step, from the first finding")
    assert figure(1_500_000) == ("1.90 ms", "a step, from all 3 waits and pauses together")


def test_waits_in_a_row_that_the_verdict_tells_first_recover_what_they_give_together() -> None:
    report = samples.report("sglang/fi.graph")
    row, figures = report.wait_chains[0], html_charts.key_figures(report)
    assert [(one.value, one.note) for one in figures if one.name == "To recover"] == [
        (duration(row.joint.recoverable_ns), f"a step, from the {len(row.links)} waits in a row together")
    ]
    assert report.verdict is not None
    assert duration(row.joint.recoverable_ns) in report.verdict.gain


def test_an_eager_loop_has_no_inside() -> None:
    base = graph_report()
    eager = replace(base, trace=replace(base.trace, capture_mode="none"))
    assert [one.name for one in html_charts.key_figures(eager)][:2] == ["Decode step", "Idle"]


def test_ranks_share_one_scale_and_need_two() -> None:
    assert html_charts.rank_bars(sample_report()) == []
    bars = html_charts.rank_bars(sample_report(gpus=2))
    assert len(bars) == 2
    ends = [max(segment.x + segment.width for segment in bar) for bar in bars]
    assert max(ends) == pytest.approx(WIDTH, abs=12)


def test_nothing_is_drawn_of_what_is_not_known() -> None:
    unknown = Stats(mean=None, p50=None, p95=None, min=None, max=None)
    assert html_charts.strip({"busy": unknown}) == ()
    assert html_charts.waterfall(unseen_report()) == []
    assert html_charts.strip(unseen_report().steps.per_step) == ()
    assert [one.name for one in html_charts.key_figures(unseen_report())] == ["Decode step"]
