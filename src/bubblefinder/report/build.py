"""From a path to a Report: every stage once, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bubblefinder._version import __version__
from bubblefinder.causes.facts_build import build_facts
from bubblefinder.causes.find import find_causes
from bubblefinder.errors import CannotAnswerError
from bubblefinder.overhead.model import Source
from bubblefinder.replay.recoverable import recoverable
from bubblefinder.report.detail import detail
from bubblefinder.report.findings import benign, expected, finding
from bubblefinder.report.ledgers import (
    Lane,
    bubble_share,
    decode_rows,
    device_report,
    per_step,
    roles,
    step_rows,
    windows_with_ledger,
)
from bubblefinder.report.model import (
    SCHEMA,
    BubbleShare,
    DeviceSteps,
    GpuInfo,
    ProcessInfo,
    Quality,
    Report,
    Run,
    StepsReport,
    Tool,
    TraceFacts,
)
from bubblefinder.report.overhead import overhead_report
from bubblefinder.rules.config import Config
from bubblefinder.rules.engine import run_rules
from bubblefinder.rules.packs import load_packs
from bubblefinder.steps.find import find_steps
from bubblefinder.timeline.build import build_timeline
from bubblefinder.timeline.model import CaptureMode
from bubblefinder.trace.model import pid_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl

    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import QualityNote, Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for.

    Attributes:
        gpu: report the steps of this GPU; null for the lowest with decode steps.
        pid: report the steps of this process.
        window: only operations that start in [start, end), ns from the capture's start.
        steps: only decode steps with index in [start, end).
        step_by: how to find the steps, see `steps.find.find_steps`.
        run: label, commit and meta of the run.
        rules: which rules run, and which waits are expected.
        overhead: what is known of the run without a profiler.
        launch_shapes: read how kernels were launched as well, for a comparison.
    """

    gpu: int | None = None
    pid: int | None = None
    window: tuple[int, int] | None = None
    steps: tuple[int, int] | None = None
    step_by: str | None = None
    run: Run = field(default_factory=Run)
    rules: Config = field(default_factory=Config)
    overhead: Source = field(default_factory=Source)
    launch_shapes: bool = False


def analyze_trace(
    trace: Trace, options: Options | None = None, *, progress: Callable[[str], None] = lambda _: None
) -> Report:
    """Return the report on a loaded trace.

    Args:
        trace: the capture.
        options: what was asked for.
        progress: called with the name of each stage as it begins.

    Raises:
        CannotAnswerError: the capture lacks what was asked for.
        UsageError: an option is wrong.
    """
    asked = options or Options()
    progress("timeline")
    return analyze_timeline(build_timeline(trace, asked.window), asked, progress=progress)


def analyze_timeline(timeline: Timeline, asked: Options, *, progress: Callable[[str], None] = lambda _: None) -> Report:
    """Return the report on a timeline, for callers that also use the timeline itself.

    Args:
        timeline: the timeline of the window that was asked for.
        asked: what was asked for.
        progress: called with the name of each stage as it begins.

    Raises:
        CannotAnswerError: the capture lacks what was asked for.
        UsageError: an option is wrong.
    """
    progress("steps")
    steps = find_steps(timeline, asked.step_by)
    windows = windows_with_ledger(timeline, steps, asked.steps)
    lane = _lane(timeline, windows, asked)
    progress("causes")
    causes = find_causes(timeline, steps)
    packs = load_packs(asked.rules.rules)
    facts = build_facts(timeline, steps, causes)
    progress("what if")
    cured = recoverable(timeline, steps, causes, facts)
    verdicts = run_rules(cured.fill(facts), packs, asked.rules, (lane.gpu, lane.process) if lane else None)
    progress("overhead")
    rows = decode_rows(windows, lane) if lane else windows.clear()
    overhead = overhead_report(timeline, steps, rows, asked.overhead)
    progress("report")
    return Report(
        schema=SCHEMA,
        tool=Tool(name="bubblefinder", version=__version__),
        run=asked.run,
        trace=_facts(timeline),
        quality=_quality((*timeline.trace.notes, *timeline.notes, *steps.notes)),
        devices=[device_report(timeline, device) for device in timeline.devices],
        steps=_steps(timeline, steps, windows, lane),
        overhead=overhead,
        findings=[finding(match, cured) for match in verdicts.findings],
        benign=[] if timeline.mode is CaptureMode.UNSEEN else benign(timeline, steps, causes),
        expected=[expected(covered, cured) for covered in verdicts.expected],
        detail=detail(timeline, steps, causes, lane, packs.category, launch_shapes=asked.launch_shapes),
    )


