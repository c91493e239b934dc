from __future__ import annotations

from bubblefinder.causes.accepted import with_accept_length
from bubblefinder.causes.facts import Facts, StepFacts
from bubblefinder.causes.step_parts import RoleFacts


def step(*roles: str) -> StepFacts:
    parts = tuple(RoleFacts(gpu=0, process=1, role=role, eager=False, siblings_replay=False) for role in roles)
    return StepFacts(gpu=0, process=1, mode="node", steps=9, roles=parts)


def test_only_steps_that_draft_have_an_accept_length() -> None:
    facts = Facts(sites=(), steps=(step("draft", "verify"), step("decode")))
    assert [one.accept_length for one in with_accept_length(facts, 2.5).steps] == [2.5, None]
    assert [one.accept_length for one in with_accept_length(facts, None).steps] == [None, None]
