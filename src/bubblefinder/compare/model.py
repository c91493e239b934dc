"""diff/1: what changed between two sides, as one value that every rendering starts from.

The field names are the JSON names. Times are nanoseconds; unknown is null. Readers must ignore keys they
don't know.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

# msgspec reads the annotations at run time.
from bubblefinder.compare.delta.model import Delta, Speed, Suspect  # noqa: TC001
from bubblefinder.report.charts import StepTimeline  # noqa: TC001 - decoding reads the annotation
from bubblefinder.report.found import Confidence, Site  # noqa: TC001
from bubblefinder.report.model import Tool  # noqa: TC001

SCHEMA: Final = "bubblefinder.diff/1"
LENGTHS: Final = ("step.duration.mean", "step.duration.p50")
"""The metrics that say how long a step is."""

Regime = Literal["gpu", "host"]
Verdict = Literal["regression", "improvement", "no change", "mixed", "can't tell", "incomparable"]
Status = Literal["better", "worse", "changed", "same", "new", "gone", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One capture of a side: where it comes from and what it rests on."""

    name: str
    label: str | None
    commit: str | None
    capture_mode: str
    nsys_version: str | None
    gpus: list[str | None]
    ranks: int
    steps: int
    regime: Regime


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Where the line between a difference and noise comes from.

    `floor` is the relative difference of the step that one capture a side must exceed. `degrees` counts
    the degrees of freedom of the spread between captures that was measured, of which `history` come from
    stored runs; 0 means that only the stated floor is known.
    """

    regime: Regime
    floor: float
    least: float
    degrees: int
    history: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A metric on one side: the mean over its captures, each capture's value, and how many steps they hold.

    `low` and `high` bound the value by the steps inside the capture (95 % block bootstrap); null with
    several captures a side, or without steps.
    """

    value: float | None
    captures: list[float | None]
    steps: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One metric on both sides. It differs only if `delta` is beyond `threshold` and beyond the steps' own spread.

    `explained`: the threshold is the least there is, since a call that came or went accounts for the difference.
    `stalls`: likewise, since so many steps of one side, some in each capture, are longer than all of the other's.
    `tracer`: what of `delta` is the tracer's beyond doubt, in the same unit; the status is that of the rest.
    """

    metric: str
    where: dict[str, str | int]
    unit: str
    better: str
    base: Measured
    head: Measured
    delta: float | None
    ratio: float | None
    threshold: float | None
    explained: bool
    status: Status
    gated: bool
    stalls: int = 0
    tracer: float = 0.0

    @property
    def moved(self) -> bool:
        """Whether it is better or worse."""
        return self.status in {"better", "worse"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSide:
    """A finding's site on one side; `seen` captures of the side have it as a finding, costs are medians over them.

    `recoverable_range_ns` is the median of the low and of the high ends; alone where the profiler's part can't be told.
    """

    seen: int
    benign: int
    rule: str | None
    title: str | None
    severity: str | None
    per_step_count: float | None
    bubble_ns: float | None
    host_blocked_ns: float | None
    recoverable_ns: float | None
    recoverable_range_ns: list[float] | None
    steps_affected: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteChange:
    """A finding matched by its site. `structural`: the call itself is absent on the other side, drained or not.

    `status` is unknown where only one side has the finding, but both have as much idle time.
    """

    site: Site
    base: SiteSide
    head: SiteSide
    delta_ns: float | None
    status: Status
    structural: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelSide:
    """A kernel name inside a role on one side; means over the captures.

    `adds_ns`: the busy time that it adds to what ran before it. Early launches run beside it and wait, so their own
    time, `per_step_ns`, is more. Null where the report has no account of its steps.
    """

    per_step_count: float
    per_step_ns: float
    adds_ns: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelChange:
    """A kernel that adds another time to a step than it did: `delta_ns`, by its own time where that is all there is."""

    role: str | None
    name: str
    base: KernelSide | None
    head: KernelSide | None
    delta_ns: float
    status: Status


@dataclass(frozen=True, slots=True, kw_only=True)
class TypicalStep:
    """The median step of a side's median capture: its ledger, whose parts add up to its duration, and its picture."""

    capture: str
    index: int
    gpu: int
    duration_ns: int
    parts: dict[str, int]
    timeline: StepTimeline | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """What changed from base to head, whether it is real, and what that rests on.

    `offsets`: in words, what changed by more than the noise though the step as a whole did not.
    """

    schema: str
    tool: Tool
    verdict: Verdict
    confidence: Confidence
    headline: str
    inter_only: bool
    base: list[Capture]
    head: list[Capture]
    refusals: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    noise: Noise | None = None
    changes: list[Change] = field(default_factory=list)
    findings: list[SiteChange] = field(default_factory=list)
    kernels: list[KernelChange] = field(default_factory=list)
    speed: Speed | None = None
    deltas: list[Delta] = field(default_factory=list)
    suspects: list[Suspect] = field(default_factory=list)
    offsets: list[str] = field(default_factory=list)
    base_step: TypicalStep | None = None
    head_step: TypicalStep | None = None
