"""Captures that lack work, nobody knows where: no idle time, no steps and no causes are told."""

from __future__ import annotations

from dataclasses import replace

import pytest

import bubblefinder
from bubblefinder.errors import CannotAnswerError
from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import analyze_trace, report_of
from bubblefinder.report.examination import examine
from bubblefinder.timeline.missing import missing_work
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.model import QualityNote
from tests import samples

DOUBT = QualityNote("events-incomplete", "warn", "Not all CUDA events might have been collected.")
UNREAD = QualityNote("events-unread", "error", "some events could not be read", 2)


def torn() -> Analysis:
    trace = samples.analysis("nextn_before.node").trace
    return Analysis(replace(trace, notes=(DOUBT, UNREAD)))


def test_a_capture_without_such_notes_lacks_nothing() -> None:
    assert missing_work("graph", [DOUBT]) is None
    assert missing_work("node", [UNREAD]) is not None
    assert missing_work("unseen", []) is not None


def test_of_a_recording_that_was_read_in_part_nothing_is_told() -> None:
    report = report_of(torn())
    assert report.verdict
    assert report.verdict.headline == (
        "This capture can't say how much the GPU idles: Nsight Systems failed to read part of its own recording."
    )
    assert "--trace=cuda" in report.verdict.blame
    assert (report.findings, report.steps.count, report.steps.bubble_share.total) == ([], 0, None)
    assert report.devices[0].idle_ns is report.devices[0].inter_graph.host_late_ns is None
    assert report.devices[0].busy_ns > 0


def test_a_program_of_jax_of_which_535_of_15129_records_are_left_tells_nothing() -> None:
    report = samples.report("workloads/jax_read.node")
    assert report.verdict
    assert (report.verdict.number, report.steps.count, report.findings) == ("", 0, [])
    assert {note.code for note in report.quality if note.level == "error"} == {"events-unread"}


def test_such_a_recording_is_not_called_complete_for_what_is_left_of_it() -> None:
    levels = {note.code: note.level for note in torn().timeline.trace.notes}
    assert levels == {"events-incomplete": "warn", "events-unread": "error"}


def test_nothing_is_predicted_from_it_and_no_gap_is_told() -> None:
    analysis = torn()
    with pytest.raises(CannotAnswerError, match="failed to read part"):
        _ = analysis.study
    with pytest.raises(CannotAnswerError, match="failed to read part"):
        bubblefinder.gaps(analysis)
    answers = dict(examine(analysis.trace).answers)
    assert "no: Nsight Systems failed to read part of its own recording" in answers.values()


def test_where_no_work_at_all_is_left_the_error_says_why() -> None:
    trace = draw("api | K\ngpu0 | .K")
    empty = replace(trace, operations=trace.operations.clear(), notes=(UNREAD,))
    with pytest.raises(CannotAnswerError) as error:
        analyze_trace(empty)
    assert "failed to read part" in (error.value.hint or "")
