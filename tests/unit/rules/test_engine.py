from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from bubblefinder.causes.evidence import Evidence
from bubblefinder.causes.facts import Facts, SiteFacts, StepFacts
from bubblefinder.causes.step_parts import HoleFacts, RoleFacts, SkewFacts
from bubblefinder.errors import UsageError
from bubblefinder.rules.config import Config
from bubblefinder.rules.engine import run_rules, selected, severity_of
from bubblefinder.rules.packs import load_packs

if TYPE_CHECKING:
    from bubblefinder.rules.model import Match, Rule, Verdicts

STEP_NS = 8_900_000
SEEN = ("pytorch", "flashinfer", "sglang", "python", "llm")

STEP = StepFacts(
    gpu=0, process=1, mode="node", steps=10, step_p50_ns=STEP_NS, host_slow_share=0.002, run_ahead_share=0.2
)
READ = SiteFacts(
    gpu=0,
    process=1,
    sites=(3,),
    api="cudaMemcpyAsync",
    copy_kind="DtoH",
    memory_kind="pageable",
    bytes=8,
    after_role="verify",
    before_role="draft-extend",
    steps=10,
    steps_affected=10,
    occurrences=10,
    per_step_count=1.0,
    bubble_p50_ns=1_670_000.0,
    bubble_share=0.187,
    recoverable_ns=1_640_000.0,
    private_stream=False,
    event_before=False,
    evidence=(Evidence("CUPTI_ACTIVITY_KIND_RUNTIME", 17, 100, 200),),
)
NAMED = replace(
    READ, nvtx="FutureMap.resolve_seq_lens_cpu", nvtx_stack=("decode_step", "FutureMap.resolve_seq_lens_cpu")
)
RESOLVE = replace(
    READ,
    api="cudaStreamSynchronize",
    memory_kind="pinned",
    private_stream=True,
    event_before=True,
    recoverable_ns=1_990_000.0,
)
ITEM = replace(READ, api="cudaStreamSynchronize", memory_kind="pinned")
PLAN = replace(
    READ, bytes=68, per_step_count=3.0, copies_after=("DtoH", "HtoD"), bubble_share=0.024, recoverable_ns=178_000.0
)


def verdicts(*sites: SiteFacts, steps: tuple[StepFacts, ...] = (STEP,), **config: Any) -> Verdicts:
    return run_rules(Facts(sites, steps, SEEN), load_packs(), Config.model_validate(config))


def only(*sites: SiteFacts, steps: tuple[StepFacts, ...] = (STEP,), **config: Any) -> Match:
    (match,) = verdicts(*sites, steps=steps, **config).findings
    return match


def test_a_name_is_high_confidence_and_the_generic_rule_also_matches() -> None:
    match = only(NAMED)
    assert (match.rule, match.severity, match.confidence) == ("SGL001", "high", "high")
    assert match.also_matches == ("CUDA001", "CUDA003")
    assert "1.67 ms" in match.message
    assert match.evidence == READ.evidence


def test_without_names_a_pageable_read_is_generic_and_names_candidates() -> None:
    match = only(READ)
    assert (match.rule, match.severity, match.confidence) == ("CUDA001", "high", "low")
    assert match.title == "Blocking read after verify"
    assert "resolve_seq_lens_cpu" in match.message
    assert ".tolist()" in match.message


def test_words_of_a_library_are_said_only_where_it_is_seen() -> None:
    waits = (READ, replace(ITEM, sites=(4,)), replace(PLAN, sites=(5,)), replace(RESOLVE, sites=(6,)))
    unseen = run_rules(Facts(waits, (STEP,)), load_packs(), Config()).findings
    assert {match.rule for match in unseen} == {"CUDA001"}
    told = " ".join(match.message + match.remedy for match in unseen)
    assert not any(word in told for word in ("torch", "plan", "SGLang", "vLLM", "FutureMap"))
    assert "torch.cuda.set_sync_debug_mode" in only(READ).remedy


