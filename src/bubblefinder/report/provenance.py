"""Where a report comes from: the program, what the user said of the run, and what the capture says of itself."""

from __future__ import annotations

from dataclasses import dataclass, field


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
