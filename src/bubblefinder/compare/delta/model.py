"""The change of the mean step in parts: additions to diff/1. Times are nanoseconds a step, and every level sums."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bubblefinder.report.found import Confidence  # noqa: TC001 - msgspec reads the annotation

Kind = Literal[
    "same kernel", "launch shape", "another kernel", "new kernel", "gone kernel", "overlap lost", "overlap gained",
    "node gaps", "replays", "to eager", "to graph", "collective",
    "new wait", "gone wait", "behind a wait", "new call", "gone call", "call", "host work", "exposed", "pause",
    "queued", "not told",
]  # fmt: skip
"""What happened to a part: in a kernel or graph, or on the host while the GPU idled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that takes another time a step than it did.

    Attributes:
        kind: what happened to it.
        role: the part of the step it lies in; null outside replays.
        name: the kernel, the wait, the call or the NVTX range; on the base side where both have one.
        head_name: the kernel that took its place, where that is another.
        what: how it differs besides its time, in words.
        nodes: how many nodes of the graph it stands for; null outside replays.
        base_count: how often it occurs in a step of the base; head_count likewise.
        delta_ns: what it adds to the mean step.
    """

    kind: Kind
    role: str | None
    name: str | None
    head_name: str | None
    what: str | None
    nodes: int | None
    base_count: float | None
    head_count: float | None
    base_ns: int
    head_ns: int
    delta_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """A class of the ledger or a role, in the mean step of both sides."""

    name: str
    base_ns: int
    head_ns: int
    delta_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """What explains most of the change: `share` of it, and in words what it is and how sure that is."""

    kind: str
    name: str | None
    rank: int
    delta_ns: int
    share: float
    confidence: Confidence
    sentence: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The change of one rank's mean step: `classes`, `roles`, and `parts` with `residual_ns`, each sum to `delta_ns`.

    `residual_ns` is what is left: parts too small to list, and what captures of one side differ in among themselves.
    """

    rank: int
    base_ns: int
    head_ns: int
    delta_ns: int
    classes: list[Sum] = field(default_factory=list)
    roles: list[Sum] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    residual_ns: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast the host and the GPU were on what both sides have in common: times of head over times of base.

    Above 1 head was slower; null where there is too little in common to tell. `calls` and `nodes`: on how many
    kinds of calls and nodes of graphs that rests. `base_host_ns` and `head_host_ns`: what the launching threads
    themselves take in the mean step, at work and in calls that don't wait, whether the GPU idles meanwhile or not.
    `later_ns`: how much later each node of a replay begins on head, whatever it is, and `held_back_ns`: what that
    adds to a step; negative if sooner.
    `base_held`, `head_held`: the calls of the launching threads that don't wait, over so many times their medians.
    """

    host: float | None
    calls: int
    gpu: float | None
    nodes: int
    base_host_ns: float
    head_host_ns: float
    later_ns: float = 0.0
    held_back_ns: float = 0.0
    base_held: float = 1.0
    head_held: float = 1.0
