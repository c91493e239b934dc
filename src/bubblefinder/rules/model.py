"""What people write in rule packs, and what a rule says when it matches."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from bubblefinder.rules import template
from bubblefinder.rules.code import CODE
from bubblefinder.rules.match import About, Conditions, Pattern
from bubblefinder.rules.subjects import SUBJECTS, field_types
from bubblefinder.rules.suggest import Strict, did_you_mean
from bubblefinder.trace.programs import PROGRAMS

if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Self

    from bubblefinder.causes.evidence import Evidence
    from bubblefinder.rules.subjects import Subject

Severity = Literal["info", "low", "medium", "high"]
Confidence = Literal["low", "medium", "high"]
Status = Literal["verified", "drawn", "unverified"]

SEVERITIES: Final[tuple[Severity, ...]] = ("info", "low", "medium", "high")
CONFIDENCES: Final[tuple[Confidence, ...]] = ("low", "medium", "high")

SEVERITY_SHARES: Final[dict[Severity, float]] = {"low": 0.01, "medium": 0.03, "high": 0.10}
"""The share of a decode step from which a finding has at least that severity."""

LEADING_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)*")


def _known_program(name: str) -> str:
    if name not in PROGRAMS:
        raise ValueError(f"no such library{did_you_mean(name, PROGRAMS)}")
    return name


Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, pattern=r"^[^\n]*$")]
Prose = Annotated[str, AfterValidator(lambda text: " ".join(text.split())), StringConstraints(min_length=1)]
RuleId = Annotated[str, StringConstraints(pattern=r"^[A-Z]+[0-9]{3}$")]
Program = Annotated[str, AfterValidator(_known_program)]
RuleName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]
Version = Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)*$")]
Module = Annotated[str, StringConstraints(pattern=r"^[a-z_]\w*(\.\w+)*$")]
Function = Annotated[str, StringConstraints(pattern=r"^\w+(\.\w+)?$")]
Reference = Annotated[str, StringConstraints(pattern=r"^([\w.-]+/[\w.-]+#[0-9]+|https://\S+)$")]


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers that a version begins with: ``0.6.15.post1`` compares as 0.6.15."""
    leading = LEADING_NUMBERS.match(version)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()


class Advice(Strict):
    """What else to say where a library is seen at work: its own words for the cause and the cure."""

    seen: Program = Field(description="the library")
    remedy: Prose | None = Field(default=None, description="what to do there, after the rule's own remedy")
    candidates: tuple[Line, ...] = Field(default=(), description="its code that leaves this shape")


class Fired(Strict):
    """A capture on which a rule fired and was right."""

    program: Line = Field(description="what was captured, with its version")
    capture: Line = Field(description="which capture shows it: a sample, or a file of your own")


class Rule(Strict):
    """A rule: what it is called, what it looks for, what it says and how far it may go."""

    id: RuleId = Field(description="the pack's prefix and three digits; never used again for another rule")
    name: RuleName = Field(description="a few words with hyphens that read well after 'ignore'")
    title: Line = Field(description="the headline of the finding; {field} and [optional {field}] are filled in")
    status: Status = Field(
        description="verified: fired, and was right, on a capture that `fired_on` names (of its engine, for an "
        "engine's rule); drawn: on drawn timelines alone; unverified: on neither, severity at most low",
    )
    fired_on: tuple[Fired, ...] = Field(default=(), description="captures on which it fired and was right")
    since: str = Field(pattern=r"^\d+\.\d+\.\d+$", description="the version that brought the rule")
    generic: bool = Field(default=False, description="says what happened but not which code did it: confidence low")
    seen: Program | None = Field(
        default=None,
        description="the library that the capture must show at work: by a kernel, a range, a frame or a thread",
    )
    severity_at_most: Severity = "high"
    confidence_at_most: Confidence = "high"
    share: str | None = Field(
        default=None, description="the field that the severity comes from, instead of the usual one"
    )
    code: str | None = Field(default=None, description="a shipped Python check that must hold beside the conditions")
    finds: Prose = Field(description="what the rule looks for, for its documentation page")
    says: Prose = Field(description="the message of the finding; {field} and [optional {field}] are filled in")
    remedy: Prose = Field(description="what to do, with the conditions under which it holds")
    candidates: tuple[Line, ...] = Field(
        default=(), description="code that leaves this shape, where the rule can't tell which"
    )
    advice: tuple[Advice, ...] = Field(default=(), description="what else to say where a library is seen")
    references: tuple[Reference, ...] = Field(default=(), description="owner/repository#number, or an https address")
    wait: tuple[Annotated[Conditions, About("wait")], ...] = Field(
        default=(), description="any of which is enough, about a wait"
    )
    step: tuple[Annotated[Conditions, About("step")], ...] = Field(default=(), description="the same about a step")
    role: tuple[Annotated[Conditions, About("role")], ...] = Field(
        default=(), description="the same about a role of the step"
    )
    seam: tuple[Annotated[Conditions, About("seam")], ...] = Field(
        default=(), description="the same about a seam between two roles"
    )
    hole: tuple[Annotated[Conditions, About("hole")], ...] = Field(
        default=(), description="the same about a hole without CUDA calls"
    )
    queue: tuple[Annotated[Conditions, About("queue")], ...] = Field(
        default=(), description="the same about what holds queued work back"
    )
    skew: tuple[Annotated[Conditions, About("skew")], ...] = Field(
        default=(), description="the same about a skew between ranks"
    )

    @field_validator("code")
    @classmethod
    def _code_is_shipped(cls, name: str | None) -> str | None:
        if name is not None and name not in CODE:
            raise ValueError(f"no such check{did_you_mean(name, CODE)}")
        return name

    @model_validator(mode="after")
    def _verified_where(self) -> Self:
        if (self.status == "verified") != bool(self.fired_on):
            raise ValueError("a verified rule names a capture in fired_on, and no other rule does")
        return self

    @cached_property
    def about(self) -> str:
        """The kind of subject the rule is about."""
        return next(kind for kind in SUBJECTS if getattr(self, kind))

    def advice_for(self, programs: Collection[str]) -> tuple[Advice, ...]:
        """Return the advice about libraries that a capture shows at work."""
        return tuple(advice for advice in self.advice if advice.seen in programs)

    @cached_property
    def alternatives(self) -> tuple[Conditions, ...]:
        """The tables of conditions; the rule matches where one of them holds."""
        return tuple(getattr(self, self.about))

    @model_validator(mode="after")
    def _is_about_one_thing(self) -> Self:
        kinds = [kind for kind in SUBJECTS if getattr(self, kind)]
        if len(kinds) != 1:
            told = f"it has {' and '.join(kinds)}" if kinds else "it has none"
            raise ValueError(f"a rule has conditions on one of {', '.join(SUBJECTS)}; {told}")
        known = field_types(kinds[0])
        asked = [*template.names(self.title), *template.names(self.says), *([self.share] if self.share else [])]
        if unknown := [name for name in asked if name not in known]:
            raise ValueError(f"a {kinds[0]} has no field {unknown[0]!r}{did_you_mean(unknown[0], known)}")
        return self


