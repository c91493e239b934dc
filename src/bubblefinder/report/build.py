"""From an analysis to a Report: which rank it is on, what the rules say of it, and its sections."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from bubblefinder._version import __version__
from bubblefinder.causes.accepted import with_accept_length
from bubblefinder.errors import CannotAnswerError
from bubblefinder.lookup import kept, on_gpu
from bubblefinder.memory import give_back
from bubblefinder.overhead.model import Source
from bubblefinder.pipeline import Analysis, with_names_of
from bubblefinder.replay.correct import correct
from bubblefinder.report.chains import chain_reports
from bubblefinder.report.detail import detail
from bubblefinder.report.economics_build import Question, economics_report
from bubblefinder.report.findings import benign, finding, joint
from bubblefinder.report.found import Expected
from bubblefinder.report.host import host_report
from bubblefinder.report.ledgers import (
    decode_rows,
    device_report,
    per_step,
    regimes,
    request_stats,
    request_steps,
    roles,
    step_rows,
    windows_with_ledger,
)
from bubblefinder.report.model import (
    DEFINITIONS,
    SCHEMA,
    DeviceSteps,
    GpuInfo,
    ProcessInfo,
    Report,
    RivalSteps,
    Run,
    Selection,
    StepsReport,
    Tool,
    TraceFacts,
)
from bubblefinder.report.verdict import verdict
from bubblefinder.rules.config import Config
from bubblefinder.rules.engine import run_rules
from bubblefinder.rules.packs import load_packs
from bubblefinder.timeline.missing import untold
from bubblefinder.timeline.rank import Rank, ranks_of
from bubblefinder.timeline.shares import UNKNOWN, bubble_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import Trace


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
        economics: what is known of the model and of a benchmark, for the floor and what a step's tokens cost.
        names_from: a capture of the same program whose names the calls shall have, see `causes.carried_names`.
    """

    gpu: int | None = None
    pid: int | None = None
    window: tuple[int, int] | None = None
    steps: tuple[int, int] | None = None
    step_by: str | None = None
    run: Run = field(default_factory=Run)
    rules: Config = field(default_factory=Config)
    overhead: Source = field(default_factory=Source)
    economics: Question = field(default_factory=Question)
    launch_shapes: bool = False
    names_from: Trace | None = None


def analyze_trace(
    trace: Trace, options: Options | None = None, *, progress: Callable[[str], None] = lambda _: None
) -> Report:
    """Return the report on a loaded trace, see `report_of`; `progress` is called with each stage as it begins."""
    asked = options or Options()
    analysis = Analysis(trace, asked.window, asked.step_by, asked.steps, progress)
    return report_of(with_names_of(analysis, asked.names_from) if asked.names_from else analysis, asked)


def report_of(analysis: Analysis, options: Options | None = None) -> Report:
    """Return the report on an analysis, whose window and steps were found as it was told, not by `options`.

    Raises:
        CannotAnswerError: the capture lacks what was asked for.
        UsageError: an option is wrong.
    """
    asked = options or Options()
    timeline, steps, _ = analysis.timeline, analysis.steps, analysis.causes
    windows = windows_with_ledger(timeline, steps)
    rank = _rank(timeline, windows, asked)
    packs = load_packs(asked.rules.rules)
    analysis.progress("overhead")
    overhead = correct(timeline, steps, analysis.model, _decode(windows, rank), asked.overhead)
    unknown, ranks = overhead.untold_ns, len(analysis.facts.steps)
    cured = replace(analysis.recoverable, untold_ns=unknown)
    verdicts = run_rules(
        with_accept_length(cured.fill(analysis.facts), asked.economics.accepted), packs, asked.rules, rank
    )
    analysis.progress("report")
    give_back()
    report = Report(
        schema=SCHEMA,
        definitions=DEFINITIONS,
        tool=Tool(name="bubblefinder", version=__version__),
        run=asked.run,
        trace=_facts(timeline),
        quality=[*timeline.trace.notes, *timeline.notes, *steps.notes],
        devices=[device_report(timeline, device) for device in timeline.devices],
        steps=_steps(analysis, windows, rank),
        overhead=overhead,
        findings=[finding(match, cured, ranks) for match in verdicts.findings],
        benign=[] if untold(timeline) else benign(analysis),
        expected=[
            Expected(finding=finding(one.match, cured, ranks), reason=one.reason, owner=one.owner)
            for one in verdicts.expected
        ],
        wait_chains=chain_reports(cured, verdicts.findings),
        joint=joint(cured, verdicts, rank) if unknown is None else None,
        host=host_report(analysis.facts, cured, rank),
        detail=detail(analysis, rank, packs.category, launch_shapes=asked.launch_shapes),
    )
    economics = economics_report(report, timeline.trace.info, asked.economics)
    return replace(report, economics=economics, verdict=verdict(report))


