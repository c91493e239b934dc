"""What holds for every capture, from the trace to the findings."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given

from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import Options, analyze_trace, report_of
from bubblefinder.timeline.model import IdleClass
from bubblefinder.timeline.rank import ranks_of
from bubblefinder.trace.schema import CALLS_TABLE
from tests import samples
from tests.captures import captures, moved, relabelled
from tests.loops import disturbed

if TYPE_CHECKING:
    from bubblefinder.report.model import Report
    from bubblefinder.trace.model import Trace

NOT_THE_HOSTS = [IdleClass.PROFILER, IdleClass.INTRA_GRAPH, IdleClass.UNRECORDED]
DAY = 86_400 * 10**9


def check_charges(analysis: Analysis) -> None:
    """Every piece is charged once at most, only the host's pieces, and a wait's bubble is the sum of its pieces."""
    timeline, causes = analysis.timeline, analysis.causes
    charged = timeline.pieces[causes.charges["piece_index"].to_list()]
    assert causes.charges["piece_index"].n_unique() == len(causes.charges)
    assert not charged["idle_class"].is_in([int(one) for one in NOT_THE_HOSTS]).any()
    lengths = causes.charges.with_columns(length=charged["end_ns"] - charged["start_ns"])
    bubbles = dict(lengths.group_by("wait_index").agg(pl.col("length").sum()).rows())
    assert causes.waits["bubble_ns"].fill_null(0).to_list() == [bubbles.get(n, 0) for n in range(len(causes.waits))]


@cache
def analysis_of(seed: int) -> Analysis:
    return Analysis(disturbed(seed).sketch.trace())


@cache
def reported(seed: int) -> tuple[Trace, Report]:
    analysis = analysis_of(seed)
    return analysis.trace, report_of(analysis)


def said(report: Report) -> list[tuple[object, ...]]:
    """The findings without what tells the copies of a capture apart."""
    return [(f.rule, f.severity, f.bubble_ns.p50, f.recoverable_ns, f.occurrences) for f in report.findings]


@given(captures())
def test_no_idle_time_is_charged_twice_in_any_capture(trace: Trace) -> None:
    check_charges(Analysis(trace))


@pytest.mark.parametrize("seed", range(8))
def test_no_idle_time_is_charged_twice_in_a_loop(seed: int) -> None:
    check_charges(analysis_of(seed))


@pytest.mark.parametrize("seed", range(6))
def test_other_times_and_ids_give_the_same_findings(seed: int) -> None:
    trace, report = reported(seed)
    reports = [report, *(analyze_trace(one) for one in (moved(trace, DAY), relabelled(trace)))]
    assert said(reports[0]) == said(reports[1]) == said(reports[2])
    assert reports[0].steps.per_step == reports[1].steps.per_step == reports[2].steps.per_step


@pytest.mark.parametrize("seed", range(6))
def test_evidence_lies_where_it_says(seed: int) -> None:
    trace, report = reported(seed)
    calls = {row: times for row, *times in trace.calls.select("row", "start_ns", "end_ns").rows()}
    shown = [e for f in report.findings for e in f.evidence if e.table == CALLS_TABLE]
    assert [calls.get(e.row) for e in shown] == [[e.start_ns, e.end_ns] for e in shown]


def test_some_loop_has_findings_with_evidence() -> None:
    assert any(f.evidence for seed in range(4) for f in reported(seed)[1].findings)


def of_all(report: Report) -> tuple[object, ...]:
    """What a report tells of the capture and of every rank, whichever it leads with."""
    found = sorted(repr((f.rule, f.severity, f.devices, f.evidence)) for f in report.findings)
    steps = (report.steps.by_device, report.steps.rows)
    return report.trace, report.quality, report.devices, steps, report.benign, found


@given(captures())
def test_the_rank_asked_for_changes_nothing_that_is_told_of_all(trace: Trace) -> None:
    analysis = Analysis(trace)
    ranks = ranks_of(analysis.timeline)
    told = [of_all(report_of(analysis, Options(gpu=rank.gpu, pid=rank.pid))) for rank in ranks]
    assert told == [of_all(report_of(analysis))] * len(ranks)


@pytest.mark.parametrize("name", ["tp2_before.node", "seeded/tp2_slowrank.node"])
def test_the_rank_asked_for_changes_nothing_that_is_told_of_all_in_a_real_capture(name: str) -> None:
    analysis = samples.analysis(name)
    told = [of_all(report_of(analysis, Options(gpu=rank.gpu))) for rank in ranks_of(analysis.timeline)]
    assert told == [of_all(samples.report(name))] * 2


def check_window_around_everything(trace: Trace, whole: Report) -> None:
    part = analyze_trace(trace, Options(window=(0, 2**62)))
    assert part.steps.selection is not None
    assert replace(part, steps=replace(part.steps, selection=None), detail=whole.detail) == whole


@pytest.mark.parametrize("seed", range(6))
def test_a_window_around_everything_changes_nothing(seed: int) -> None:
    check_window_around_everything(*reported(seed))


@pytest.mark.parametrize("name", ["tp2_before.node", "torch_eager", "nextn_before.graph"])
def test_a_window_around_everything_changes_nothing_of_a_real_capture(name: str) -> None:
    check_window_around_everything(samples.analysis(name).trace, samples.report(name))


@pytest.mark.parametrize("seed", range(4))
def test_what_threads_without_cuda_ask_of_the_system_changes_nothing(seed: int) -> None:
    trace, report = reported(seed)
    gaps = trace.calls.select(
        "row", start_ns="end_ns", end_ns=pl.col("start_ns").shift(-1), thread=pl.col("thread") + 99
    )
    beside = gaps.filter(pl.col("end_ns") > pl.col("start_ns")).with_columns(name=pl.lit("futex"))
    assert len(beside)
    assert not beside["thread"].is_in(trace.calls["thread"].implode()).any()
    os_calls = pl.concat([trace.os_calls, beside.select(trace.os_calls.columns)]).sort("start_ns", "end_ns")
    assert analyze_trace(replace(trace, os_calls=os_calls)) == report
