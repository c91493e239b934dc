"""Captures of the real vLLM 0.26.0 on an H200, and what is known of each: see sample_traces/README.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.diff import diff
from bubblefinder.overhead.model import Source
from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import Options, report_of
from tests.samples import analysis, report

if TYPE_CHECKING:
    from bubblefinder.causes.host_record import HostRange

MS = 1_000_000
FULL, NODE, PIECEWISE, SYNC = "vllm/full.graph", "vllm/full.node", "vllm/piecewise.node", "vllm/sync.graph"
BATCH, FUNCTIONS, NAMED = "vllm/batch_8.graph", "vllm/functions.graph", "vllm/sync_nvtx.node"
UNTRACED = {
    FULL: (2.06, 2.58),
    NODE: (1.93, 2.03),
    PIECEWISE: (5.35, 8.28),
    SYNC: (3.47, 3.70),
    BATCH: (2.41, 2.81),
    FUNCTIONS: (2.03, 2.50),
    NAMED: (3.28, 3.35),
}
"""Five runs of the process that was captured, in ms a step."""
ASYNC = (2.03, 2.58)
"""All runs with asynchronous scheduling and full graphs, of two processes."""


@pytest.mark.parametrize("name", UNTRACED)
def test_a_step_serves_as_many_requests_as_were_sent_together(name: str) -> None:
    steps = report(name).steps
    assert steps.requests_from == "nvtx"
    assert steps.requests_steps == {"8" if name == BATCH else "1": steps.count}


@pytest.mark.parametrize(
    ("name", "replays"), [(FULL, 1), (NODE, 1), (PIECEWISE, 29), (SYNC, 1), (BATCH, 1), (FUNCTIONS, 1), (NAMED, 1)]
)
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


def test_a_host_that_barely_keeps_up_may_be_late_in_another_run() -> None:
    """The GPU sets the pace of half of its steps; five untraced runs took 2.03, 2.07, 2.18, 2.27 and 2.50 ms."""
    low, high = report(FUNCTIONS).overhead.range_ns or (0, 0)
    assert low < 2.07 * MS < 2.27 * MS < high


def test_a_thread_that_is_woken_late_is_no_sign_of_work_without_a_record() -> None:
    assert report(SYNC).devices[0].unrecorded_ns == 0


@pytest.mark.parametrize("name", [FULL, NODE, BATCH, FUNCTIONS])
def test_asynchronous_scheduling_with_full_graphs_has_nothing_above_low(name: str) -> None:
    told = report(name)
    assert {finding.severity for finding in told.findings} <= {"info", "low"}
    assert "VLLM002" not in {rule for finding in told.findings for rule in (finding.rule, *finding.also_matches)}


def test_a_graph_a_layer_is_said_where_the_host_is_late_for_it() -> None:
    first = report(PIECEWISE).findings[0]
    assert (first.rule, first.severity) == ("CUDA101", "high")
    assert "29 graph launches a step (VLLM003)" in first.message
    assert "cudagraph_mode FULL" in first.remedy


def test_the_wait_is_named_where_the_engines_own_ranges_name_nothing_of_it() -> None:
    """The scheduler's ranges are there, but no `gpu_model_runner: ` ones: the second model runner opens none."""
    (results,) = [finding for finding in report(NAMED).findings if finding.severity in {"high", "medium"}]
    assert (results.rule, results.site.nvtx, results.steps_affected) == ("VLLM002", None, 14)


def ranges(name: str) -> dict[str | None, HostRange]:
    host = report(name).host
    assert host is not None
    return {(item.nvtx or "").rpartition(".")[2] or None: item for item in host.ranges}


def test_the_engines_own_ranges_say_what_its_scheduler_takes() -> None:
    told = ranges(NAMED)
    scheduler = {text: item for text, item in told.items() if text and text.startswith("schedule: ")}
    assert {item.per_step_count for item in scheduler.values()} == {1}
    assert sorted(text.removeprefix("schedule: ") for text in scheduler) == [
        "allocate_slots",
        "get_num_common_prefix_blocks",
        "make_cached_request_data",
        "update_after_schedule",
    ]
    assert sum(item.p50_ns for item in scheduler.values()) == pytest.approx(0.042 * MS, rel=0.05)


def test_functions_that_nsys_wraps_share_the_launching_threads_step_between_them() -> None:
    told = ranges(FUNCTIONS)
    longest = ["GPUModelRunner.sample_tokens", "GPUModelRunner.execute_model", "GPUModelRunner.prepare_inputs"]
    assert list(told)[:3] == [name.rpartition(".")[2] for name in longest]
    host = report(FUNCTIONS).host
    assert host is not None
    assert sum(item.p50_ns for item in told.values()) == pytest.approx(host.step_p50_ns, rel=0.03)


def test_batches_of_other_sizes_have_their_steps_cut_by_one_and_the_same_mark() -> None:
    told = diff([report(FULL)], [report(BATCH)])
    assert told.warnings == ["The steps serve other numbers of requests: 1 against 8 in the median."]