def test_words_of_language_models_and_of_python_are_said_only_where_these_are_seen() -> None:
    sorts = RoleFacts(
        gpu=0, process=1, role="decode", eager=True, siblings_replay=True, span_share=0.8,
        long_kernels=("ampere_sgemm", "DeviceRadixSortOnesweepKernel"),
    )  # fmt: skip
    hole = HoleFacts(
        gpu=0, process=1, thread=None, pauses=(1,), steps=10, steps_affected=2, occurrences=2, hole_p50_ns=3e7,
        idle_p50_ns=3e7, idle_share=0.3,
    )  # fmt: skip
    step = replace(STEP, roles=(sorts,), holes=(hole,))
    event = replace(READ, api="cudaEventSynchronize", memory_kind="pinned", steps_behind=0)
    (same, pause) = run_rules(Facts((event,), (step,)), load_packs(), Config()).findings
    assert {same.rule, pause.rule} == {"CUDA006", "CUDA141"}
    for word in ("Serving", "Python", "gc.freeze", "interpreter"):
        assert word not in f"{same.message} {same.remedy} {pause.message} {pause.remedy}"
    seen = verdicts(event, steps=(step,)).findings
    assert {match.rule for match in seen} == {"CUDA006", "CUDA141", "CUDA153", "CUDA154"}
    assert "gc.freeze" in " ".join(match.remedy for match in seen)


def test_a_wait_in_few_steps_is_judged_by_its_share_of_all_steps() -> None:
    rare = replace(READ, steps_affected=2, bubble_share=0.2, recoverable_ns=0.0)
    assert (only(rare).severity, only(rare).recoverable_ns) == ("high", None)


def test_a_private_stream_behind_an_event_is_the_fingerprint_of_the_resolve() -> None:
    match = only(RESOLVE)
    assert (match.rule, match.confidence) == ("SGL001", "medium")


@pytest.mark.parametrize("other", [{"private_stream": False}, {"event_before": False}, {"memory_kind": "pageable"}])
def test_the_fingerprint_of_the_resolve_needs_all_of_it(other: dict[str, object]) -> None:
    assert only(replace(RESOLVE, **other)).rule != "SGL001"  # type: ignore[arg-type]


def test_a_pinned_scalar_on_the_stream_that_computes_is_a_scalar_read() -> None:
    match = only(ITEM)
    assert (match.rule, match.confidence) == ("TORCH001", "medium")


def test_three_small_reads_and_an_upload_are_a_plan() -> None:
    match = only(PLAN)
    assert (match.rule, match.severity, match.confidence) == ("FI002", "low", "medium")


def test_a_plan_named_by_its_range() -> None:
    match = only(replace(PLAN, nvtx="flashinfer.plan", nvtx_stack=("decode_step", "flashinfer.plan")))
    assert (match.rule, match.confidence) == ("FI001", "high")
    assert "FI002" in match.also_matches
    assert match.remedy.count("Never put plan() into a CUDA graph") == 1


def test_without_a_replay_severity_comes_from_the_bubble() -> None:
    match = only(replace(NAMED, recoverable_ns=None))
    assert (match.severity, match.confidence, match.recoverable_ns) == ("high", "high", None)


def test_a_bubble_with_nothing_to_recover_is_info() -> None:
    assert only(replace(ITEM, recoverable_ns=11_000.0, bubble_share=0.035)).severity == "info"


def test_an_unverified_rule_never_takes_the_place_of_a_verified_one() -> None:
    site = replace(READ, nvtx="gpu_model_runner: preprocess", nvtx_stack=("gpu_model_runner: preprocess",))
    packs = load_packs()
    doubted = [
        pack.model_copy(update={"rule": tuple(doubt(rule) if rule.id == "VLLM001" else rule for rule in pack.rule)})
        for pack in packs.packs
    ]
    (match,) = run_rules(Facts((site,), (STEP,)), replace(packs, packs=tuple(doubted)), Config()).findings
    assert match.rule == "CUDA001"
    assert "VLLM001" in match.also_matches
    assert "(VLLM001)" in match.message


