"""What a profiler costs, and what a step takes without it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from bubblefinder.timeline.shares import BubbleShare  # noqa: TC001 - decoding reads the annotation

if TYPE_CHECKING:
    from bubblefinder.trace.model import Trace

Method = Literal["none", "assumed", "calibration", "untraced_step", "reference_capture"]

TRUSTED: Final[tuple[Method, ...]] = ("calibration", "untraced_step", "reference_capture")
"""The methods whose corrected values may be held against a budget."""

TOLD: Final = 0.75
"""A range that begins below this part of its middle doesn't tell what the profiler added ..."""

WIDEST: Final = 0.3
"""... nor does one that is wider than this part of it."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One parameter of the model: its value and the range in which it was measured."""

    value: float
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> Cost:
        """Return a parameter without a range."""
        return cls(value, value, value)

    def scaled(self, factor: float) -> Cost:
        """Return the parameter times `factor`."""
        low, high = sorted((self.low * factor, self.high * factor))
        return Cost(self.value * factor, low, high)

    def fixed(self, which: Literal["value", "low", "high"]) -> Cost:
        """Return the parameter with no range, at one of its three values."""
        return Cost.exactly(getattr(self, which))


ZERO: Final = Cost.exactly(0.0)

FUNCTION_RANGE: Final = Cost(65_000.0, 10_000.0, 120_000.0)
"""Of SGLang 0.5.17 under Nsight Systems 2025.3: at least what lies between two ranges of which one only calls the
other, at most what such a capture lost against the same process untraced. See docs/engines.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What one way of capturing costs, in ns unless the name says otherwise.

    Attributes:
        kernel_node: GPU time added by a kernel node of a graph, whatever its length.
        branch_node: the same for a node that runs beside another branch of its graph.
        dependent_node: the same for a node that began before its predecessor ended (early launch).
        memset_node: the same for a small memset node.
        copy_node: the same for a copy node.
        replay: GPU time added before a graph replay.
        eager_operation: GPU time added before an operation launched on its own.
        gap_share: part of a node's cost that sits between kernels rather than inside them.
        launch_call: what a graph launch call takes *untraced*, before its nodes are counted.
        launch_node: what a node adds to an *untraced* graph launch call.
        launch_start: the shortest *untraced* time from a launch call to its first operation.
        kernel_call: host time added to a kernel launch call.
        copy_call: host time added to a copy or memset call.
        other_call: host time added to any other call.
        around_call: host time added behind a call, where no call is on record.
        function_range: host time added by a range that Nsight Systems opens around a Python function by itself.
    """

    kernel_node: Cost = ZERO
    branch_node: Cost = ZERO
    dependent_node: Cost = ZERO
    memset_node: Cost = ZERO
    copy_node: Cost = ZERO
    replay: Cost = ZERO
    eager_operation: Cost = ZERO
    gap_share: Cost = Cost(1.0, 0.0, 1.0)
    launch_call: Cost | None = None
    launch_node: Cost | None = None
    launch_start: Cost = ZERO
    kernel_call: Cost = ZERO
    copy_call: Cost = ZERO
    other_call: Cost = ZERO
    around_call: Cost = ZERO
    function_range: Cost = ZERO

    def least(self) -> Costs:
        """Return the costs that subtract the least."""
        return self._extreme("low", "high")

    def most(self) -> Costs:
        """Return the costs that subtract the most."""
        return self._extreme("high", "low")

    def scaled(self, factor: float) -> Costs:
        """Return the added costs times `factor`; what a call takes untraced and where costs sit stay."""
        changed = {name: getattr(self, name).scaled(factor) for name in ADDED}
        return replace(self, **changed)

    def _extreme(self, added: Literal["low", "high"], untraced: Literal["low", "high"]) -> Costs:
        changed = {name: getattr(self, name).fixed(added) for name in ADDED}
        known = {name: cost.fixed(untraced) for name in UNTRACED if (cost := getattr(self, name))}
        return replace(self, **changed, **known)


UNTRACED: Final = ("launch_call", "launch_node", "launch_start")
ADDED: Final = tuple(one.name for one in fields(Costs) if one.name not in {*UNTRACED, "gap_share"})


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """One chain of the calibration workload: its length on the GPU untraced and traced, and what an operation gains."""

    recipe: str
    operations: int
    untraced_ns: float
    graph_mode_ns: float | None
    node_mode_ns: float | None
    added_ns_per_operation: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Costs measured on one kind of GPU with one driver and one collector."""

    schema: str
    gpu: str
    driver: str
    cupti: str
    nsys: str | None
    node: Costs
    graph: Costs
    measured: tuple[MeasuredRow, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What the user knows about the run without a profiler; the best of it is used.

    Attributes:
        reference: the same workload captured in graph mode.
        untraced_step_ns: how long a decode step takes with no profiler.
        untraced_is_mean: whether that is a mean, as a benchmark's time per token is, and not a median.
        calibration: costs measured by `bubblefinder calibrate`.
        bundled: whether the calibrations that come with the product may be assumed to hold.
    """

    reference: Trace | None = None
    untraced_step_ns: float | None = None
    untraced_is_mean: bool = False
    calibration: Calibration | None = None
    bundled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """The correction of a capture's decode steps, a section of report/1; `method` none means raw numbers only.

    Attributes:
        method: where the parameters come from, see `Method`.
        traced_step_ns: p50 of the steps as captured.
        corrected_step_ns: p50 of the steps without the profiler; null where only its range is known.
        range_ns: lowest and highest value that the parameters' ranges allow.
        inflation: traced over corrected; below 1 when the traced run was faster.
        unexplained_ns: cost a step that could not be placed anywhere without going below zero.
        corrected: p50 of duration and of every class.
        corrected_roles: p50 of each role's replays.
        corrected_bubble_share: the shares then.
        corrected_bubble_share_range: lowest and highest of each share, null where unknown.
        parameters: what was used: numbers with their ranges, and words on where they come from.
        message: one or two sentences for the user.
    """

    method: str = "none"
    traced_step_ns: int | None = None
    corrected_step_ns: int | None = None
    range_ns: tuple[int, int] | None = None
    inflation: float | None = None
    unexplained_ns: int | None = None
    corrected: dict[str, int | None] = field(default_factory=dict)
    corrected_roles: dict[str, int | None] = field(default_factory=dict)
    corrected_bubble_share: BubbleShare | None = None
    corrected_bubble_share_range: dict[str, tuple[float, float] | None] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    message: str = ""

    @property
    def untold_ns(self) -> int | None:
        """How much of the traced step may be the profiler's, where the capture can't tell how much is."""
        if self.range_ns is None or self.traced_step_ns is None or self.corrected_step_ns is not None:
            return None
        return self.traced_step_ns - self.range_ns[0]


def parameters_of(costs: Costs) -> dict[str, object]:
    """Return the costs that count, each with value, low and high."""
    known = {item.name: getattr(costs, item.name) for item in fields(costs)}
    return {
        name if name == "gap_share" else f"{name}_ns": asdict(cost)
        for name, cost in known.items()
        if cost is not None and cost != ZERO
    }
