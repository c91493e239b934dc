"""A report with the figures of the nextn_before capture, for tests of what is drawn from reports."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np

from bubblefinder.causes.evidence import Evidence
from bubblefinder.overhead.model import Overhead
from bubblefinder.report.charts import (
    Detail,
    GapRow,
    Histogram,
    IdleSpan,
    KernelRow,
    KernelRun,
    LeadRow,
    StepTimeline,
    TimelineBar,
)
from bubblefinder.report.found import Benign, DeviceRef, Expected, Finding, Quantiles, Site
from bubblefinder.report.model import (
    SCHEMA,
    DeviceReport,
    DeviceSteps,
    GpuInfo,
    InterGraph,
    Launches,
    ProcessInfo,
    Report,
    Role,
    Run,
    Stats,
    StepRow,
    StepsReport,
    Tool,
    TraceFacts,
)
from bubblefinder.timeline.model import LEDGER_CLASSES
from bubblefinder.timeline.shares import BubbleShare
from bubblefinder.trace.model import QualityNote

PID = 4242
START = 1_000_000_000
ROLES = (("draft", 96, 310_000), ("verify", 1690, 5_950_000), ("draft-extend", 62, 240_000))
HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "a | b | c",
    "`code` ```fence```",
    "@team please <b>look</b> {{ 7*7 }} ${7*7}",
    "\x1b[31mred\x1b[0m\x07\r\n::error::injected",
    "k" * 5000,
)


def step_rows(count: int, gpu: int = 0, seed: int = 7) -> list[StepRow]:
    """Head, a capture start, `count` decode steps and a tail, each with a ledger that sums."""
    dice = random.Random(seed + gpu)
    labels = ["head", "capture_start", *[None] * count, "tail"]
    rows: list[StepRow] = []
    now = START
    for index, excluded in enumerate(labels):
        parts = {
            "busy": 6_399_000 + dice.randrange(-9_000, 9_000),
            "intra_graph": 874_000 + dice.randrange(-4_000, 4_000),
            "host_late": 1_510_000 + dice.randrange(-90_000, 120_000) + (900_000 if index == count // 2 else 0),
            "launching": 118_000 + dice.randrange(-9_000, 9_000),
            "queued": 1_200 + dice.randrange(-200, 200),
            "unattributed": 0,
            "unrecorded": 0,
            "profiler": 0,
        }
        times = {f"{name}_ns": value for name, value in parts.items()}
        duration = sum(parts.values())
        rows.append(
            StepRow(index=index, gpu=gpu, pid=PID + gpu, start_ns=now, duration_ns=duration, excluded=excluded, **times)
        )
        now += duration
    return rows


def per_step(rows: list[StepRow]) -> dict[str, Stats]:
    """The statistics of the decode rows, as the report holds them."""
    decode = [row for row in rows if row.excluded is None]
    return {name: stats([getattr(row, f"{name}_ns") for row in decode]) for name in ("duration", *LEDGER_CLASSES)}


def stats(values: list[int | None]) -> Stats:
    """Mean, percentiles and extremes; unknown where a value is."""
    if not values or None in values:
        return Stats(mean=None, p50=None, p95=None, min=None, max=None)
    numbers = np.array(values, dtype=np.int64)
    p50, p95 = (float(value) for value in np.percentile(numbers, (50, 95)))
    return Stats(mean=float(numbers.mean()), p50=p50, p95=p95, min=int(numbers.min()), max=int(numbers.max()))


def bubble_share(rows: list[StepRow]) -> BubbleShare:
    """Totals over the decode rows."""
    decode = [row for row in rows if row.excluded is None]
    duration = sum(row.duration_ns for row in decode)
    inter = sum(
        (r.host_late_ns or 0) + (r.launching_ns or 0) + (r.queued_ns or 0) + (r.unattributed_ns or 0) for r in decode
    )
    if any(row.intra_graph_ns is None for row in decode):
        return BubbleShare(intra_graph=None, inter_graph=inter / duration, total=None)
    intra = sum(row.intra_graph_ns or 0 for row in decode)
    return BubbleShare(intra_graph=intra / duration, inter_graph=inter / duration, total=(intra + inter) / duration)


def device(rows: list[StepRow], gpu: int = 0) -> DeviceReport:
    """The ledger of the rows' GPU."""

    def total(name: str) -> int:
        return sum(getattr(row, f"{name}_ns") or 0 for row in rows)

    span, busy = sum(row.duration_ns for row in rows), total("busy")
    return DeviceReport(
        gpu=gpu,
        pids=[PID + gpu],
        start_ns=START,
        end_ns=START + span,
        span_ns=span,
        busy_ns=busy,
        idle_ns=span - busy,
        replays=3 * len(rows),
        intra_graph_ns=total("intra_graph"),
        profiler_ns=0,
        unrecorded_ns=0,
        inter_graph=InterGraph(
            host_late_ns=total("host_late"),
            launching_ns=total("launching"),
            queued_ns=total("queued"),
            unattributed_ns=total("unattributed"),
        ),
        launches=Launches(seen=66, recorded=66),
        run_ahead_share=0.34,
    )


