"""More captures of SGLang 0.5.17, vLLM 0.26.0 and transformers 5.17, of machines with H200s, and what is known of each.

See sample_traces/README.md. Nothing was shaped on them before they were read for the first time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl
import pytest

from bubblefinder.causes.collective_names import is_collective
from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.model import INTER_CLASSES
from tests import reference
from tests.samples import analysis, report

if TYPE_CHECKING:
    from bubblefinder.report.found import Finding
    from bubblefinder.trace.model import Trace

MS = 1_000_000
NEXTN = ("draft", "verify", "draft-extend")
READS = ["SGL001", "SGL005", "FI003", "FI001", "FI001"]
"""The lengths, the draft's index array, and what plan() reads and writes."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a capture.

    Attributes:
        steps: decode steps of the slice.
        roles: the graphs of a step.
        requests: how many were sent together.
        untraced: the shortest and the longest of the runs of its process without the profiler, over the same tokens.
        median: their median; of one whose runs get shorter from one to the next, the last, right before the capture.
        by: what tells the steps where the slice doesn't.
        ahead: the GPU sets the pace: the host is never late.
        paced: the GPU sets the pace of nearly all steps.
    """

    steps: int
    roles: tuple[str, ...]
    requests: int | None
    untraced: tuple[float, float] | None
    median: float | None = None
    by: str = "cadence"
    ahead: bool = False
    paced: bool = False


KNOWN = {
    "sglang/hybrid.graph": Known(30, ("decode",), 1, (5.55, 5.95), 5.74, ahead=True),
    "sglang/hybrid.node": Known(12, ("decode",), 1, (5.83, 5.90), 5.87, ahead=True),
    "sglang/hybrid_nextn.graph": Known(20, NEXTN, 1, (10.13, 10.99), 10.49),
    "sglang/tp2.graph": Known(20, NEXTN, 1, (8.19, 9.33), 8.22),
    "sglang/tp2.node": Known(8, NEXTN, 1, (7.03, 7.21), 7.12),
    "vllm/piecewise_8.node": Known(12, ("decode",), 8, (8.09, 9.75), 8.71, by="nvtx"),
    "vllm/sync_logprob.graph": Known(30, ("decode",), 1, (3.64, 4.38), 3.64, by="nvtx"),
    "vllm/ngram.graph": Known(22, ("decode",), 1, (4.36, 4.77), 4.43, by="nvtx"),
    "vllm/sync_chains.node": Known(12, ("decode",), 1, None, by="nvtx"),
    "workloads/vllm_piecewise.graph": Known(20, ("decode",), 1, (6.223, 6.224), 6.223, by="nvtx"),
    "workloads/vllm_piecewise.node": Known(14, ("decode",), 1, (9.216, 9.217), 9.216, by="nvtx"),
    "workloads/sglang_plain.graph": Known(28, ("decode",), 1, (4.00, 4.75), 4.66, ahead=True),
    "workloads/sglang_plain.node": Known(12, ("decode",), 1, (3.98, 4.65), 4.48, ahead=True),
    "workloads/sglang_triton.graph": Known(30, NEXTN, 1, (7.95, 8.26), 8.07),
    "workloads/sglang_patched.graph": Known(30, NEXTN, 1, (6.30, 8.15), 7.02),
    "workloads/sglang_nextn_8.graph": Known(24, NEXTN, 8, (10.10, 11.45), 10.28),
    "workloads/sglang_hybrid_flashinfer.graph": Known(20, ("draft", "verify"), 1, (14.94, 15.99), 15.53),
    "workloads/sglang_hybrid_nextn.graph": Known(30, NEXTN, 1, (10.18, 11.21), 10.55, paced=True),
    "workloads/sglang_hybrid_nextn_2.graph": Known(30, NEXTN, 1, (10.14, 10.92), 10.39),
    "workloads/sglang_ngram.graph": Known(30, ("decode",), 1, (6.81, 7.78), 7.23),
    "workloads/sglang_fa3_nextn.graph": Known(30, ("draft", "verify"), 1, (5.516, 5.532), 5.527, paced=True),
    "workloads/generate_static.graph": Known(22, ("decode",), None, (2.291, 3.009), 2.511),
    "workloads/generate_assisted.graph": Known(8, (), None, (31.31, 48.13), 35.99, by="sequence"),
    "workloads/slow_rank_2ms.graph": Known(17, NEXTN, None, (2.596, 2.597), 2.597, by="nvtx"),
    "workloads/slow_rank_2ms.node": Known(12, NEXTN, None, (2.679, 2.680), 2.680, by="nvtx"),
}
TWO = [name for name in KNOWN if "tp2" in name or "slow_rank" in name]
AHEAD = [name for name, known in KNOWN.items() if known.ahead]
PIECES = ["vllm/piecewise_8.node", "workloads/vllm_piecewise.graph", "workloads/vllm_piecewise.node"]
FIRST_SKEW = {
    "sglang/tp2.graph": ("CUDA132", 0, "verify"),
    "sglang/tp2.node": ("CUDA131", 0, "verify"),
    "workloads/slow_rank_2ms.graph": ("CUDA132", 1, "draft-extend"),
    "workloads/slow_rank_2ms.node": ("CUDA131", 1, "draft-extend"),
}
"""Who is waited for longest: the rule, the late rank's GPU, and in which graph."""


