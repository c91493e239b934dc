"""What a report says of the floor under its step and of benchmark runs, from what the user says of the model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bubblefinder.economics.floor import Floor, RoleFloor, floor_of
from bubblefinder.economics.hardware import bandwidth_of
from bubblefinder.economics.serving import Capture, Served, served
from bubblefinder.economics.traffic import Load
from bubblefinder.report.economics import EconomicsReport, FloorReport, RoleFloorReport, ServedReport
from bubblefinder.report.model import mean_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.economics.bench import Bench
    from bubblefinder.economics.shape import Shape
    from bubblefinder.report.model import Report
    from bubblefinder.trace.model import TraceInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the user says about the model and its serving.

    Attributes:
        shape: the model; null: no floor is asked for.
        load: how it ran.
        bandwidth: bytes a second, instead of the capture's own.
        benches: runs of a benchmark of the same program.
        accept_length: tokens a verify pass commits, its own included; null: what the first run says.
    """

    shape: Shape | None = None
    load: Load = field(default_factory=Load)
    bandwidth: float | None = None
    benches: tuple[Bench, ...] = ()
    accept_length: float | None = None

    @property
    def accepted(self) -> float | None:
        """Tokens a verify pass commits, by the user or else by the first run that says it."""
        stated = (bench.accept_length for bench in self.benches if bench.accept_length is not None)
        return next(stated, None) if self.accept_length is None else self.accept_length


def economics_report(report: Report, info: TraceInfo, question: Question) -> EconomicsReport | None:
    """Return the section on a report's own figures; null where nothing was asked.

    Raises:
        CannotAnswerError: the GPU's bandwidth is not known.
    """
    if question.shape is None and not question.benches:
        return None
    return EconomicsReport(
        floor=floor_report(floor_under(report, info, question.shape, question)) if question.shape else None,
        served=[_served(one) for one in served(question.benches, captured(report))],
    )


def with_benches(report: Report, benches: Sequence[Bench]) -> Report:
    """Return the report with these runs held against it, in place of those it has; as it was without any."""
    if not benches:
        return report
    held = [_served(one) for one in served(benches, captured(report))]
    return replace(report, economics=replace(report.economics or EconomicsReport(), served=held))


def floor_under(report: Report, info: TraceInfo, shape: Shape, question: Question) -> Floor:
    """Return the floor under a report's steps.

    Raises:
        CannotAnswerError: the GPU's bandwidth is not known.
    """
    used = next((one for one in info.gpus if one.gpu == report.steps.gpu), None)
    name, recorded = (used.name, used.bandwidth) if used else (None, None)
    return floor_of(
        shape,
        question.load,
        bandwidth_of(name, recorded, question.bandwidth),
        {role.role: role.p50_ns * role.replays_per_step for role in report.steps.roles},
        {name: stats.mean for name, stats in report.steps.per_step.items()} if report.steps.count else {},
    )


def captured(report: Report) -> Capture:
    """Return what a benchmark is held against: the mean step, the one without the profiler, its idle and its drafts."""
    mean, inflation = mean_of(report.steps.per_step, "duration"), report.overhead.inflation
    share = report.steps.bubble_share.total
    return Capture(
        step_ns=mean,
        untraced_ns=mean / inflation if mean and inflation else None,
        bubble_ns=share * mean if share is not None and mean is not None else None,
        drafts=any(role.role.startswith("draft") for role in report.steps.roles),
    )


def floor_report(floor: Floor) -> FloorReport:
    """Return a floor in plain values: times in ns, bytes, bytes a second, shares."""
    return FloorReport(
        model=floor.model,
        source=floor.source,
        tp=floor.load.ranks,
        context=floor.load.context,
        batch=floor.load.batch,
        draft_steps=floor.load.draft_steps,
        draft_tokens=floor.load.draft_tokens,
        bandwidth=floor.bandwidth.bytes_per_second,
        bandwidth_source=floor.bandwidth.source,
        bytes=round(floor.bytes),
        floor_ns=round(floor.floor_ns),
        step_ns=_whole(floor.step_ns),
        achieved_share=floor.achieved_share,
        effective_bandwidth=floor.effective_bandwidth,
        roles=[_role(role) for role in floor.roles],
        waterfall_ns={name: _whole(value) for name, value in floor.waterfall.items()} if floor.waterfall else None,
        impossible=list(floor.impossible),
    )


def _role(role: RoleFloor) -> RoleFloorReport:
    return RoleFloorReport(
        role=role.traffic.role,
        bytes=round(role.traffic.total),
        floor_ns=round(role.floor_ns),
        least_ns=round(role.least_ns),
        length_ns=_whole(role.length_ns),
        achieved_share=role.achieved_share,
        effective_bandwidth=role.effective_bandwidth,
    )


def _served(one: Served) -> ServedReport:
    return ServedReport(
        engine=one.bench.engine,
        scenario=one.bench.scenario,
        concurrency=one.bench.concurrency,
        tpot_ns=round(one.bench.tpot_ns),
        accept_length=one.bench.accept_length,
        step_ns=round(one.step_ns),
        captured_ns=_whole(one.captured_ns),
        off=one.off,
        bubble_share_of_tpot=one.bubble_share_of_tpot,
        output_throughput=one.bench.output_throughput,
        notes=list(one.notes),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
