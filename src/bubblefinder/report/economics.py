"""The floor under the step and what a benchmark measured: an addition to report/1 that readers may ignore."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleFloorReport:
    """The floor under one role: bytes it moves, what they take at the nominal bandwidth, and what it takes (p50)."""

    role: str
    bytes: int
    floor_ns: int
    least_ns: int
    length_ns: int | None
    achieved_share: float | None
    effective_bandwidth: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorReport:
    """The floor under the mean step. `effective_bandwidth` is bytes counted over time measured, no counter reading."""

    model: str
    source: str
    tp: int
    context: int
    batch: int
    draft_steps: int
    draft_tokens: int
    bandwidth: float
    bandwidth_source: str
    bytes: int
    floor_ns: int
    step_ns: int | None
    achieved_share: float | None
    effective_bandwidth: float | None
    roles: list[RoleFloorReport]
    waterfall_ns: dict[str, int | None] | None
    impossible: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedReport:
    """A benchmark run held against the capture; `notes` say what in it misleads. Times are means."""

    engine: str
    scenario: str | None
    concurrency: int | None
    tpot_ns: int
    accept_length: float | None
    step_ns: int
    captured_ns: int | None
    off: float | None
    bubble_share_of_tpot: float | None
    output_throughput: float
    notes: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EconomicsReport:
    """What was asked for: the floor where a model was given, the runs where a benchmark was."""

    floor: FloorReport | None = None
    served: list[ServedReport] = field(default_factory=list)
