"""What is accepted of the drafts: said by the user or a benchmark, since no capture shows it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bubblefinder.causes.facts import Facts


def with_accept_length(facts: Facts, accept_length: float | None) -> Facts:
    """Return the facts with what is accepted in the steps that draft; no capture shows it."""
    steps = [
        replace(
            step, accept_length=accept_length if any(role.role.startswith("draft") for role in step.roles) else None
        )
        for step in facts.steps
    ]
    return replace(facts, steps=tuple(steps))
