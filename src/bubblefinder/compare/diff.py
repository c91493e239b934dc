"""Compare two sides of one or more captures each, per step: refuse, measure, judge, and say what it rests on."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import fsum
from statistics import fmean
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.baseline import step_ns
from bubblefinder.compare.changes import Evidence, as_much_overlap, changes, not_better_unseen
from bubblefinder.compare.comparable import benchmark_traps, refusals, warnings
from bubblefinder.compare.delta.cause import Cause, cause_of, speed_between
from bubblefinder.compare.delta.normalise import paced_ns
from bubblefinder.compare.delta.tracer import Delay, added_by_tracer, delays_of
from bubblefinder.compare.kernels import kernel_changes
from bubblefinder.compare.metrics import METRICS, Key, decode_rows, ranks
from bubblefinder.compare.model import SCHEMA, Capture, Change, Diff, Noise, SiteChange, TypicalStep, Verdict
from bubblefinder.compare.noise import Floors, Setting, Spread, regime, waiting_of
from bubblefinder.compare.reach import reach_between
from bubblefinder.compare.sentences import headline, refusal
from bubblefinder.compare.sites import idle_that_stayed, site_changes
from bubblefinder.errors import UsageError
from bubblefinder.timeline.model import INTER_CLASSES, LEDGER_CLASSES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.report.charts import StepTimeline
    from bubblefinder.report.found import Confidence
    from bubblefinder.report.model import Report

GATE: Final = "step.duration.p50"
GATES: Final = frozenset({"step.duration.mean", GATE, "step.duration.p95"})
"""The mean and the tail as well: stalls in few steps leave the median as it was."""
INTER_GATE: Final = "step.host_late.p50"
MEDIUM_DEGREES: Final = 2
HIGH_DEGREES: Final = 4
_INTER: Final = tuple(f"step.{name}." for name in (*INTER_CLASSES, "inter_graph"))
_INTER_WARNING: Final = (
    "Tracing graph nodes makes launch calls slower: between the two capture modes, launching differs by that alone."
)


@dataclass(frozen=True, slots=True)
class Options:
    """What a user may decide about a comparison.

    Attributes:
        gates: metric ids that decide the verdict; empty for the length of a step: mean, p50 and p95.
        inter_only: compare nothing but the idle time between replays.
        floors: the difference that one capture a side must exceed, by regime.
        known: spread between captures of the same thing from stored runs, by metric.
    """

    gates: frozenset[str] = frozenset()
    inter_only: bool = False
    floors: Floors = field(default_factory=Floors)
    known: Mapping[Key, Spread] = field(default_factory=dict)


def diff(base: Sequence[Report], head: Sequence[Report], options: Options | None = None) -> Diff:
    """Return what changed from base to head.

    Sides that can't be compared give a Diff with the verdict `incomparable` and the reasons.

    Raises:
        UsageError: a gate names no metric, or one that this comparison leaves out.
    """
    options = options or Options()
    gates = _gates(options)
    reasons = refusals(base, head, inter_only=options.inter_only)
    if reasons:
        return _refused(base, head, reasons, options)
    setting = _setting(base, head, options)
    findings = site_changes(base, head, setting.share * setting.step_ns)
    delays = delays_of(base, head)
    speed, tracer = speed_between(base, head, delays), _tracer(base, head, delays)
    evidence = Evidence(setting, options.known, _explained(findings), paced_ns(speed), tracer)
    rows = [c for c in changes(base, head, evidence, gates) if not options.inter_only or c.metric.startswith(_INTER)]
    unknown = [f"{gate} is not known on both sides." for gate in sorted(gates) if not _answered(gate, rows)]
    if unknown:
        return _refused(base, head, unknown, options)
    if options.inter_only:
        findings = [f for f in findings if f.site.role is None]
    findings, rows = idle_that_stayed(findings, rows), as_much_overlap(not_better_unseen(rows))
    cause = Cause() if options.inter_only else cause_of(base, head, rows, delays, speed)
    notes = [*warnings(base, head), *([_INTER_WARNING] if options.inter_only else [])]
    noise = _noise(base, head, setting, options)
    verdict: Verdict = "can't tell" if cause.excuse else verdict_of(rows)
    return Diff(
        schema=SCHEMA,
        tool=head[0].tool,
        verdict=verdict,
        confidence=_confidence(noise, notes),
        headline=headline(verdict, [c for c in rows if c.gated], noise, findings, cause),
        inter_only=options.inter_only,
        base=captures(base),
        head=captures(head),
        warnings=[*notes, *cause.notes, *benchmark_traps(base, head)],
        noise=noise,
        changes=rows,
        findings=findings,
        kernels=[] if options.inter_only else kernel_changes(base, head, setting),
        speed=cause.speed,
        deltas=list(cause.deltas),
        suspects=list(cause.suspects),
        offsets=list(cause.offsets),
        base_step=representative_step(base),
        head_step=representative_step(head),
    )


def _tracer(
    base: Sequence[Report], head: Sequence[Report], delays: Sequence[Delay]
) -> tuple[list[dict[Key, float]], list[dict[Key, float]]]:
    """Return what tracing adds to the metrics of each capture; nothing where that isn't beyond doubt."""
    surely = [delay for delay in delays if all(one.tracers for one in delays)]
    sides = (base, [delay.base_ns for delay in surely]), (head, [delay.head_ns for delay in surely])
    before, after = (added_by_tracer(side, times) for side, times in sides)
    return before, after