class Switch(Strict):
    """What makes an engine open NVTX ranges of its own."""

    set: Line = Field(description="the variable or option, as it is given")
    opens: Pattern = Field(description="what the names of these ranges look like")
    names: Line = Field(description="what then has a name")
    cost: Line = Field(description="what it was seen to cost, on which version; or that it wasn't measured")


class Functions(Strict):
    """Functions of one module."""

    module: Module = Field(description="where they are defined, as it is imported")
    names: tuple[Function, ...] = Field(min_length=1, description="`function` or `Class.method`; aliases apart")
    about: str | None = Field(default=None, description="what they do in a step")
    since: Version | None = Field(default=None, description="the first version that is known to have them")
    until: Version | None = Field(default=None, description="the first version without them")

    @model_validator(mode="after")
    def _some_version_has_them(self) -> Self:
        if self.since and self.until and _numbers(self.since) >= _numbers(self.until):
            raise ValueError(f"no version lies from {self.since} up to {self.until}")
        return self

    def in_version(self, version: str | None) -> bool:
        """Return whether a version has them, as far as is known; without a version all are wanted."""
        if version is None:
            return True
        asked = _numbers(version)
        return (self.since is None or asked >= _numbers(self.since)) and (
            self.until is None or asked < _numbers(self.until)
        )


class Pack(Strict):
    """A file of rules for one program or library."""

    pack: RuleName = Field(description="the pack's name")
    prefix: str = Field(pattern=r"^[A-Z]+$", description="what the ids of its rules start with")
    about: Line = Field(description="what the pack covers")
    checked: Line | None = Field(default=None, description="the versions its facts were read from")
    switch: Switch | None = Field(default=None, description="what makes the engine name its parts by itself")
    functions: tuple[Functions, ...] = Field(
        default=(), description="Python functions around which Nsight Systems can open ranges by itself"
    )
    rule: tuple[Rule, ...] = ()

    @model_validator(mode="after")
    def _ids_belong_together(self) -> Self:
        for rule in self.rule:
            if rule.id.rstrip("0123456789") != self.prefix:
                raise ValueError(f"the id {rule.id} doesn't start with the pack's prefix {self.prefix}")
        return self


class Category(Strict):
    """A kind of kernel, told by its name."""

    name: str = Field(pattern=r"^[a-z_]+(\.[a-z_]+)?$")
    pattern: Pattern = Field(description="a regular expression that is found in the kernel's name, case ignored")


class Kernels(Strict):
    """A file of kernel categories; the first that fits wins."""

    category: tuple[Category, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A rule that matched: the headline of one subject, on every rank that has it.

    Attributes:
        rule: id of the rule.
        name: its name.
        title: the headline with the subject's figures.
        severity: info, low, medium or high, from the share of the step.
        confidence: low, medium or high: a shape, a fingerprint or a name.
        subject: the facts that were matched, of the rank where they cost most.
        devices: (gpu, process) of every rank that has it.
        sites: numbers in `causes.sites` over all ranks; empty unless the subject is a wait.
        share: share of the decode steps that severity and order come from: what its cure gives back, where that is
            known; None where unknown.
        bounded: whether the rule bounds the severity, since its share is no gain.
        bubble_p50_ns: the time per step behind that share; None where a rule ranks by a share of its own.
        recoverable_ns: by the what-if replay; None without one.
        message: what happened, with figures.
        remedy: what to do about it.
        references: pull requests and issues.
        also_matches: ids of the other rules that fit the same subject, best first.
        evidence: rows of the export, over all ranks.
    """

    rule: str
    name: str
    title: str
    severity: Severity
    confidence: Confidence
    subject: Subject
    devices: tuple[tuple[int, int], ...]
    sites: tuple[int, ...] = ()
    share: float | None
    bounded: bool = False
    bubble_p50_ns: float | None
    recoverable_ns: float | None
    message: str
    remedy: str
    references: tuple[str, ...] = ()
    also_matches: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class ExpectedMatch:
    """A match that an allow-list covers: it is shown with the reason and the owner, never dropped."""

    match: Match
    reason: str
    owner: str


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the rules say of a capture: findings, worst first, and those that were expected."""

    findings: tuple[Match, ...] = field(default=())
    expected: tuple[ExpectedMatch, ...] = field(default=())
