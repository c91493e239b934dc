"""What programs did on purpose on an H200, and what a report says of it; what became of the step without it.

The programs are those of `workloads/`. A fix is scored against the program that has it, run on the same machine.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from bubblefinder.replay.changes import RemoveWaits
from bubblefinder.replay.predict import predict
from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.model import INTER_CLASSES
from tests import reference, samples

MS = 1_000_000
ALL = RemoveWaits(frozenset(range(100)))

FOUND = {
    "read.graph": ("CUDA001", 31),
    "read.node": ("CUDA001", 13),
    "gc.graph": ("CUDA141", 4),
    "empty_cache.graph": ("CUDA009", 8),
    "lazy.graph": ("CUDA011", 1),
    "fallback.node": ("CUDA113", 3),
    "fallback.graph": ("CUDA113", 3),
    "plan_device.graph": ("CUDA001", 31),
    "plan_device.node": ("CUDA001", 13),
    "batching_sync.graph": ("CUDA003", 31),
    "batching_sync.node": ("CUDA003", 11),
    "vllm_sync.graph": ("VLLM002", 30),
    "vllm_sync.node": ("VLLM002", 12),
}
"""The rule that comes first, and in how many steps."""

UNTRACED_MS = {"ahead": 1.121, "plan_host": 1.131, "batching_sync": 9.757, "batching_async": 8.210}
"""What a step took without the profiler, in the process that was traced in graph mode (workloads/README.md)."""

VLLM_MS = {"vllm_full.node": 2.060, "vllm_full.graph": 2.588, "vllm_sync.node": 3.440, "vllm_sync.graph": 3.846}
"""The same of four processes of vLLM, each the one that was then traced."""

HEALTHY = ["ahead.graph", "ahead.node", "plan_host.graph", "plan_host.node", "vllm_full.graph", "vllm_full.node"]
RANKS = ["slow_rank.graph", "slow_rank.node"]
NAMES = [*FOUND, *HEALTHY, *RANKS, "batching_async.graph", "batching_async.node", "eager.graph"]


SGLANG = ["sglang_nextn.graph", "sglang_nextn.node"]
"""What is known of them besides is held with the other captures of SGLang."""


@pytest.mark.parametrize("name", [*NAMES, *SGLANG])
def test_the_ledger_is_that_of_the_definitions(name: str) -> None:
    found = samples.analysis(f"workloads/{name}")
    devices = samples.report(f"workloads/{name}").devices
    assert len(devices) == (2 if name in RANKS else 1)
    for device in devices:
        whole = reference.ledger(found.trace, device.gpu)
        told = {"busy": device.busy_ns, "intra_graph": device.intra_graph_ns or 0, "profiler": device.profiler_ns}
        told |= {"unrecorded": device.unrecorded_ns or 0}
        told |= {kind: getattr(device.inter_graph, f"{kind}_ns") for kind in INTER_CLASSES}
        assert {kind: time for kind, time in told.items() if time} == dict(whole)


@pytest.mark.parametrize(("name", "expected"), FOUND.items())
def test_what_the_host_does_on_purpose_comes_first(name: str, expected: tuple[str, int]) -> None:
    first = samples.report(f"workloads/{name}").findings[0]
    assert (first.rule, first.steps_affected) == expected


@pytest.mark.parametrize("name", HEALTHY)
def test_a_host_that_is_ahead_is_not_blamed(name: str) -> None:
    report = samples.report(f"workloads/{name}")
    assert [finding.rule for finding in report.findings if finding.severity in {"high", "medium"}] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_steps_are_those_of_the_marks_and_none_is_taken_for_a_prefill(name: str) -> None:
    """Found anew, without those that the slice keeps: also those that launch a graph kernel by kernel."""
    found = samples.analysis(f"workloads/{name}")
    anew = find_steps(build_timeline(replace(found.trace, part=None)))
    mark = "execute_context_#(#)_generation_#(#)" if name.startswith("vllm") else "decode_step"
    assert (anew.method, anew.mark) == ("nvtx", mark)
    assert set(anew.windows["excluded"].drop_nulls()) <= {"head", "tail", "capture_start"}
    counts = [steps.windows["excluded"].null_count() for steps in (found.steps, anew)]
    assert counts[1] == pytest.approx(counts[0], abs=2)


def test_a_graph_that_is_missing_in_some_steps_is_named_with_what_its_steps_take() -> None:
    first = samples.report("workloads/fallback.node").findings[0]
    assert first.title == "verify runs without its graph in 3 of 16 steps"
    assert "launched as 241 single kernels" in first.message
    assert "these steps take 4.20 ms, the others 1.04 ms" in first.message
    assert first.recoverable_ns is None, "the median step has its graph"


def test_a_step_without_graphs_is_bound_by_its_launches_and_not_by_the_number_it_reads() -> None:
    told = samples.report("workloads/eager.graph")
    first = told.findings[0]
    assert (first.rule, told.steps.count) == ("CUDA102", 8)
    assert "310 launches and copies a step" in first.title
    assert {finding.severity for finding in told.findings if finding.rule == "TORCH001"} == {"info"}


def test_a_rank_that_works_longer_and_stays_ahead_is_not_blamed() -> None:
    """Rank 1 worked 0.4 ms longer on the host, of a step of 1.56 ms: its GPU never waited for it."""
    told = samples.report("workloads/slow_rank.node")
    assert [device.inter_graph.host_late_ns for device in told.devices] == [0, 0]
    skews = [finding for finding in told.findings if finding.rule == "CUDA131"]
    assert [(skew.devices[0].gpu, skew.site.role) for skew in skews] == [(0, "verify")]
    assert {finding.rule for finding in told.findings if finding.severity in {"high", "medium"}} == {"CUDA131"}


def test_work_that_begins_late_behind_a_launch_in_time_is_not_laid_at_the_hosts_door() -> None:
    """GPU 1 began the last graph of every step up to 2.4 ms late, launched long before; nothing says why."""
    told = samples.report("workloads/slow_rank.graph")
    assert [device.inter_graph.host_late_ns for device in told.devices] == [0, 0]
    skew, queued = [finding for finding in told.findings if finding.severity in {"high", "medium"}]
    assert (skew.rule, skew.devices[0].gpu, skew.site.role) == ("CUDA132", 1, "draft-extend")
    assert (queued.rule, queued.devices[0].gpu, queued.steps_affected) == ("CUDA164", 1, 20)
    assert "GPU 1 idles" in queued.message
    assert told.verdict
    assert told.verdict.blame.endswith("GPU 1 begins draft-extend late by 1.51 ms a step, and GPU 0 waits inside.")


@pytest.mark.parametrize("name", ["fallback.node", "empty_cache.graph", "lazy.graph"])
def test_a_wait_for_the_step_before_is_not_taken_for_one_of_the_running_step(name: str) -> None:
    """All of them wait for the event of the step before, and something else costs them their lead."""
    told = {finding.rule: finding.severity for finding in samples.report(f"workloads/{name}").findings}
    assert "CUDA006" not in told
    assert told.get("CUDA013", "low") in {"low", "info"}


def without_waits(name: str) -> tuple[float, float]:
    """The recorded median step of a sample, and the predicted one without any wait, in ms."""
    (then,) = predict(samples.analysis(f"workloads/{name}").study.model, [ALL]).values()
    return then.now_ns / MS, then.step_ns / MS


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("read.graph", UNTRACED_MS["ahead"]),
        ("plan_device.graph", UNTRACED_MS["plan_host"]),
        ("batching_sync.graph", UNTRACED_MS["batching_async"]),
    ],
)
def test_without_its_wait_the_step_is_that_of_the_program_that_has_none(name: str, truth: float) -> None:
    assert without_waits(name)[1] == pytest.approx(truth, rel=0.02)


@pytest.mark.parametrize(("name", "fixed"), [("read.node", "ahead.node"), ("plan_device.node", "plan_host.node")])
def test_in_node_mode_it_is_that_of_the_fixed_program_in_node_mode(name: str, fixed: str) -> None:
    """Where every launch call is slow, the gap that one leaves is the host's, and no gap of the queue."""
    assert without_waits(name)[1] == pytest.approx(without_waits(fixed)[0], rel=0.07)


