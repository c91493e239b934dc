"""Captures of the real vLLM 0.26.0 on an H200, and what is known of each: see sample_traces/README.md."""

from __future__ import annotations

import pytest

from bubblefinder.overhead.model import Source
from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import Options, report_of
from tests.samples import analysis, report

MS = 1_000_000
FULL, NODE, PIECEWISE, SYNC = "vllm/full.graph", "vllm/full.node", "vllm/piecewise.node", "vllm/sync.graph"
UNTRACED = {FULL: (2.06, 2.58), NODE: (1.93, 2.03), PIECEWISE: (5.35, 8.28), SYNC: (3.47, 3.70)}
"""Five runs of the process that was captured, in ms a step."""
ASYNC = (2.03, 2.58)
"""All runs with asynchronous scheduling and full graphs, of two processes."""


@pytest.mark.parametrize(("name", "replays"), [(FULL, 1), (NODE, 1), (PIECEWISE, 29), (SYNC, 1)])
def test_a_step_is_one_full_graph_or_one_a_layer_and_a_last(name: str, replays: int) -> None:
    told = report(name)
    assert (told.steps.method, told.steps.confidence) == ("nvtx", "high")
    (role,) = told.steps.roles
    assert (role.role, role.replays_per_step) == ("decode", replays)


@pytest.mark.parametrize("name", UNTRACED)
def test_the_correction_holds_the_step_of_the_same_process_untraced(name: str) -> None:
    low, high = report(name).overhead.range_ns or (0, 0)
    least, most = UNTRACED[name]
    assert low <= most * MS
    assert high >= least * MS


def test_without_its_wait_the_synchronous_engine_takes_what_the_asynchronous_one_takes() -> None:
    told = report(SYNC)
    (results,) = [finding for finding in told.findings if finding.severity == "high"]
    assert (results.rule, results.site.api) == ("VLLM002", "cudaEventSynchronize")
    least, most = ASYNC
    assert least * MS <= (results.step_after_ns or 0) <= most * MS


def test_a_reference_that_graph_mode_slowed_by_a_fifth_gives_a_range_alone_which_holds_its_step() -> None:
    asked = Options(overhead=Source(reference=analysis(FULL).trace))
    overhead = report_of(Analysis(analysis(NODE).trace), asked).overhead
    low, high = overhead.range_ns or (0, 0)
    least, most = UNTRACED[FULL]
    assert overhead.corrected_step_ns is None
    assert low <= least * MS
    assert most * MS <= high
    assert "--reference" not in (overhead.message or "")


def test_a_thread_that_is_woken_late_is_no_sign_of_work_without_a_record() -> None:
    assert report(SYNC).devices[0].unrecorded_ns == 0


@pytest.mark.parametrize("name", [FULL, NODE])
def test_asynchronous_scheduling_with_full_graphs_has_nothing_above_low(name: str) -> None:
    told = report(name)
    assert {finding.severity for finding in told.findings} <= {"info", "low"}
    assert "VLLM002" not in {rule for finding in told.findings for rule in (finding.rule, *finding.also_matches)}


def test_a_graph_a_layer_is_said_where_the_host_is_late_for_it() -> None:
    first = report(PIECEWISE).findings[0]
    assert (first.rule, first.severity) == ("CUDA101", "high")
    assert "29 graph launches a step (VLLM003)" in first.message
    assert "cudagraph_mode FULL" in first.remedy