def late_ns(finding: Finding) -> float:
    """What a finding says of how late a rank is, by its title."""
    number, unit = finding.title.partition(" late by ")[2].split(" ")[:2]
    return float(number) * {"us": 1_000, "ms": MS}[unit]


def rows_of(trace: Trace, gpu: int) -> pl.DataFrame:
    """When each collective of a GPU ended, and how long its row is."""
    names = [number for number, text in trace.names.items() if is_collective(text)]
    rows = trace.operations.filter(pl.col("name").is_in(names) & (pl.col("gpu") == gpu))
    return rows.select("end_ns", ns=pl.col("end_ns") - pl.col("start_ns")).sort("end_ns")


def named(name: str, rule: str) -> list[Finding]:
    return [finding for finding in report(name).findings if finding.rule == rule]


@pytest.mark.parametrize("name", KNOWN)
def test_the_ledger_is_that_of_the_definitions(name: str) -> None:
    devices = report(name).devices
    assert len(devices) == (2 if name in TWO else 1)
    for device in devices:
        told = {"busy": device.busy_ns, "intra_graph": device.intra_graph_ns or 0, "profiler": device.profiler_ns}
        told |= {"unrecorded": device.unrecorded_ns or 0}
        told |= {kind: getattr(device.inter_graph, f"{kind}_ns") for kind in INTER_CLASSES}
        assert {kind: time for kind, time in told.items() if time} == reference.ledger(analysis(name).trace, device.gpu)


@pytest.mark.parametrize(("name", "known"), KNOWN.items())
def test_steps_roles_and_requests_are_those_that_ran(name: str, known: Known) -> None:
    steps = report(name).steps
    assert (steps.count, steps.confidence, steps.rival) == (known.steps, "high", None)
    assert tuple(role.role for role in steps.roles) == known.roles
    assert steps.requests_steps.keys() <= {str(known.requests)}
    assert sum(steps.requests_steps.values()) >= (known.steps - 1 if known.requests else 0)


@pytest.mark.parametrize(("name", "known"), KNOWN.items())
def test_steps_are_found_without_what_the_slice_keeps_of_them(name: str, known: Known) -> None:
    found = find_steps(build_timeline(replace(analysis(name).trace, part=None)))
    assert {(one.method, one.confidence, one.rival) for one in found.detections.values()} == {(known.by, "high", None)}
    counted = found.windows.filter(pl.col("excluded").is_null()).group_by("gpu").len()["len"].to_list()
    assert all(abs(count - known.steps) <= 1 for count in counted)


@pytest.mark.parametrize(("name", "known"), KNOWN.items())
def test_what_its_process_took_untraced_lies_in_the_range_or_near_the_value(name: str, known: Known) -> None:
    if known.untraced is None or known.median is None:
        assert report(name).overhead.range_ns is None
        return
    overhead, (least, most) = report(name).overhead, known.untraced
    low, high = overhead.range_ns or (0, 0)
    if known.ahead or known.paced:
        assert overhead.corrected_step_ns == pytest.approx(known.median * MS, rel=0.02)
    else:
        assert low <= known.median * MS <= high
        assert low <= most * MS
        assert least * MS <= high
        assert overhead.corrected_step_ns is None or high - low < 0.3 * overhead.corrected_step_ns


@pytest.mark.parametrize("name", AHEAD)
def test_a_host_that_is_ahead_is_told_to_be_fine(name: str) -> None:
    told = report(name)
    assert told.verdict
    assert told.verdict.blame.startswith("The host is fine")
    assert {finding.severity for finding in told.findings} <= {"info", "low"}
    assert {device.inter_graph.host_late_ns for device in told.devices} == {0}
    assert not named(name, "CUDA112"), "the wait between its launches comes in one step"


def test_with_tritons_attention_the_lengths_are_read_and_nothing_is_planned() -> None:
    """Verify and the draft run linear attention and Triton's kernels: no plan(), and no index array to fetch."""
    first, *others = report("sglang/hybrid_nextn.graph").findings
    assert (first.rule, first.severity, first.site.bytes) == ("SGL001", "medium", 72)
    assert first.bound_after == "GPU"
    assert {finding.rule for finding in others} <= {"CUDA111"}