def finding(**changes: Any) -> Finding:
    """The blocking read of the sequence lengths."""
    known = Finding(
        rule="blocking-copy-to-host",
        title="Blocking device-to-host copy in FutureMap.resolve_seq_lens_cpu",
        severity="high",
        confidence="high",
        devices=[DeviceRef(gpu=0, pid=PID)],
        site=Site(
            api="cudaMemcpyAsync",
            copy_kind="DtoH",
            memory_kind="pageable",
            bytes=8,
            nvtx="FutureMap.resolve_seq_lens_cpu",
            thread="python",
            after_role="verify",
            before_role="draft",
        ),
        per_step_count=1.0,
        occurrences=9,
        steps_affected=9,
        host_blocked_ns=Quantiles(p50=6_021_344.0, p95=6_102_988.0),
        bubble_ns=Quantiles(p50=1_604_112.0, p95=2_511_077.0),
        recoverable_ns=1_652_417,
        evidence=[
            Evidence(
                table="CUPTI_ACTIVITY_KIND_RUNTIME",
                row=120 + 400 * i,
                start_ns=START + 9_000_000 * i + 1_000_000,
                end_ns=START + 9_000_000 * i + 7_021_344,
            )
            for i in range(3)
        ],
        message="The host reads 8 bytes from pageable memory after verify, and launches nothing until they are there.",
        remedy="Keep the lengths on the GPU, or copy them into pinned memory and wait for the previous step's event.",
        references=["https://github.com/sgl-project/sglang/pull/27979", "CUDA Programming Guide, asynchronous copies"],
        also_matches=["torch-item"],
        step_after_ns=7_290_000,
        bound_after="gpu",
    )
    return replace(known, **changes)


def thin_finding() -> Finding:
    """The thin gaps inside the verify graph."""
    return finding(
        rule="intra-graph-gaps",
        title="Thin gaps between small kernels inside verify",
        severity="medium",
        confidence="medium",
        site=Site(after_role="verify", before_role="verify"),
        per_step_count=1689.0,
        occurrences=15_201,
        host_blocked_ns=Quantiles(p50=None, p95=None),
        bubble_ns=Quantiles(p50=812_000.0, p95=815_500.0),
        recoverable_ns=None,
        evidence=[],
        message="Launch and prologue cost is close to the kernels' own work.",
        remedy="Programmatic dependent launch, or fewer and larger kernels.",
        references=[],
        also_matches=[],
        step_after_ns=None,
        bound_after=None,
    )


def timeline(row: StepRow, which: str) -> StepTimeline:
    """One step: NVTX and calls above, replays and gaps below."""
    host, gpu, start = "python 4242", f"GPU {row.gpu} · stream 7", row.start_ns
    bars = [
        TimelineBar(
            track=f"{host} · NVTX",
            kind="nvtx",
            name="decode step",
            start_ns=start - 900_000,
            end_ns=start + row.duration_ns,
        ),
        TimelineBar(
            track=f"{host} · NVTX",
            kind="nvtx",
            name="FutureMap.resolve_seq_lens_cpu",
            start_ns=start + 900_000,
            end_ns=start + 7_150_000,
        ),
        TimelineBar(
            track=host, kind="blamed_wait", name="cudaMemcpyAsync", start_ns=start + 950_000, end_ns=start + 7_020_000
        ),
    ]
    now = start
    for link, (role, _, span) in enumerate(ROLES):
        bars += [
            TimelineBar(
                track=host,
                kind="launch",
                name="cudaGraphLaunch",
                start_ns=now - 60_000,
                end_ns=now - 8_000,
                link=link + 1000 * row.index,
            ),
            TimelineBar(
                track=f"GPU {row.gpu} · graphs",
                kind="replay",
                name=role,
                start_ns=now,
                end_ns=now + span,
                link=link + 1000 * row.index,
            ),
        ]
        bars += [
            TimelineBar(
                track=gpu,
                kind="operation",
                name=f"kernel_{role}_{i}<float, 4>",
                start_ns=now + span * i // 40,
                end_ns=now + span * i // 40 + span // 47,
            )
            for i in range(40)
        ]
        bars += [
            TimelineBar(
                track=f"GPU {row.gpu} · idle",
                kind="intra_graph",
                name="inside verify",
                start_ns=now + span * i // 40 + span // 47,
                end_ns=now + span * (i + 1) // 40,
            )
            for i in range(40)
        ]
        now += span + 40_000
    idle = f"GPU {row.gpu} · idle"
    end = start + row.duration_ns
    bars += [
        TimelineBar(track=idle, kind="drain", name="device ran dry", start_ns=now, end_ns=now),
        TimelineBar(track=idle, kind="host_late", name="verify to draft", start_ns=now, end_ns=end - 119_000),
        TimelineBar(track=idle, kind="launching", name="verify to draft", start_ns=end - 119_000, end_ns=end - 1_200),
        TimelineBar(track=idle, kind="queued", name="verify to draft", start_ns=end - 1_200, end_ns=end),
    ]
    return StepTimeline(
        which=which, index=row.index, gpu=row.gpu, pid=row.pid, start_ns=start, end_ns=end, bars=bars, dropped=1_412
    )


