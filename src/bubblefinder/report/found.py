"""What a report says of causes: the waits and other findings, what they cost, and what the numbers rest on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bubblefinder.causes.evidence import Evidence  # noqa: TC001 - decoding reads the annotation

Severity = Literal["info", "low", "medium", "high"]
Confidence = Literal["low", "medium", "high"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """p50 and p95 over the steps in which the site occurs."""

    p50: float | None
    p95: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceRef:
    """One process on one GPU."""

    gpu: int
    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Waits that share an api, a copy, a place in the program and a place in the step.

    `role` is the part of the step that a finding is about where it is about the inside of one, not about a wait.
    """

    api: str | None = None
    copy_kind: str | None = None
    memory_kind: str | None = None
    bytes: int | None = None
    nvtx: str | None = None
    frame: str | None = None
    thread: str | None = None
    after_role: str | None = None
    before_role: str | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause of idle time, with what it costs and what to do about it."""

    rule: str
    title: str
    severity: Severity
    confidence: Confidence
    devices: list[DeviceRef]
    site: Site
    per_step_count: float | None
    occurrences: int | None
    steps_affected: int | None
    host_blocked_ns: Quantiles
    bubble_ns: Quantiles
    recoverable_ns: int | None
    evidence: list[Evidence]
    message: str
    remedy: str
    references: list[str]
    also_matches: list[str]
    step_after_ns: int | None = None
    bound_after: str | None = None
    in_turn_ns: int | None = None
    """Of a wait in `wait_chains`: what the median step loses without it when the waits before it are gone too."""
    in_turn_range_ns: list[int] | None = None
    """The same at least and at most; where the profiler's part of the step can't be told there is this range alone."""
    idle_share: float | None = None
    recoverable_range_ns: list[int] | None = None
    """What the median step loses at least and at most on any one of the hosts that another run may meet, with and
    without the cause on the same host. Where the profiler's part of the step can't be told there is this range alone,
    on hosts without the profiler, and no value."""
    step_after_range_ns: list[int] | None = None
    caveats: list[str] = field(default_factory=list)
    """What the prediction rests on that the capture doesn't show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """The median step of the reported rank without all waits and pauses that are found: their gains don't add up."""

    findings: int
    step_ns: int
    recoverable_ns: int
    range_ns: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Benign:
    """Waits under which the GPU stayed fed."""

    devices: list[DeviceRef]
    site: Site
    per_step_count: float | None
    occurrences: int
    host_blocked_ns: Quantiles
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A finding that an allow-list covers, shown with the reason and who owns it."""

    finding: Finding
    reason: str
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """The median step after a change, by the what-if replay.

    `range_ns` is its low and its high end over the hosts that another run may meet, `recoverable_range_ns` the least
    and the most that the change gives on any one of them: the two don't subtract. Where the profiler's part of the step
    can't be told there are ranges alone, over hosts without the profiler, and what bounds the step then isn't known.
    """

    recoverable_ns: int | None
    step_after_ns: int | None
    range_ns: list[int]
    recoverable_range_ns: list[int]
    bound_after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainLink:
    """One wait of a chain.

    Attributes:
        rule: the finding about it; null where no selected rule has one.
        title: that finding's title, or the call.
        api: the call.
        recoverable_ns: what the median step loses without this wait alone: the next one then waits instead.
        in_turn_ns: what it loses when the links before this one are gone too; they sum to what all together give.
        moves_to: position of the link that waits in its place when it alone is gone; null if none does.
        recoverable_range_ns: between which ends `recoverable_ns` lies; alone where the profiler's part can't be told.
        in_turn_range_ns: the same of `in_turn_ns`.
    """

    rule: str | None
    title: str
    recoverable_ns: int | None
    in_turn_ns: int | None
    api: str | None = None
    moves_to: int | None = None
    recoverable_range_ns: list[int] | None = None
    in_turn_range_ns: list[int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitChainReport:
    """The waits that hold a rank's launching thread one after the other, and what removing them together gives.

    From the return of the first the host works for `preparing_ns`, until it is ahead of the GPU or waits in it again;
    for `idle_ns` of that the GPU has nothing to do; both are medians. `step_ns` is the step as recorded, `joint` the
    step without any of the waits, `half_work` the step with a host that needs half the time for its own work, `both`
    the step with neither the waits nor that half. Without the waits and without the profiler the step lies in
    `untraced_range_ns`, as wide as what is known of the profiler's cost and of hosts' speed; null where nothing is
    known of that cost.
    """

    gpu: int
    pid: int
    step_ns: int
    joint: Predicted
    half_work: Predicted
    both: Predicted
    links: list[ChainLink] = field(default_factory=list)
    preparing_ns: int | None = None
    idle_ns: int | None = None
    untraced_range_ns: list[int] | None = None