@pytest.mark.parametrize("mode", ["graph", "node"])
def test_each_rank_of_sglang_waits_in_the_same_chain_as_on_one_gpu(mode: str) -> None:
    chains = report(f"sglang/tp2.{mode}").wait_chains
    assert [chain.gpu for chain in chains] == [0, 1]
    assert [sorted(link.rule or "" for link in chain.links) for chain in chains] == [sorted(READS)] * 2


@pytest.mark.parametrize(("name", "expected"), FIRST_SKEW.items())
def test_the_rank_that_is_waited_for_longest_is_told_first(name: str, expected: tuple[str, int, str]) -> None:
    """Before it comes at most why that rank is late: its host."""
    leading = report(name).findings[0]
    assert leading.rule in {"CUDA101", expected[0]}
    assert expected[1] in [one.gpu for one in leading.devices]
    first = next(finding for finding in report(name).findings if finding.rule in {"CUDA131", "CUDA132"})
    assert (first.rule, [one.gpu for one in first.devices], first.site.role) == (
        expected[0],
        [expected[1]],
        expected[2],
    )
    other = "CUDA131" if expected[0] == "CUDA132" else "CUDA132"
    assert not named(name, other)


@pytest.mark.parametrize("name", ["sglang/tp2.node", "workloads/slow_rank_2ms.node"])
def test_what_the_late_rank_costs_the_other_is_what_the_collectives_own_rows_say(name: str) -> None:
    """A collective ends on both ranks at one moment; who began it last has the shorter row."""
    trace, steps, gpu = analysis(name).trace, analysis(name).steps.windows, FIRST_SKEW[name][1]
    mine, theirs = (rows_of(trace, one) for one in (gpu, 1 - gpu))
    met = mine.join_asof(theirs, on="end_ns", strategy="nearest", tolerance=20_000, suffix="_other").drop_nulls()
    assert len(met) > 0.95 * len(mine)
    decode = steps.filter(pl.col("excluded").is_null() & (pl.col("gpu") == gpu))
    inside = met["end_ns"].is_between(decode["start_ns"].min(), decode["end_ns"].max())
    waited = (met["ns_other"] - met["ns"]).clip(0, None).filter(inside).sum() / len(decode)
    told = sum(late_ns(finding) for finding in named(name, "CUDA131"))
    assert told == pytest.approx(waited, rel=0.1)


def test_what_collectives_work_by_themselves_is_the_shorter_row_of_each() -> None:
    """All of them run alone on their GPU here."""
    found = analysis("workloads/slow_rank_2ms.node")
    mine, theirs = (rows_of(found.trace, gpu) for gpu in (0, 1))
    met = mine.join_asof(theirs, on="end_ns", strategy="nearest", tolerance=20_000, suffix="_other").drop_nulls()
    decode = found.steps.windows.filter(pl.col("excluded").is_null() & (pl.col("gpu") == 0))
    inside = met["end_ns"].is_between(decode["start_ns"].min(), decode["end_ns"].max())
    own = met.select(pl.min_horizontal("ns", "ns_other")).to_series().filter(inside).sum()
    share = float(own) / float((decode["end_ns"] - decode["start_ns"]).sum())
    (told,) = named("workloads/slow_rank_2ms.node", "CUDA172")
    assert float(told.title.split(" %")[0]) / 100 == pytest.approx(share, abs=0.002)


def test_in_graph_mode_it_is_what_the_longer_replays_take_more() -> None:
    busy = {one.gpu: one.per_step["busy"].p50 or 0 for one in report("sglang/tp2.graph").steps.by_device}
    told = sum(late_ns(finding) for finding in named("sglang/tp2.graph", "CUDA132"))
    assert told == pytest.approx(busy[1] - busy[0], rel=0.05)


def test_a_rank_that_is_late_for_the_profilers_sake_is_nothing_grave() -> None:
    """Untraced the step of `sglang/tp2.node` takes 7.1 ms and not 10.6; the other has one rank that sleeps 2 ms."""
    slowed, slow = (named(name, "CUDA131")[0] for name in ("sglang/tp2.node", "workloads/slow_rank_2ms.node"))
    assert (slowed.severity, slow.severity) == ("low", "high")
    assert "Without the profiler as little as 203 us of this may be left." in slowed.message


@pytest.mark.parametrize("mode", ["graph", "node"])
def test_only_the_host_of_the_slow_rank_is_said_to_be_late(mode: str) -> None:
    name = f"workloads/slow_rank_2ms.{mode}"
    (late,) = named(name, "CUDA101")
    assert [one.gpu for one in late.devices] == [1]
    assert report(name).devices[0].inter_graph.host_late_ns == 0