def _decode(windows: pl.DataFrame, rank: Rank | None) -> pl.DataFrame:
    return decode_rows(windows, rank) if rank else windows.clear()


def _rank(timeline: Timeline, windows: pl.DataFrame, asked: Options) -> Rank | None:
    """Return the rank to report: the lowest with decode steps, or the one asked for."""
    known = ranks_of(timeline)
    fitting = [rank for rank in known if asked.gpu in (None, rank.gpu) and asked.pid in (None, rank.pid)]
    if not fitting:
        there = ", ".join(f"GPU {rank.gpu} with process {rank.pid}" for rank in known)
        raise CannotAnswerError("the GPU or process asked for has no operations here", hint=f"the capture has {there}")
    return next((rank for rank in fitting if len(decode_rows(windows, rank))), None)


def _steps(analysis: Analysis, windows: pl.DataFrame, rank: Rank | None) -> StepsReport:
    timeline, steps = analysis.timeline, analysis.steps
    by_device = [(one, decode_rows(windows, one)) for one in Rank.in_rows(windows)]
    rows = _decode(windows, rank)
    mine = kept(windows, rank.is_of(windows)) if rank else windows
    excluded: dict[str, list[int]] = {}
    for reason, length in mine[["excluded", "duration_ns"]].iter_rows():
        if reason is not None:
            excluded.setdefault(reason, []).append(length)
    told = steps.of(rank)
    replays = rank is not None and not on_gpu(timeline.replays, rank.gpu).is_empty()
    return StepsReport(
        method=told.method,
        confidence=told.confidence,
        count=len(rows),
        excluded={reason: len(excluded[reason]) for reason in sorted(excluded)},
        gpu=rank.gpu if rank else None,
        pid=rank.pid if rank else None,
        roles=roles(timeline, steps, rows, rank) if rank else [],
        per_step=per_step(rows),
        by_device=[
            DeviceSteps(gpu=one.gpu, pid=one.pid, count=len(theirs), per_step=per_step(theirs))
            for one, theirs in by_device
        ],
        bubble_share=bubble_share(rows, has_replays=replays) if rank else UNKNOWN,
        rows=step_rows(windows),
        mark=told.mark,
        excluded_ns={reason: sum(excluded[reason]) for reason in sorted(excluded)},
        regimes=regimes(timeline, steps, windows, rank) if rank else [],
        rival=RivalSteps(count=told.rival.steps, step_by=told.rival.step_by) if told.rival else None,
        requests=request_stats(rows),
        requests_from=told.requests_from if rows["requests"].count() else None,
        requests_steps=request_steps(rows),
        selection=_selection(analysis, rank),
    )


def _selection(analysis: Analysis, rank: Rank | None) -> Selection | None:
    """Return what the user chose to look at, with the figures of the whole beside it; null if that was asked for."""
    if analysis.window is None and analysis.selected is None and analysis.step_by is None:
        return None
    whole = analysis.whole.steps
    mine = whole.windows.filter(pl.col("excluded").is_null())
    mine = mine.filter(rank.mine) if rank else mine
    middle = mine.select((pl.col("end_ns") - pl.col("start_ns")).median()).item()
    told = whole.of(rank)
    return Selection(
        window_ns=list(analysis.window) if analysis.window else None,
        steps=list(analysis.selected) if analysis.selected else None,
        step_by=analysis.step_by,
        count=len(mine),
        step_p50_ns=middle,
        method=told.method,
        confidence=told.confidence,
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
