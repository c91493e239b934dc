"""report/1: the one value that every output is rendered from.

The field names are the JSON names. Integers are nanoseconds unless the name says otherwise,
unknown is null and never 0. Readers must ignore keys they don't know: lists may gain some.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeVar

from bubblefinder.overhead.model import Overhead  # noqa: TC001 - decoding reads the annotation
from bubblefinder.report.charts import Detail  # noqa: TC001 - decoding reads the annotation
from bubblefinder.report.economics import EconomicsReport  # noqa: TC001 - decoding reads the annotation
from bubblefinder.report.found import (  # noqa: TC001 - decoding reads the annotation
    Benign,
    Confidence,
    Expected,
    Finding,
    Joint,
    WaitChainReport,
)
from bubblefinder.report.host import HostReport  # noqa: TC001 - decoding reads the annotation
from bubblefinder.timeline.shares import BubbleShare  # noqa: TC001 - decoding reads the annotation
from bubblefinder.trace.model import QualityNote  # noqa: TC001 - decoding reads the annotation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Number = TypeVar("Number", int, float)
SCHEMA: Final = "bubblefinder.report/1"
DEFINITIONS: Final = 2
"""What the numbers mean: counted up when a step, a class or a wait is told otherwise than before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """The program that made the report."""

    name: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the user said about the run: label, commit and free key/value pairs."""

    label: str | None = None
    commit: str | None = None
    meta: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuInfo:
    """A GPU with operations in the capture."""

    gpu: int
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessInfo:
    """A process with operations or API calls in the capture."""

    pid: int
    name: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacts:
    """Where the numbers come from. `capture_mode`: node, graph, mixed, none or unseen."""

    name: str
    nsys_version: str | None
    schema_version: str | None
    cupti_version: str | None
    driver_version: str | None
    cuda_version: str | None
    capture_mode: str
    duration_ns: int | None
    gpus: list[GpuInfo]
    processes: list[ProcessInfo]


@dataclass(frozen=True, slots=True, kw_only=True)
class InterGraph:
    """Idle outside the replay spans of a device; null in unseen mode."""

    host_late_ns: int | None
    launching_ns: int | None
    queued_ns: int | None
    unattributed_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """Launch calls that should have left GPU work, and those that did."""

    seen: int
    recorded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceReport:
    """The ledger of one physical GPU over the analysed window.

    busy + intra_graph + inter_graph's four + unrecorded + profiler = span, exactly.
    `intra_graph_ns` is null where the inside of the graphs was not measured or there are none.
    """

    gpu: int
    pids: list[int]
    start_ns: int
    end_ns: int
    span_ns: int
    busy_ns: int
    idle_ns: int | None
    replays: int
    intra_graph_ns: int | None
    profiler_ns: int | None
    unrecorded_ns: int | None
    inter_graph: InterGraph
    launches: Launches
    run_ahead_share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """A part that replays or an eager phase play in a step."""

    role: str
    replays_per_step: float
    nodes: float | None
    p50_ns: int
    intra_graph_p50_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Distribution over the decode steps; numpy's linear percentiles."""

    mean: float | None
    p50: float | None
    p95: float | None
    min: int | None
    max: int | None


def sum_of(values: Iterable[Number | None]) -> Number | int | None:
    """Return the sum of what a ledger or a count is made of; null if a part is not known."""
    known = list(values)
    told = [value for value in known if value is not None]
    return sum(told) if len(told) == len(known) else None


def mean_of(per_step: Mapping[str, Stats], name: str) -> float | None:
    """Return the mean of a class in ns; null where it is not known, or an older report doesn't have the class."""
    return per_step[name].mean if name in per_step else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSteps:
    """The decode steps of one process on one GPU."""

    gpu: int
    pid: int
    count: int
    per_step: dict[str, Stats]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One window of one device. `excluded`: null for a decode step, else the reason."""

    index: int
    gpu: int
    pid: int
    start_ns: int
    duration_ns: int
    busy_ns: int
    intra_graph_ns: int | None
    host_late_ns: int | None
    launching_ns: int | None
    queued_ns: int | None
    unattributed_ns: int | None
    unrecorded_ns: int | None
    profiler_ns: int | None
    excluded: str | None
    requests: int | None = None
    """How many requests the window serves, where `steps.requests_from` says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """A run of steps that do the same in one way: by one graph, or kernel by kernel for so many; figures of its own.

    `headline`: its steps are among those of `per_step`; another batch size is, another way to run isn't. `indexes` are
    those of its first and its last step.
    """

    count: int
    headline: bool
    indexes: list[int]
    roles: list[Role]
    per_step: dict[str, Stats]
    bubble_share: BubbleShare
    requests: Stats | None = None
    """As in `steps`, of this regime's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RivalSteps:
    """Another way to cut the capture into steps that is nearly as good, and the `--step-by` that takes it."""

    count: int
    step_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the user chose to look at, and the figures of the whole beside it.

    `window_ns`: ns from the capture's start; `steps`: indexes, the last one not included. `count` and `step_p50_ns` are
    those of the whole capture, `confidence` that of its steps found without `step_by`.
    """

    window_ns: list[int] | None
    steps: list[int] | None
    step_by: str | None
    count: int
    step_p50_ns: float | None
    method: str
    confidence: Confidence


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsReport:
    """How the steps were found, and what a step costs."""

    method: str
    confidence: Confidence
    count: int
    excluded: dict[str, int]
    gpu: int | None
    pid: int | None
    roles: list[Role]
    per_step: dict[str, Stats]
    by_device: list[DeviceSteps]
    bubble_share: BubbleShare
    rows: list[StepRow]
    mark: str | None = None
    """The NVTX name or pattern, or kernel pattern, that cut the steps; null for other methods."""
    excluded_ns: dict[str, int] = field(default_factory=dict)
    """How long the windows of each reason took together."""
    regimes: list[Regime] = field(default_factory=list)
    """Where there are several, in the order in which they come."""
    rival: RivalSteps | None = None
    requests: Stats | None = None
    """How many requests a step serves, over the decode steps of which it is known; null if of none."""
    requests_from: str | None = None
    """What says so: nvtx (the ranges that mark steps) or launch_shapes (kernels with one block a request)."""
    requests_steps: dict[str, int] = field(default_factory=dict)
    """How many decode steps serve each number of requests; the rest is unknown."""
    selection: Selection | None = None
    """Null where the whole capture was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a reader should know after ten seconds.

    Attributes:
        headline: one sentence; it holds `number`.
        number: the part of the headline that matters most, empty if nothing could be measured.
        blame: one sentence about the first finding, or why there is none.
        gain: what removing it gives, and what removing all findings gives; empty where unknown.
        rest: how much idle time the first finding leaves, and where that lies; empty where it leaves little.
    """

    headline: str
    number: str
    blame: str
    gain: str
    rest: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything bubblefinder says about one capture."""

    schema: str
    tool: Tool
    run: Run
    trace: TraceFacts
    quality: list[QualityNote]
    devices: list[DeviceReport]
    steps: StepsReport
    overhead: Overhead
    findings: list[Finding]
    benign: list[Benign]
    expected: list[Expected]
    detail: Detail
    definitions: int = 1
    """The version of the definitions that the numbers follow; a report that doesn't say is of the first."""
    joint: Joint | None = None
    host: HostReport | None = None
    economics: EconomicsReport | None = None
    wait_chains: list[WaitChainReport] = field(default_factory=list)
    verdict: Verdict | None = None
    """The sentences that every format opens with; null in reports older than that."""
