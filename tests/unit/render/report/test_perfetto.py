"""The Perfetto trace: tracks, exact times and arrows that begin and end inside slices."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.render.report import perfetto
from bubblefinder.timeline.model import LEDGER_CLASSES
from tests.unit.report.sample import hostile_report, sample_report, unseen_report

if TYPE_CHECKING:
    from bubblefinder.report.model import Report


def events(report: Report) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(perfetto.render(report))["traceEvents"]
    return found


def tracks(found: list[dict[str, Any]]) -> dict[tuple[int, int], str]:
    return {(e["pid"], e["tid"]): e["args"]["name"] for e in found if e["name"] == "thread_name"}


def test_steps_idle_launches_and_findings_have_their_tracks() -> None:
    report = sample_report()
    names = set(tracks(events(report)).values())
    assert {
        "steps of process 4242",
        "graph launches of process 4242",
        "graph replays of process 4242",
        "idle: host late",
        "finding 1: blocking-copy-to-host",
    } <= names


def test_a_step_carries_its_exact_times() -> None:
    report = sample_report()
    found = events(report)
    steps = [e for e in found if e["ph"] == "X" and tracks(found)[e["pid"], e["tid"]] == "steps of process 4242"]
    for event, row in zip(steps, report.steps.rows, strict=True):
        assert round(event["ts"] * 1000) == row.start_ns
        assert round(event["dur"] * 1000) == row.duration_ns
        assert event["args"]["host_late_ns"] == row.host_late_ns
        assert sum(event["args"][f"{name}_ns"] for name in LEDGER_CLASSES) == event["args"]["duration_ns"]


def test_arrows_begin_and_end_inside_slices() -> None:
    found = events(sample_report())
    slices = defaultdict(list)
    for event in found:
        if event["ph"] == "X":
            slices[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    arrows = [event for event in found if event["ph"] in "sf"]
    assert len(arrows) == 2 * len(sample_report().detail.leads)
    for event in arrows:
        assert any(start <= event["ts"] <= end for start, end in slices[event["pid"], event["tid"]])
    starts = {e["id"]: e["ts"] for e in arrows if e["ph"] == "s"}
    assert all(starts[e["id"]] <= e["ts"] for e in arrows if e["ph"] == "f")


def crowded() -> Report:
    """Two ranks whose evidence overlaps, as it does when both wait at once."""
    base = sample_report(gpus=2)
    late = [replace(one, start_ns=one.start_ns + 100, end_ns=one.end_ns + 100) for one in base.findings[0].evidence]
    return replace(base, findings=[replace(base.findings[0], evidence=[*base.findings[0].evidence, *late])])


@pytest.mark.parametrize("report", [sample_report(gpus=2), crowded(), hostile_report()])
def test_slices_of_a_track_do_not_cross(report: Report) -> None:
    found = events(report)
    for key in tracks(found):
        mine = sorted((e["ts"], e["ts"] + e["dur"]) for e in found if e["ph"] == "X" and (e["pid"], e["tid"]) == key)
        assert all(end <= start + 1e-6 for (_, end), (start, _) in pairwise(mine))


def test_hostile_names_and_missing_work_still_give_a_trace() -> None:
    assert any("<img" in event["name"] for event in events(hostile_report()))
    assert all(len(event["name"]) <= 200 for event in events(hostile_report()))
    assert "\\u001b" not in perfetto.render(hostile_report())
    counters = [event for event in events(unseen_report()) if event["ph"] == "C"]
    assert {tuple(event["args"]) for event in counters} == {("busy",)}