def doubt(rule: Rule) -> Rule:
    return rule.model_copy(update={"status": "unverified"})


def test_a_framework_names_what_was_done_and_its_engine_whose_code_did_it() -> None:
    site = replace(READ, bytes=24, frame="THPVariable_cpu", frames=("THPVariable_cpu",))
    assert only(site).rule == "TORCH002"
    match = only(replace(site, kernels_before=("generate_draft_decode_kv_indices",)))
    assert match.rule == "SGL005"
    assert "TORCH002" in match.also_matches


def test_the_same_wait_on_two_ranks_is_one_finding() -> None:
    other = replace(NAMED, gpu=1, process=2, sites=(9,), recoverable_ns=1_700_000.0)
    match = only(NAMED, other, steps=(STEP, replace(STEP, gpu=1, process=2)))
    assert match.devices == ((0, 1), (1, 2))
    assert match.sites == (3, 9)
    assert match.recoverable_ns == 1_700_000.0
    assert len(match.evidence) == 2


def test_of_several_ranks_the_figures_are_those_of_the_one_shown_and_the_severity_that_of_the_worst() -> None:
    steps = (STEP, replace(STEP, gpu=1, process=2))
    mild = replace(NAMED, recoverable_ns=200_000.0, bubble_p50_ns=210_000.0)
    worst = replace(NAMED, gpu=1, process=2, sites=(9,))
    (match,) = run_rules(Facts((mild, worst), steps), load_packs(), Config(), (0, 1)).findings
    assert (match.recoverable_ns, match.bubble_p50_ns, match.severity) == (200_000.0, 210_000.0, "high")
    assert match.devices == ((0, 1), (1, 2))


def test_time_that_counts_as_busy_is_no_bubble() -> None:
    late = SkewFacts(gpu=1, process=1, collective="ncclAllReduce", skew_p50_ns=329_000.0, skew_share=0.05)
    single = RoleFacts(
        gpu=0,
        process=1,
        role="verify",
        eager=False,
        siblings_replay=True,
        idle_p50_ns=5_000.0,
        long_kernels=("sgemm",),
    )
    found = {match.rule: match for match in verdicts(steps=(replace(STEP, skews=(late,), roles=(single,)),)).findings}
    assert found.keys() == {"CUDA131", "CUDA153"}
    assert [match.bubble_p50_ns for match in found.values()] == [None, None]
    assert found["CUDA131"].severity == "medium"
    assert found["CUDA131"].title == "GPU 1 reaches ncclAllReduce late by 329 us a step"


def test_two_waits_of_one_rank_stay_apart() -> None:
    assert len(verdicts(NAMED, replace(NAMED, sites=(4,))).findings) == 2


def test_findings_come_worst_first() -> None:
    rules = [match.rule for match in verdicts(PLAN, RESOLVE).findings]
    assert rules == ["SGL001", "FI002"]


def test_a_healthy_step_has_no_finding() -> None:
    assert verdicts().findings == ()


def test_few_steps_show_nothing_that_recurs() -> None:
    assert only(NAMED, steps=(replace(STEP, steps=2),)).confidence == "low"


def test_one_long_pause_is_no_slow_host() -> None:
    assert verdicts(steps=(replace(STEP, mode="graph", host_slow_share=0.4, host_slow_p50_ns=0.0),)).findings == ()


def test_a_host_that_is_slow_without_a_wait() -> None:
    slow = replace(STEP, mode="graph", host_slow_share=0.4, host_slow_p50_ns=5_800_000.0, host_in_calls_share=0.1)
    match = only(steps=(slow,))
    assert (match.rule, match.severity) == ("CUDA101", "high")


def test_without_graphs_the_missing_graph_is_the_headline() -> None:
    eager = replace(
        STEP, mode="none", host_slow_share=0.5, launches_per_step=470.0, host_slow_p50_ns=7e6, host_in_calls_share=0.2
    )
    findings = verdicts(replace(ITEM, recoverable_ns=11_000.0), steps=(eager,)).findings
    assert [(match.rule, match.severity) for match in findings] == [("CUDA102", "high"), ("TORCH001", "info")]
    assert findings[0].also_matches == ("CUDA101",)


