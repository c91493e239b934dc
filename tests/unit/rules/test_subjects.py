from __future__ import annotations

from dataclasses import fields, replace

import pytest

from bubblefinder.causes.facts import Facts, SiteFacts, StepFacts
from bubblefinder.causes.step_parts import HoleFacts, RoleFacts, SeamFacts, SkewFacts
from bubblefinder.rules.subjects import SUBJECTS, bubble_p50_ns, cost, field_texts, identity, kind_of, subjects

SITE = SiteFacts(
    gpu=0,
    process=1,
    sites=(1,),
    api="cudaStreamSynchronize",
    steps=9,
    steps_affected=9,
    occurrences=9,
    bubble_share=0.2,
    bubble_p50_ns=500.0,
)
ROLE = RoleFacts(gpu=0, process=1, role="verify", eager=False, siblings_replay=True, idle_share=0.1, idle_p50_ns=30.0)
SEAM = SeamFacts(gpu=0, process=1, after_role="draft", before_role="verify", glue_kernels=6)
HOLE = HoleFacts(gpu=0, process=1, thread=None, steps=9, steps_affected=1, occurrences=1)
SKEW = SkewFacts(gpu=0, process=1, collective="ncclDevKernel_AllReduce")
STEP = StepFacts(
    gpu=0,
    process=1,
    mode="node",
    steps=9,
    host_slow_share=0.3,
    launching_share=0.05,
    roles=(ROLE,),
    seams=(SEAM,),
    holes=(HOLE,),
    skews=(SKEW,),
)


def test_every_part_of_a_step_is_a_subject() -> None:
    found = [kind_of(subject) for subject in subjects(Facts((SITE,), (STEP,)))]
    assert found == ["wait", "step", "role", "seam", "hole", "skew"]


def test_the_same_subject_on_another_rank_has_the_same_identity() -> None:
    assert identity(SITE) == identity(replace(SITE, gpu=1, process=2, sites=(7,)))
    assert identity(SITE) != identity(replace(SITE, before_role="draft"))
    assert identity(ROLE) != identity(replace(ROLE, role="draft"))


def test_a_replay_decides_what_a_wait_costs() -> None:
    assert cost(SITE, None, 1000.0).share == 0.2
    assert cost(replace(SITE, recoverable_ns=50.0), None, 1000.0).share == 0.05
    assert cost(replace(SITE, recoverable_ns=50.0), None, None).share == 0.2


def test_a_rule_may_rank_a_step_by_another_share() -> None:
    assert cost(STEP, None, 1000.0).share == 0.3
    assert cost(replace(STEP, host_slow_p50_ns=200.0), None, 1000.0).share == 0.2
    assert cost(STEP, "launching_share", 1000.0).share == 0.05
    assert cost(replace(STEP, host_slow_recoverable_ns=100.0), "launching_share", 1000.0).share == 0.05
    assert cost(replace(STEP, host_slow_recoverable_ns=100.0), None, 1000.0).share == 0.1


def test_no_bubble_is_told_for_a_share_it_does_not_belong_to() -> None:
    assert bubble_p50_ns(SITE, None) == 500.0
    assert bubble_p50_ns(ROLE, None) == 30.0
    assert bubble_p50_ns(STEP, "launching_share") is None


@pytest.mark.parametrize("kind", SUBJECTS)
def test_every_field_has_a_meaning(kind: str) -> None:
    assert {field.name for field in fields(SUBJECTS[kind])} == set(field_texts(kind))


def test_idle_for_a_late_host_counts_as_far_as_it_remains_without_the_profiler() -> None:
    assert cost(replace(STEP, left_share=0.5), None, 1000.0).share == 0.15
    assert cost(replace(STEP, left_share=0.5), "launching_share", 1000.0).share == 0.025
    assert cost(replace(SITE, recoverable_ns=50.0), None, 1000.0).share == 0.05


def test_a_wait_in_a_chain_is_judged_by_its_turn() -> None:
    assert cost(replace(SITE, recoverable_ns=5.0, in_turn_ns=80.0), None, 1000.0).share == 0.08
    assert cost(replace(SITE, recoverable_ns=90.0, in_turn_ns=80.0), None, 1000.0).share == 0.09
