"""The subjects a rule can be about, and what is common to them: their fields, their cost, their identity."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Final, get_type_hints

from bubblefinder.causes.facts import Facts, SiteFacts, StepFacts
from bubblefinder.causes.step_parts import HoleFacts, QueueFacts, RoleFacts, SeamFacts, SkewFacts

if TYPE_CHECKING:
    from collections.abc import Iterator

Subject = SiteFacts | StepFacts | RoleFacts | SeamFacts | HoleFacts | QueueFacts | SkewFacts

SUBJECTS: Final[dict[str, type[Subject]]] = {
    "wait": SiteFacts,
    "step": StepFacts,
    "role": RoleFacts,
    "seam": SeamFacts,
    "hole": HoleFacts,
    "queue": QueueFacts,
    "skew": SkewFacts,
}
KINDS: Final = {record: kind for kind, record in SUBJECTS.items()}
_IDENTITY: Final = {
    "wait": ("api", "copy_kind", "memory_kind", "nvtx", "frame", "after_role", "before_role"),
    "step": (),
    "role": ("role", "eager"),
    "seam": ("after_role", "before_role"),
    "hole": ("thread", "reason", "detail", "nvtx"),
    "queue": ("reason", "api"),
    "skew": ("collective", "role"),
}
_RANKED_BY: Final = {"wait": "bubble", "step": "host_slow", "skew": "skew"}
"""What a kind of subject is ranked by, as the beginning of its fields ``_share`` and ``_p50_ns``; else ``idle``."""
_USUAL: Final = 0.5
_ATTRIBUTE: Final = re.compile(r"^ {4}(\w+): ((?:.|\n {8})*)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a subject costs: its share of the decode steps, and the time that a what-if replay gives back."""

    share: float | None
    recoverable_ns: float | None


def subjects(facts: Facts) -> Iterator[Subject]:
    """Yield every subject: the waits, then each step and its parts."""
    yield from facts.sites
    for step in facts.steps:
        yield step
        yield from step.roles
        yield from step.seams
        yield from step.holes
        yield from step.queues
        yield from step.skews


def kind_of(subject: Subject) -> str:
    """Return ``wait``, ``step``, ``role``, ``seam``, ``hole``, ``queue`` or ``skew``."""
    return KINDS[type(subject)]


def identity(subject: Subject) -> tuple[object, ...]:
    """Return what tells a subject from others of its kind on any rank."""
    kind = kind_of(subject)
    return (kind, *(getattr(subject, name) for name in _IDENTITY[kind]))


def cost(subject: Subject, share: str | None, step_p50_ns: float | None) -> Cost:
    """Return the cost of a subject.

    The recoverable time over the median step where a replay computed it, else the share that the subject (or
    the rule, by naming one in `share`) ranks by. An eager phase is judged
    by what its graph would give. A slow host is judged by the median step: one long pause
    between two bursts of work says nothing about a step. A wait, a pause or a phase in less than half of the steps is
    judged by its share of the decode time: the median step doesn't have it. A wait in a chain is judged by what it
    gives in its turn: alone it only hands the wait on to the next. Idle for a late host, and what
    ranks wait for a late one, count as far as they surely remain without the profiler.
    """
    rare, busy = is_rare(subject), isinstance(subject, RoleFacts) and share is not None
    left: float = 1.0 if busy or rare else getattr(subject, "left_share", 1.0)
    recoverable, usual = None, None
    if isinstance(subject, SiteFacts | HoleFacts | RoleFacts | QueueFacts) and not busy:
        recoverable = None if rare else subject.recoverable_ns
    elif isinstance(subject, StepFacts) and share is None:
        recoverable, usual = subject.host_slow_recoverable_ns, subject.host_slow_p50_ns
    told = usual if recoverable is None else recoverable
    if told is not None and isinstance(subject, SiteFacts):
        told = max(told, subject.in_turn_ns or 0)
    if told is not None and step_p50_ns:
        return Cost(told * left / step_p50_ns, recoverable_ns=recoverable)
    known = getattr(subject, share or f"{_ranked_by(subject)}_share")
    return Cost(None if known is None else known * left, recoverable_ns=recoverable)


def is_rare(subject: Subject) -> bool:
    """Return whether less than half of the decode steps have it: the median step would lose nothing without it."""
    if not isinstance(subject, SiteFacts | HoleFacts | RoleFacts | QueueFacts):
        return False
    if not isinstance(subject, QueueFacts) and subject.steps_share is not None:
        return subject.steps_share < _USUAL
    return (subject.steps_affected or 0) < _USUAL * (subject.steps or 0)


def bubble_p50_ns(subject: Subject, share: str | None) -> float | None:
    """Return the time per step behind the usual share of a subject; None where a rule ranks by another one."""
    value: float | None = None if share else getattr(subject, f"{_ranked_by(subject)}_p50_ns")
    return value


def _ranked_by(subject: Subject) -> str:
    return _RANKED_BY.get(kind_of(subject), "idle")


@cache
def field_types(kind: str) -> dict[str, object]:
    """Return the type of every field of a kind of subject."""
    hints = get_type_hints(SUBJECTS[kind])
    return {field.name: hints[field.name] for field in fields(SUBJECTS[kind])}


@cache
def field_texts(kind: str) -> dict[str, str]:
    """Return what every field of a kind of subject means, from the docstring of its record."""
    text = inspect.getdoc(SUBJECTS[kind]) or ""
    return {name: " ".join(meaning.split()) for name, meaning in _ATTRIBUTE.findall(text)}