def test_launches_that_node_tracing_made_slow_are_info() -> None:
    assert only(steps=(replace(STEP, launching_share=0.2),)).severity == "info"


def test_gaps_inside_graphs_say_what_the_capture_shows_of_pdl() -> None:
    verify = RoleFacts(
        gpu=0, process=1, role="verify", eager=False, siblings_replay=True, nodes=1690, idle_share=0.118,
        idle_p50_ns=860_000.0, gap_p50_ns=416.0, pdl_overlap_share=0.0,
    )  # fmt: skip
    match = only(steps=(replace(STEP, roles=(verify,)),))
    assert (match.rule, match.severity, match.confidence) == ("CUDA151", "low", "low")
    assert "0.0 %" in match.message
    assert only(steps=(replace(STEP, roles=(replace(verify, pdl_overlap_share=0.3),)),)).rule == "CUDA152"


def test_an_eager_phase_beside_replays() -> None:
    phase = RoleFacts(
        gpu=0, process=1, role="draft-extend", eager=True, siblings_replay=True, nodes=41.0, unbroken=41.0,
        idle_share=0.2,
    )  # fmt: skip
    assert only(steps=(replace(STEP, roles=(phase,)),)).rule == "SGL004"
    assert only(steps=(replace(STEP, roles=(replace(phase, role="sample"),)),)).rule == "CUDA111"
    broken = replace(phase, role="sample", waits=5.0, unbroken=41 / 6)
    told = only(steps=(replace(STEP, roles=(broken,)),))
    assert (told.rule, told.severity) == ("CUDA112", "low")
    assert verdicts(steps=(replace(STEP, roles=(replace(phase, siblings_replay=False),)),)).findings == ()


def test_an_expected_wait_is_shown_with_reason_and_owner() -> None:
    entry = {
        "rule": "SGL001",
        "reason": "backend without lengths",
        "owner": "serving",
        "wait": {"nvtx_stack": "resolve"},
    }
    result = verdicts(NAMED, ITEM, expected=[entry])
    assert [match.rule for match in result.findings] == ["TORCH001"]
    assert [(e.match.rule, e.reason, e.owner) for e in result.expected] == [
        ("SGL001", "backend without lengths", "serving")
    ]


def test_rules_can_be_selected_and_ignored() -> None:
    assert only(NAMED, ignore=["sglang"]).rule == "CUDA001"
    assert only(NAMED, select=["blocking-read"]).rule == "CUDA001"
    assert verdicts(NAMED, select=["FI"]).findings == ()


def test_a_selection_that_fits_nothing_is_an_error() -> None:
    with pytest.raises(UsageError, match="did you mean 'sglang'"):
        selected(load_packs(), Config(select=("sglan",)))


@pytest.mark.parametrize(
    ("share", "severity"),
    [
        (None, "info"),
        (-0.1, "info"),
        (0.0099, "info"),
        (0.01, "low"),
        (0.03, "medium"),
        (0.0999, "medium"),
        (0.1, "high"),
    ],
)
def test_severity_is_a_share_of_the_step(share: float | None, severity: str) -> None:
    assert severity_of(share) == severity


def test_a_sort_does_not_hide_a_product_in_single_precision_nor_one_busy_time_another() -> None:
    single = RoleFacts(
        gpu=0, process=1, role="verify", eager=True, siblings_replay=True, span_share=0.8, tandem_ns=90_000.0,
        long_kernels=("ampere_sgemm", "DeviceRadixSortOnesweepKernel"),
    )  # fmt: skip
    step = replace(STEP, roles=(single,), copies_alone_share=0.2, copies_alone_kind="HtoD", collective_share=0.2)
    assert {match.rule for match in verdicts(steps=(step,)).findings} == {"CUDA153", "CUDA154", "CUDA171", "CUDA172"}
