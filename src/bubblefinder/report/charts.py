"""What the pictures of a report need beyond its tables: additions to report/1 that readers may ignore."""

from __future__ import annotations

from dataclasses import dataclass, field

from bubblefinder.report.account import Account  # noqa: TC001 - decoding reads the annotation


@dataclass(frozen=True, slots=True, kw_only=True)
class GapRow:
    """A recurring gap: where it opens and closes, the host call that ended it, and where its longest one begins."""

    gap_class: str
    after_role: str | None
    before_role: str | None
    ended_by: str | None
    count: int
    per_step_count: float | None
    p50_ns: float
    max_ns: int
    total_ns: int
    longest_start_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """A kernel name inside a role of the decode steps."""

    role: str | None
    name: str
    category: str | None
    per_step_count: float
    per_step_ns: float
    p50_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Gap lengths of one class on a logarithmic axis: counts between consecutive edges."""

    gap_class: str
    edges_ns: list[int]
    counts: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRun:
    """A run of consecutive small kernels of a role that recurs in the decode steps: food for fusion or PDL."""

    role: str | None
    first: str
    last: str
    kernels: int
    per_step_count: float
    per_step_busy_ns: float
    per_step_gap_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleSpan:
    """One piece of idle time outside the graphs, anywhere in the capture; the longest are kept."""

    gpu: int
    gap_class: str
    start_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineBar:
    """One drawn interval of a step.

    `kind` is nvtx, api, launch, wait, blamed_wait, replay, operation, operations (several merged), drain
    (a moment: start = end) or the ledger class of a gap. `link` pairs a launch call with the replay
    it launched. `fill` is the share of the interval that is really covered: below 1 where several
    thin intervals were merged.
    """

    track: str
    kind: str
    name: str
    start_ns: int
    end_ns: int
    link: int | None = None
    fill: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeline:
    """What happened in one step, host above device, already thinned for drawing.

    `dropped` counts the intervals left out to keep the picture small.
    """

    which: str
    index: int
    gpu: int
    pid: int
    start_ns: int
    end_ns: int
    bars: list[TimelineBar]
    dropped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadRow:
    """Launch lead of one graph launch: positive means the work was queued before the device was free.

    `start_ns` and `end_ns` are the replay's span, `call_start_ns` and `call_end_ns` its launch call.
    """

    index: int
    gpu: int
    pid: int
    role: str | None
    start_ns: int
    lead_ns: int
    end_ns: int | None = None
    call_start_ns: int | None = None
    call_end_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """What the pictures need beyond the tables; additions to report/1 that readers may ignore."""

    gaps: list[GapRow] = field(default_factory=list)
    kernels: list[KernelRow] = field(default_factory=list)
    histograms: list[Histogram] = field(default_factory=list)
    timelines: list[StepTimeline] = field(default_factory=list)
    leads: list[LeadRow] = field(default_factory=list)
    runs: list[KernelRun] = field(default_factory=list)
    idle: list[IdleSpan] = field(default_factory=list)
    idle_dropped: int = 0
    counted_steps: int | None = None
    launches_per_step: float | None = None
    pdl_overlap_share: float | None = None
    accounts: list[Account] = field(default_factory=list)
    """What every nanosecond of the decode steps went to, a rank each: what a comparison takes apart."""