@pytest.mark.parametrize("name", PIECES)
def test_a_graph_a_layer_is_said_where_the_host_is_late_for_it(name: str) -> None:
    told = report(name)
    first = told.findings[0]
    assert (first.rule, first.severity) == ("CUDA101", "high")
    assert "29 graph launches a step (VLLM003)" in first.message
    assert "execute_context_1" not in first.message, "a prefill's range"
    assert [role.replays_per_step for role in told.steps.roles] == [29]
    assert not named(name, "VLLM002")
    assert not named(name, "CUDA121"), "attention between the pieces is no chain of metadata"


def test_log_probabilities_leave_the_wait_for_the_tokens_what_it_is() -> None:
    first, *others = report("vllm/sync_logprob.graph").findings
    assert (first.rule, first.severity, first.site.api) == ("VLLM002", "high", "cudaEventSynchronize")
    assert {finding.severity for finding in others} <= {"info", "low"}


def test_with_tritons_attention_nothing_is_found_above_low() -> None:
    told = report("workloads/sglang_triton.graph")
    assert {finding.severity for finding in told.findings} <= {"info", "low"}
    assert told.verdict is not None
    assert told.verdict.blame == "No host call is to blame for idle time."


def test_requests_that_end_now_and_then_are_steps_of_fewer() -> None:
    """The engine ran 144 decode passes, 4.97 to 4.99 ms each (the median), of 32 requests down to one."""
    name = "workloads/sglang_requests_end.graph"
    told = report(name)
    assert (told.steps.count, told.steps.confidence, told.steps.rival) == (100, "high", None)
    assert told.steps.per_step["duration"].p50 == pytest.approx(4.988 * MS, rel=0.005)
    assert {int(number) for number in told.steps.requests_steps} <= set(range(3, 33))
    assert told.verdict is not None
    assert told.verdict.blame.startswith("The host is fine")
    found = find_steps(build_timeline(replace(analysis(name).trace, part=None)))
    (one,) = found.detections.values()
    assert (one.method, one.confidence, one.rival) == ("cadence", "high", None)
    assert abs(len(found.windows.filter(pl.col("excluded").is_null())) - 100) <= 1


def test_fa3_reads_nothing_and_its_draft_is_extended_without_a_graph() -> None:
    told = report("workloads/sglang_fa3_nextn.graph")
    assert [finding.severity for finding in told.findings] == ["info"]
    assert told.verdict is not None
    assert told.verdict.blame == "No host call is to blame for idle time."


ROWS = {
    "workloads/sglang_nextn_8.graph": READS,
    "workloads/sglang_hybrid_flashinfer.graph": ["FI002", "FI001"],
    "workloads/sglang_ngram.graph": ["SGL001", "FI001", "FI002", "FI003"],
}
"""The reads of each step, in their order; with linear attention and n-grams some of plan() are told by their shape."""


@pytest.mark.parametrize(("name", "rules"), ROWS.items())
def test_the_waits_of_an_engine_are_told_in_their_order(name: str, rules: list[str]) -> None:
    assert [link.rule for link in report(name).wait_chains[0].links] == rules


def test_without_its_reads_no_call_of_sglang_is_to_blame() -> None:
    told = report("workloads/sglang_patched.graph")
    assert {finding.severity for finding in told.findings} == {"info"}
    assert told.verdict is not None
    assert told.verdict.blame.startswith("No single host call is to blame")
    assert not told.wait_chains


def test_with_drafts_of_the_host_vllm_waits_for_the_accepted_tokens() -> None:
    first, *others = report("vllm/ngram.graph").findings
    assert (first.rule, first.severity, first.site.api) == ("VLLM002", "high", "cudaMemcpyAsync")
    assert {finding.severity for finding in others} <= {"info", "low"}


def test_a_long_graph_beside_more_pieces_of_other_steps_has_a_role_and_a_regime_of_its_own() -> None:
    steps = report("vllm/ngram.graph").steps
    drafting = [(regime.count, regime.headline, regime.roles[0].replays_per_step) for regime in steps.regimes]
    assert drafting == [(6, False, 29), (22, True, 1)]
    assert {role.role for regime in steps.regimes for role in regime.roles} == {"decode"}


def test_the_only_graph_of_a_step_decodes_though_no_range_says_so() -> None:
    trace = analysis("vllm/ngram.graph").trace
    found = find_steps(build_timeline(replace(trace, nvtx=trace.nvtx.clear(), part=None)))
    steps = found.windows.filter(pl.col("excluded").is_null())["index"]
    mine = found.replays.filter(pl.col("window_index").is_in(steps.implode()))
    assert set(mine["role"]) == {"decode"}
    assert found.confidence == "high"


def test_walked_stacks_name_vllms_only_wait_and_price_nothing() -> None:
    (only,) = report("vllm/sync_chains.node").findings
    assert (only.rule, only.site.api, only.site.frame) == ("VLLM002", "cudaEventSynchronize", "THCPEvent_synchronize")
    assert (only.severity, only.recoverable_ns, only.bubble_ns.p50) == ("info", None, None)
