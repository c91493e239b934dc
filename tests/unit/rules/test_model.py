from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from bubblefinder.rules.model import Pack, Rule

VALID: dict[str, Any] = {
    "id": "OUR001",
    "name": "our-read",
    "title": "Read[ in {nvtx}]",
    "status": "drawn",
    "since": "0.1.0",
    "finds": "x",
    "says": "{bubble_p50_ns}",
    "remedy": "x",
    "wait": [{"copy_kind": "DtoH"}],
}


def test_a_rule_is_about_what_its_conditions_are_on() -> None:
    rule = Rule.model_validate(VALID)
    assert rule.about == "wait"
    assert len(rule.alternatives) == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"wait": []}, "it has none"),
        ({"step": [{"mode": "none"}]}, "it has wait and step"),
        ({"title": "{bubble_p50}"}, "did you mean 'bubble_p50_ns'"),
        ({"says": "{nodes}"}, "a wait has no field 'nodes'"),
        ({"share": "idle"}, "a wait has no field 'idle'"),
        ({"code": "plan-read"}, "did you mean 'plan-reads'"),
        ({"references": ["sglang 26128"]}, "should match pattern"),
        ({"id": "our1"}, "should match pattern"),
        ({"severity_at_most": "critical"}, "'info', 'low', 'medium' or 'high'"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(change: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError) as error:
        Rule.model_validate(VALID | change)
    assert told in str(error.value)


def test_ids_start_with_the_packs_prefix() -> None:
    with pytest.raises(ValidationError, match="prefix"):
        Pack.model_validate({"pack": "ours", "prefix": "MY", "about": "x", "rule": [VALID]})
