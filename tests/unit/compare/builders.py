"""Reports as they would come out of a decode loop, from a few numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bubblefinder.overhead.model import Overhead
from bubblefinder.report import charts, found, model
from bubblefinder.timeline.shares import BubbleShare

if TYPE_CHECKING:
    from collections.abc import Sequence

MS = 1_000_000
US = 1_000
CLASSES = ("intra_graph", "host_late", "launching", "queued", "unattributed", "unrecorded", "profiler")


def a_report(  # noqa: PLR0913 - one number a fact
    name: str = "base",
    *,
    steps: int = 30,
    busy: int = 6 * MS,
    host_late: int = 50 * US,
    intra_graph: int | None = 800 * US,
    jitter: float = 0.001,
    mode: str = "node",
    seed: int = 1,
    ranks: int = 1,
    **more: Any,
) -> model.Report:
    """Return the report of a loop whose steps hold these times, give or take `jitter`; `more` replaces fields."""
    noise = np.random.default_rng(seed)
    rows = [row for gpu in range(ranks) for row in _rows(gpu, steps, busy, host_late, intra_graph, jitter, noise)]
    by_device = [_device_steps(gpu, [r for r in rows if r.gpu == gpu]) for gpu in range(ranks)]
    report = model.Report(
        schema=model.SCHEMA,
        tool=model.Tool(name="bubblefinder", version="0.1.0"),
        run=model.Run(),
        trace=model.TraceFacts(
            name=name, nsys_version="2025.3.1", schema_version="3.20.3", cupti_version="13.0", driver_version="580.1",
            cuda_version="13.0", capture_mode=mode, duration_ns=None,
            gpus=[model.GpuInfo(gpu=gpu, name="NVIDIA H200") for gpu in range(ranks)], processes=[],
        ),
        quality=[],
        devices=[_device(gpu, [r for r in rows if r.gpu == gpu]) for gpu in range(ranks)],
        steps=model.StepsReport(
            method="cadence", confidence="high", count=by_device[0].count, excluded={"tail": 1}, gpu=0, pid=100,
            roles=[_role("draft", 500 * US, 90), _role("verify", 5 * MS, 1690)],
            per_step=by_device[0].per_step, by_device=by_device,
            bubble_share=BubbleShare(intra_graph=0.1, inter_graph=0.01, total=0.11), rows=rows,
        ),
        overhead=Overhead(),
        findings=[], benign=[], expected=[],
        detail=charts.Detail(kernels=[a_kernel("verify", "gemm", 42, 4_000_000.0)], launches_per_step=5.0),
    )  # fmt: skip
    return replace(report, **more)


def a_finding(rule: str = "core.blocking-read", *, bubble: float = 1.4 * MS, **more: Any) -> found.Finding:
    """Return a finding about one blocking read a step."""
    site = found.Site(api="cudaMemcpyAsync", copy_kind="DtoH", memory_kind="pageable", bytes=8, nvtx="resolve",
                      after_role="verify", before_role="draft")  # fmt: skip
    fields: dict[str, Any] = {
        "rule": rule, "title": "A blocking read", "severity": "high", "confidence": "high",
        "devices": [found.DeviceRef(gpu=0, pid=100)], "site": site, "per_step_count": 1.0, "occurrences": 30,
        "steps_affected": 30, "host_blocked_ns": found.Quantiles(p50=5.0 * MS, p95=5.2 * MS),
        "bubble_ns": found.Quantiles(p50=bubble, p95=bubble), "recoverable_ns": round(bubble), "evidence": [],
        "message": "", "remedy": "", "references": [], "also_matches": [],
    }  # fmt: skip
    return found.Finding(**(fields | more))


def a_benign(site: found.Site) -> found.Benign:
    """Return a wait at a site under which the GPU stayed fed."""
    return found.Benign(
        devices=[found.DeviceRef(gpu=0, pid=100)], site=site, per_step_count=1.0, occurrences=30,
        host_blocked_ns=found.Quantiles(p50=1.0 * MS, p95=1.0 * MS), message="",
    )  # fmt: skip


def a_kernel(role: str, name: str, count: float, ns: float) -> charts.KernelRow:
    """Return a kernel of a role."""
    return charts.KernelRow(
        role=role, name=name, category=None, per_step_count=count, per_step_ns=ns, p50_ns=ns / max(count, 1)
    )


def with_kernels(report: model.Report, *kernels: charts.KernelRow) -> model.Report:
    """Return the report with other kernels."""
    return replace(report, detail=replace(report.detail, kernels=list(kernels)))


def with_trace(report: model.Report, **more: Any) -> model.Report:
    """Return the report with other facts about its capture."""
    return replace(report, trace=replace(report.trace, **more))


def with_steps(report: model.Report, **more: Any) -> model.Report:
    """Return the report with other facts about its steps."""
    return replace(report, steps=replace(report.steps, **more))


def with_rows(report: model.Report, rows: Sequence[model.StepRow]) -> model.Report:
    """Return the report with other steps and the statistics that follow from them."""
    gpus = sorted({row.gpu for row in rows})
    by_device = [_device_steps(gpu, [row for row in rows if row.gpu == gpu]) for gpu in gpus]
    return with_steps(report, rows=list(rows), by_device=by_device, per_step=by_device[0].per_step)


def _role(name: str, p50: int, nodes: int) -> model.Role:
    return model.Role(role=name, replays_per_step=1.0, nodes=float(nodes), p50_ns=p50, intra_graph_p50_ns=50 * US)


def _rows(
    gpu: int, steps: int, busy: int, host_late: int, intra_graph: int | None, jitter: float, noise: np.random.Generator
) -> list[model.StepRow]:
    rows, start = [], 0
    for index in range(steps + 1):
        work, late = (round(ns * (1 + jitter * noise.standard_normal())) for ns in (busy, host_late))
        late = max(late, 0)
        inside = None if intra_graph is None else intra_graph
        duration = work + late + (inside or 0) + 20 * US
        rows.append(
            model.StepRow(
                index=index, gpu=gpu, pid=100 + gpu, start_ns=start, duration_ns=duration, busy_ns=work,
                intra_graph_ns=inside, host_late_ns=late, launching_ns=10 * US, queued_ns=10 * US, unattributed_ns=0,
                unrecorded_ns=0, profiler_ns=0, excluded="tail" if index == steps else None,
            )
        )  # fmt: skip
        start += duration
    return rows


def _device_steps(gpu: int, rows: Sequence[model.StepRow]) -> model.DeviceSteps:
    decode = [row for row in rows if row.excluded is None]
    names = ("duration", "busy", *CLASSES)
    return model.DeviceSteps(
        gpu=gpu, pid=100 + gpu, count=len(decode),
        per_step={name: _stats([getattr(row, f"{name}_ns") for row in decode]) for name in names},
    )  # fmt: skip


def _stats(values: list[int | None]) -> model.Stats:
    known = [v for v in values if v is not None]
    if not known:
        return model.Stats(mean=None, p50=None, p95=None, min=None, max=None)
    p50, p95 = (float(v) for v in np.percentile(known, [50, 95]))
    return model.Stats(mean=float(np.mean(known)), p50=p50, p95=p95, min=min(known), max=max(known))


def _device(gpu: int, rows: Sequence[model.StepRow]) -> model.DeviceReport:
    span = sum(row.duration_ns for row in rows)
    return model.DeviceReport(
        gpu=gpu, pids=[100 + gpu], start_ns=0, end_ns=span, span_ns=span, busy_ns=sum(r.busy_ns for r in rows),
        idle_ns=sum(r.duration_ns - r.busy_ns for r in rows), replays=2 * len(rows), intra_graph_ns=0, profiler_ns=0,
        unrecorded_ns=0, inter_graph=model.InterGraph(host_late_ns=0, launching_ns=0, queued_ns=0, unattributed_ns=0),
        launches=model.Launches(seen=5 * len(rows), recorded=5 * len(rows)), run_ahead_share=0.9,
    )  # fmt: skip