def leads_of(row: StepRow) -> list[LeadRow]:
    """The three launches of a window."""
    leads: list[LeadRow] = []
    now = row.start_ns
    for number, (role, _, span) in enumerate(ROLES):
        leads.append(
            LeadRow(
                index=row.index,
                gpu=row.gpu,
                pid=row.pid,
                role=role,
                start_ns=now,
                end_ns=now + span,
                lead_ns=(-1_500_000, 210_000, 5_400_000)[number] + 1000 * row.index,
                call_start_ns=now - 60_000,
                call_end_ns=now - 8_000,
            )
        )
        now += span + 40_000
    return leads


def detail(rows: list[StepRow]) -> Detail:
    """What the pictures of the rows' device show."""
    decode = sorted((row for row in rows if row.excluded is None), key=lambda row: row.duration_ns)
    edges = [round(10 ** (2 + i / 4)) for i in range(21)]
    return Detail(
        gaps=[
            GapRow(
                gap_class="host_late",
                after_role="verify",
                before_role="draft",
                ended_by="cudaGraphLaunch",
                count=9,
                per_step_count=1.0,
                p50_ns=1_511_920.0,
                max_ns=2_440_812,
                total_ns=14_394_116,
            ),
            GapRow(
                gap_class="launching",
                after_role="draft",
                before_role="verify",
                ended_by="cudaGraphLaunch",
                count=9,
                per_step_count=1.0,
                p50_ns=61_020.0,
                max_ns=80_110,
                total_ns=561_104,
            ),
        ],
        kernels=[
            KernelRow(
                role="verify",
                name="void cutlass::gemm::kernel<float, 128>(Params)",
                category="gemm",
                per_step_count=168.0,
                per_step_ns=2_911_400.0,
                p50_ns=17_184.0,
            ),
            KernelRow(
                role="verify",
                name="triton_rms_norm",
                category="norm",
                per_step_count=85.0,
                per_step_ns=180_412.0,
                p50_ns=2_080.0,
            ),
            KernelRow(
                role="draft",
                name="topk_softmax",
                category=None,
                per_step_count=3.0,
                per_step_ns=9_120.0,
                p50_ns=3_040.0,
            ),
        ],
        histograms=[
            Histogram(gap_class="intra_graph", edges_ns=edges, counts=[0, 3, 4100, 9800, 1200, 90, 8, *[0] * 13]),
            Histogram(gap_class="host_late", edges_ns=edges, counts=[*[0] * 16, 1, 8, 0, 0]),
            Histogram(gap_class="launching", edges_ns=edges, counts=[*[0] * 10, 9, 9, 0, *[0] * 7]),
            Histogram(gap_class="queued", edges_ns=edges, counts=[0, 0, 5, 11, 9, 2, *[0] * 14]),
        ],
        timelines=[timeline(decode[len(decode) // 2], "median"), timeline(decode[-1], "worst")] if decode else [],
        leads=[lead for row in rows[:500] for lead in leads_of(row)],
        runs=[
            KernelRun(
                role="verify",
                first="triton_rms_norm",
                last="topk_softmax",
                kernels=6,
                per_step_count=42.0,
                per_step_busy_ns=504_000.0,
                per_step_gap_ns=105_840.0,
            )
        ],
        idle=[
            IdleSpan(
                gpu=row.gpu,
                gap_class="host_late",
                start_ns=row.start_ns + row.duration_ns - 1_600_000,
                end_ns=row.start_ns + row.duration_ns - 120_000,
            )
            for row in rows[:1000]
        ],
        launches_per_step=7.0,
        pdl_overlap_share=0.0,
    )


def steps_report(rows: list[StepRow]) -> StepsReport:
    """The steps of one or more GPUs; the lowest one leads."""
    gpus = sorted({row.gpu for row in rows})
    first = [row for row in rows if row.gpu == gpus[0]]
    groups = [[row for row in rows if row.gpu == gpu] for gpu in gpus]
    decode = sum(row.excluded is None for row in first)
    return StepsReport(
        method="cadence",
        confidence="high",
        count=decode,
        excluded={"head": 1, "capture_start": 1, "tail": 1},
        gpu=gpus[0],
        pid=PID + gpus[0],
        roles=[
            Role(role=role, replays_per_step=1.0, nodes=float(nodes), p50_ns=span, intra_graph_p50_ns=span // 8)
            for role, nodes, span in ROLES
        ],
        per_step=per_step(first),
        by_device=[
            DeviceSteps(gpu=g[0].gpu, pid=g[0].pid, count=sum(r.excluded is None for r in g), per_step=per_step(g))
            for g in groups
        ],
        bubble_share=bubble_share(first),
        rows=rows,
    )


def sample_report(steps: int = 9, gpus: int = 1, **changes: Any) -> Report:
    """A node-mode capture of a loop that reads its lengths from the GPU every step."""
    rows = [row for gpu in range(gpus) for row in step_rows(steps, gpu)]
    known = Report(
        schema=SCHEMA,
        tool=Tool(name="bubblefinder", version="0.1.0"),
        run=Run(label="nightly", commit="0f3c2d1", meta={"batch": "1", "engine": "a loop with the model's shape"}),
        trace=TraceFacts(
            name="nextn_before.node.sqlite",
            nsys_version="2025.3.1",
            schema_version="3.20.3",
            cupti_version="13.0",
            driver_version="580.159",
            cuda_version="13.0",
            capture_mode="node",
            duration_ns=91_000_000,
            gpus=[GpuInfo(gpu=g, name="NVIDIA H200") for g in range(gpus)],
            processes=[ProcessInfo(pid=PID + g, name="python") for g in range(gpus)],
        ),
        quality=[
            QualityNote(
                code="node-tracing",
                level="info",
                message="Node tracing lengthens the step inside the graphs.",
                count=None,
            ),
            QualityNote(
                code="rows-without-correlation", level="warn", message="Operations without a correlation id.", count=3
            ),
        ],
        devices=[device([row for row in rows if row.gpu == gpu], gpu) for gpu in range(gpus)],
        steps=steps_report(rows),
        overhead=Overhead(
            method="calibration",
            traced_step_ns=8_941_993,
            corrected_step_ns=8_634_000,
            range_ns=(8_512_000, 8_760_000),
            inflation=1.0357,
            unexplained_ns=None,
            corrected={
                "duration": 8_634_000,
                "busy": 6_399_000,
                "intra_graph": 566_000,
                "host_late": 1_510_000,
                "launching": 118_000,
                "queued": 1_200,
            },
            corrected_roles={"draft": 300_000, "verify": 5_656_000, "draft-extend": 229_000},
            corrected_bubble_share=BubbleShare(intra_graph=0.0656, inter_graph=0.1888, total=0.2544),
            parameters={"per_node_ns": 174},
            message="Graph nodes cost 174 ns each while traced.",
        ),
        findings=[finding(), thin_finding()],
        benign=[
            Benign(
                devices=[DeviceRef(gpu=0, pid=PID)],
                site=Site(api="cudaEventSynchronize", thread="python"),
                per_step_count=1.0,
                occurrences=9,
                host_blocked_ns=Quantiles(p50=5_100_000.0, p95=5_222_000.0),
                message="The GPU stayed fed.",
            )
        ],
        expected=[
            Expected(
                finding=finding(rule="logits-read", title="Read of the sampled token"),
                reason="the stream needs it",
                owner="serving",
            )
        ],
        detail=detail(rows),
    )
    return replace(known, **changes)


def healthy_report() -> Report:
    """A loop that runs ahead: nothing to blame."""
    report = sample_report(findings=[], expected=[])
    ahead = Stats(mean=5e4, p50=5e4, p95=5e4, min=50_000, max=50_000)
    return replace(report, steps=replace(report.steps, per_step=report.steps.per_step | {"host_late": ahead}))


def graph_report() -> Report:
    """A graph-mode capture: the inside of the graphs is not measured."""
    rows = [
        replace(row, duration_ns=row.duration_ns - (row.intra_graph_ns or 0), intra_graph_ns=None)
        for row in step_rows(9)
    ]
    base = sample_report()
    steps = steps_report(rows)
    roles = [replace(role, nodes=None, intra_graph_p50_ns=None) for role in steps.roles]
    return replace(
        base,
        trace=replace(base.trace, capture_mode="graph"),
        steps=replace(steps, roles=roles),
        devices=[replace(device(rows), intra_graph_ns=None)],
        overhead=Overhead(),
    )


def unseen_report() -> Report:
    """Graph launches whose work is not in the export: steps are known by their marks, idle time is not."""
    base = sample_report()
    unknown = InterGraph(host_late_ns=None, launching_ns=None, queued_ns=None, unattributed_ns=None)
    classes = [f"{name}_ns" for name in LEDGER_CLASSES if name != "busy"]
    nulls: dict[str, Any] = dict.fromkeys(classes)
    rows = [replace(row, busy_ns=11_000, **nulls) for row in step_rows(9)]
    nothing = BubbleShare(intra_graph=None, inter_graph=None, total=None)
    note = "Graph launches are there, their work is not: export again."
    return replace(
        base,
        trace=replace(base.trace, capture_mode="unseen"),
        findings=[],
        expected=[],
        benign=[],
        detail=Detail(),
        overhead=Overhead(),
        devices=[
            replace(
                base.devices[0],
                idle_ns=None,
                intra_graph_ns=None,
                inter_graph=unknown,
                unrecorded_ns=None,
                run_ahead_share=None,
            )
        ],
        steps=replace(base.steps, method="nvtx", roles=[], per_step=per_step(rows), bubble_share=nothing, rows=rows),
        quality=[QualityNote(code="graph-work-unseen", level="error", message=note, count=30)],
    )


def hostile_report() -> Report:
    """Every name that a capture can carry holds something that could bite."""
    base = sample_report()
    bars = [
        TimelineBar(
            track=name[:300],
            kind=kind,
            name=name,
            start_ns=START + 1_000_000 * i,
            end_ns=START + 1_000_000 * i + 500_000,
        )
        for i, (name, kind) in enumerate(
            zip(HOSTILE, ("nvtx", "operation", "wait", "replay", "api", "host_late"), strict=True)
        )
    ]
    findings = [
        finding(
            rule=f"rule-{i}",
            title=name,
            message=name,
            remedy=name,
            references=[name, "javascript:alert(1)"],
            also_matches=[name],
            site=Site(api=name, nvtx=name, frame=name, thread=name, after_role=name, before_role=name),
        )
        for i, name in enumerate(HOSTILE)
    ]
    kernels = [
        KernelRow(role=name, name=name, category=name, per_step_count=1.0, per_step_ns=1.0, p50_ns=1.0)
        for name in HOSTILE
    ]
    timelines = [replace(base.detail.timelines[0], bars=[*base.detail.timelines[0].bars, *bars])]
    roles = [Role(role=name, replays_per_step=1.0, nodes=1.0, p50_ns=5, intra_graph_p50_ns=1) for name in HOSTILE]
    gaps = [
        GapRow(
            gap_class="host_late",
            after_role=n,
            before_role=n,
            ended_by=n,
            count=1,
            per_step_count=1.0,
            p50_ns=1.0,
            max_ns=1,
            total_ns=1,
        )
        for n in HOSTILE
    ]
    return replace(
        base,
        findings=findings,
        run=Run(label=HOSTILE[0], commit=HOSTILE[2], meta={HOSTILE[3]: HOSTILE[1]}),
        trace=replace(
            base.trace,
            name=HOSTILE[0],
            gpus=[GpuInfo(gpu=0, name=HOSTILE[0])],
            processes=[ProcessInfo(pid=PID, name=n) for n in HOSTILE],
        ),
        quality=[QualityNote(code="x", level="warn", message=name, count=1) for name in HOSTILE],
        steps=replace(base.steps, roles=roles),
        expected=[Expected(finding=findings[0], reason=HOSTILE[0], owner=HOSTILE[3])],
        benign=[replace(base.benign[0], site=replace(base.benign[0].site, api=n, nvtx=n), message=n) for n in HOSTILE],
        detail=replace(
            base.detail,
            kernels=kernels,
            timelines=timelines,
            gaps=gaps,
            leads=[replace(lead, role=HOSTILE[0]) for lead in base.detail.leads],
            runs=[replace(base.detail.runs[0], first=n, last=n, role=n) for n in HOSTILE],
        ),
    )