@pytest.mark.parametrize("name", VLLM_MS)
def test_the_correction_holds_the_step_of_the_process_without_the_profiler(name: str) -> None:
    overhead = samples.report(f"workloads/{name}").overhead
    low, high = overhead.range_ns or (0, 0)
    assert low <= VLLM_MS[name] * MS <= high
    assert overhead.corrected_step_ns is None or high - low <= 0.3 * overhead.corrected_step_ns


@pytest.mark.parametrize("mode", ["node", "graph"])
def test_without_its_wait_vllm_takes_untraced_what_another_process_takes_that_has_none(mode: str) -> None:
    """Across processes of two machines, whose hosts differ by a fifth: a comparison, no proof."""
    study = samples.analysis(f"workloads/vllm_sync.{mode}").study
    (lane,) = study.ranks
    untraced = study.at_untraced(lane, VLLM_MS[f"vllm_sync.{mode}"] * MS, mean=True)
    then = predict(untraced.model, [ALL])[lane]
    assert then.step_ns == pytest.approx(VLLM_MS[f"vllm_full.{mode}"] * MS, rel=0.08)


def test_traced_the_two_differ_by_what_the_wait_is_said_to_cost() -> None:
    sync, asynchronous = (samples.report(f"workloads/{name}.graph") for name in ("vllm_sync", "vllm_full"))
    (wait,) = (finding for finding in sync.findings if finding.rule == "VLLM002")
    least, most = wait.recoverable_range_ns or (0, 0)
    now, then = sync.overhead.traced_step_ns or 0, asynchronous.overhead.traced_step_ns or 0
    assert least <= now - then <= most


def test_asynchronous_batching_is_as_much_faster_as_predicted() -> None:
    """Two runs of transformers' continuous batching, of which the synchronous one alone was asked."""
    now, then = without_waits("batching_sync.graph")
    measured = UNTRACED_MS["batching_sync"] / UNTRACED_MS["batching_async"]
    assert now / then == pytest.approx(measured, rel=0.03)


def test_no_step_is_promised_to_be_shorter_than_its_replay_with_the_gaps_inside() -> None:
    """One graph a step on a stream of its own; the asynchronous run took 8.457 ms a step in node mode."""
    assert without_waits("batching_sync.node")[1] == pytest.approx(8.457, rel=0.01)
