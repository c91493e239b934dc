"""Where the launching thread's step goes, as records: by phase, by call and by range."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPhase:
    """What the launching thread does from the launch of one role to the launch of the next, in a median step.

    Attributes:
        after_role: the role whose launch begins it.
        before_role: the role whose launch ends it.
        p50_ns: how long it lasts.
        waiting_p50_ns: inside calls that wait for the GPU.
        calls_p50_ns: inside other CUDA calls.
        between_p50_ns: between the calls: the program's own work.
        launches: launch calls in it per step.
        copies: copies and memsets in it per step.
    """

    after_role: str
    before_role: str
    p50_ns: float
    waiting_p50_ns: float
    calls_p50_ns: float
    between_p50_ns: float
    launches: float
    copies: float

    @property
    def work_ns(self) -> float:
        """What the thread itself needs, without waiting."""
        return self.calls_p50_ns + self.between_p50_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall:
    """Calls of one API in a median step: how many, how long one, how long all; `waits` for those that did wait."""

    api: str
    waits: bool
    per_step_count: float
    call_p50_ns: float
    p50_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRange:
    """A range's own time in a median step, without the ranges inside it; `nvtx` is None outside all of them."""

    nvtx: str | None
    per_step_count: float | None
    p50_ns: float
    waiting_p50_ns: float
    calls_p50_ns: float
    between_p50_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTime:
    """Where the step of a launching thread goes, by phase, by call and by range.

    Attributes:
        thread: its name.
        steps: host steps looked at.
        step_p50_ns: the median one.
        waiting_p50_ns: inside calls that wait for the GPU.
        calls_p50_ns: inside other CUDA calls.
        between_p50_ns: between the calls.
        phases: from role to role, in the order of the step; empty where the step has no roles.
        calls: by API, the longest first.
        ranges: by innermost NVTX range, the longest first; empty without ranges.
    """

    thread: str | None
    steps: int
    step_p50_ns: float
    waiting_p50_ns: float
    calls_p50_ns: float
    between_p50_ns: float
    phases: tuple[HostPhase, ...] = ()
    calls: tuple[HostCall, ...] = ()
    ranges: tuple[HostRange, ...] = ()
