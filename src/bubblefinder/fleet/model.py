"""Captures side by side: a row for each rank, and what could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bubblefinder.report.model import sum_of
from bubblefinder.timeline.model import INTER_CLASSES

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.report.model import DeviceSteps, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The decode steps of one process on one GPU of one capture; times are means of a step, unknown is null.

    Attributes:
        capture: the file's name.
        path: where it lies.
        gpu: physical GPU; null without decode steps, and so is what follows of them.
        pid: process.
        gpu_name: what the GPU is called.
        mode: capture mode.
        steps: decode steps in the statistics.
        confidence: how sure the steps are.
        step_ns: length of a step.
        step_p95_ns: its 95th percentile.
        busy_ns: time in which the GPU worked.
        bubble_ns: idle inside and outside graphs; null where the inside was not measured.
        inter_ns: idle outside graphs.
        first: title of the finding that comes first, of the capture's reported rank.
        recoverable_ns: what it would give; null where the profiler's part of that can't be told.
        recoverable_low_ns: the least that it would give.
        recoverable_high_ns: the most.
        started_ns: when the capture began, ns since 1970.
    """

    capture: str
    path: str
    gpu: int | None = None
    pid: int | None = None
    gpu_name: str | None = None
    mode: str
    steps: int = 0
    confidence: str
    step_ns: float | None = None
    step_p95_ns: float | None = None
    busy_ns: float | None = None
    bubble_ns: float | None = None
    inter_ns: float | None = None
    first: str | None = None
    recoverable_ns: int | None = None
    recoverable_low_ns: int | None = None
    recoverable_high_ns: int | None = None
    started_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """A capture that could not be analysed, and why in one line."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Fleet:
    """Every capture: rows by path and rank, and failures by path."""

    rows: tuple[Row, ...]
    failures: tuple[Failure, ...] = ()


def rows_of(report: Report, path: Path, started_ns: int | None) -> list[Row]:
    """Return a row for each rank with decode steps, or one without figures."""
    ranks = sorted((one for one in report.steps.by_device if one.count), key=lambda one: (one.gpu, one.pid))
    known: list[DeviceSteps | None] = [*ranks] or [None]
    return [_row(report, path, started_ns, rank) for rank in known]


def _row(report: Report, path: Path, started_ns: int | None, rank: DeviceSteps | None) -> Row:
    mine = rank is not None and (rank.gpu, rank.pid) == (report.steps.gpu, report.steps.pid)
    first = report.findings[0] if mine and report.findings else None
    stats = {name: one.mean for name, one in rank.per_step.items()} if rank else {}
    inter = sum_of(stats.get(name) for name in INTER_CLASSES)
    low, high = (first.recoverable_range_ns if first else None) or (None, None)
    names = {gpu.gpu: gpu.name for gpu in report.trace.gpus}
    duration = rank.per_step.get("duration") if rank else None
    return Row(
        capture=report.trace.name,
        path=str(path),
        gpu=rank.gpu if rank else None,
        pid=rank.pid if rank else None,
        gpu_name=names.get(rank.gpu) if rank else None,
        mode=report.trace.capture_mode,
        steps=rank.count if rank else 0,
        confidence=report.steps.confidence,
        step_ns=stats.get("duration"),
        step_p95_ns=duration.p95 if duration else None,
        busy_ns=stats.get("busy"),
        bubble_ns=inter if report.trace.capture_mode == "none" else sum_of((inter, stats.get("intra_graph"))),
        inter_ns=inter,
        first=first.title if first else None,
        recoverable_ns=first.recoverable_ns if first else None,
        recoverable_low_ns=low,
        recoverable_high_ns=high,
        started_ns=started_ns,
    )