def _answered(gate: str, rows: Sequence[Change]) -> bool:
    """Tell whether a gate could be judged wherever both sides have it, and somewhere at all."""
    mine = [row for row in rows if row.metric == gate]
    return any(row.delta is not None for row in mine) and all(row.status != "unknown" for row in mine)


def verdict_of(rows: Sequence[Change]) -> Verdict:
    """Return what the gated metrics say together."""
    statuses = {row.status for row in rows if row.gated}
    if {"better", "worse"} <= statuses:
        return "mixed"
    if "worse" in statuses:
        return "regression"
    return "improvement" if "better" in statuses else "no change"


def failed(result: Diff) -> bool:
    """Tell whether a gated metric is worse."""
    return result.verdict in {"regression", "mixed"}


def captures(side: Sequence[Report]) -> list[Capture]:
    """Return what is to be said about where a side comes from."""
    return [
        Capture(
            name=report.trace.name,
            label=report.run.label,
            commit=report.run.commit,
            capture_mode=report.trace.capture_mode,
            nsys_version=report.trace.nsys_version,
            gpus=[gpu.name for gpu in report.trace.gpus],
            ranks=len(ranks(report)),
            steps=report.steps.count,
            regime=regime(waiting_of(report)),
        )
        for report in side
    ]


def _gates(options: Options) -> frozenset[str]:
    gates = options.gates or (frozenset({INTER_GATE}) if options.inter_only else GATES)
    for gate in sorted(gates):
        if gate not in METRICS:
            raise UsageError(f"There is no metric {gate}.", hint="`bubblefinder metrics` lists them.")
        if options.inter_only and not gate.startswith(_INTER):
            raise UsageError(f"{gate} is not compared with --inter-only.", hint=f"Gate on {INTER_GATE} instead.")
    return gates


def _setting(base: Sequence[Report], head: Sequence[Report], options: Options) -> Setting:
    lengths = [fsum(step_ns(report) for report in side) / len(side) for side in (base, head)]
    return Setting(
        waiting=max(waiting_of(report) for report in (*base, *head)),
        step_ns=min(lengths),
        ranks=max(len(ranks(report)) for report in (*base, *head)),
        floors=options.floors,
        reach=reach_between(base, head, options.floors),
    )


def _explained(findings: Sequence[SiteChange]) -> float:
    """Return what the calls that came, minus those that went, cost a step by replaying the step without them.

    Their idle time is no measure of that: behind it may lie a host that is late anyway.
    """
    came = [f.head.recoverable_ns or 0 for f in findings if f.structural and f.status == "new"]
    went = [f.base.recoverable_ns or 0 for f in findings if f.structural and f.status == "gone"]
    return fsum(came) - fsum(went)


def _noise(base: Sequence[Report], head: Sequence[Report], setting: Setting, options: Options) -> Noise:
    history = options.known.get((GATE, (("rank", 0),)), Spread()).degrees
    return Noise(
        regime=setting.regime,
        floor=setting.share,
        least=setting.floors.gpu,
        degrees=len(base) + len(head) - 2 + history,
        history=history,
    )


def _confidence(noise: Noise, notes: Sequence[str]) -> Confidence:
    if noise.degrees < MEDIUM_DEGREES:
        return "low"
    return "high" if noise.degrees >= HIGH_DEGREES and not notes else "medium"


def _refused(base: Sequence[Report], head: Sequence[Report], reasons: list[str], options: Options) -> Diff:
    return Diff(
        schema=SCHEMA,
        tool=head[0].tool,
        verdict="incomparable",
        confidence="high",
        headline=refusal(reasons),
        inter_only=options.inter_only,
        base=captures(base),
        head=captures(head),
        refusals=reasons,
    )


def representative_step(side: Sequence[Report]) -> TypicalStep | None:
    """Return the median step of the capture whose median lies closest to the side's mean; null without rows."""
    report = _closest(side)
    rows = sorted(decode_rows(report, ranks(report)[0]), key=lambda row: (row.duration_ns, row.index))
    if not rows:
        return None
    timeline = _drawn(report, {row.index for row in rows})
    row = next((r for r in rows if timeline and r.index == timeline.index), rows[(len(rows) - 1) // 2])
    return TypicalStep(
        capture=report.trace.name,
        index=row.index,
        gpu=row.gpu,
        duration_ns=row.duration_ns,
        parts={name: ns for name in LEDGER_CLASSES if (ns := getattr(row, f"{name}_ns")) is not None},
        timeline=timeline,
    )


def _closest(side: Sequence[Report]) -> Report:
    lengths = [step_ns(report) for report in side]
    mean = fmean(lengths)
    return min(zip(lengths, side, strict=True), key=lambda pair: abs(pair[0] - mean))[1]


def _drawn(report: Report, indices: set[int]) -> StepTimeline | None:
    rank = ranks(report)[0]
    drawn = [t for t in report.detail.timelines if (t.gpu, t.pid) == (rank.gpu, rank.pid) and t.index in indices]
    return next((t for t in drawn if t.which == "median"), None)