def _lane(timeline: Timeline, windows: pl.DataFrame, asked: Options) -> Lane | None:
    """Return the lane to report: the lowest GPU with decode steps, or the one asked for."""
    known = [Lane(device.gpu, process) for device in timeline.devices for process in device.processes]
    fitting = [lane for lane in known if asked.gpu in (None, lane.gpu) and asked.pid in (None, pid_of(lane.process))]
    if not fitting:
        there = ", ".join(f"GPU {lane.gpu} with process {pid_of(lane.process)}" for lane in known)
        raise CannotAnswerError("the GPU or process asked for has no operations here", hint=f"the capture has {there}")
    with_steps = [lane for lane in fitting if len(decode_rows(windows, lane))]
    if asked.steps and not with_steps:
        raise CannotAnswerError("no decode step has such an index", hint="`--json` lists the steps with their index")
    return with_steps[0] if with_steps else None


def _steps(timeline: Timeline, steps: Steps, windows: pl.DataFrame, lane: Lane | None) -> StepsReport:
    found = [
        Lane(gpu, process) for gpu, process in windows.select("gpu", "process").unique(maintain_order=True).iter_rows()
    ]
    by_device = [(one, decode_rows(windows, one)) for one in found]
    rows = decode_rows(windows, lane) if lane else windows.clear()
    mine = windows.filter((windows["gpu"] == lane.gpu) & (windows["process"] == lane.process)) if lane else windows
    excluded = mine["excluded"].drop_nulls().value_counts().sort("excluded").iter_rows()
    told = steps.of(lane.gpu, lane.process) if lane else steps.of()
    replays = lane is not None and not timeline.replays.filter(timeline.replays["gpu"] == lane.gpu).is_empty()
    return StepsReport(
        method=told.method,
        confidence=told.confidence,
        count=len(rows),
        excluded=dict(excluded),
        gpu=lane.gpu if lane else None,
        pid=pid_of(lane.process) if lane else None,
        roles=roles(timeline, steps, rows, lane) if lane else [],
        per_step=per_step(rows),
        by_device=[
            DeviceSteps(gpu=one.gpu, pid=pid_of(one.process), count=len(theirs), per_step=per_step(theirs))
            for one, theirs in by_device
        ],
        bubble_share=bubble_share(rows, has_replays=replays)
        if lane
        else BubbleShare(intra_graph=None, inter_graph=None, total=None),
        rows=step_rows(windows),
        mark=told.mark,
    )


def _facts(timeline: Timeline) -> TraceFacts:
    info = timeline.trace.info
    names = {gpu.gpu: gpu.name for gpu in info.gpus}
    return TraceFacts(
        name=info.name,
        nsys_version=info.nsys_version,
        schema_version=info.schema_version,
        cupti_version=info.cupti_version,
        driver_version=info.driver_version,
        cuda_version=info.cuda_version,
        capture_mode=timeline.mode.value,
        duration_ns=info.duration_ns,
        gpus=[GpuInfo(gpu=device.gpu, name=names.get(device.gpu)) for device in timeline.devices],
        processes=[ProcessInfo(pid=process.pid, name=process.name) for process in info.processes],
    )


def _quality(notes: tuple[QualityNote, ...]) -> list[Quality]:
    return [Quality(code=note.code, level=note.level, message=note.message, count=note.count) for note in notes]
