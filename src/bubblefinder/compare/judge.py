"""A report held against budgets: one verdict a limit, and one exit code for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from bubblefinder.compare.baseline import Baseline, Distance, shift
from bubblefinder.compare.comparable import unmeasured
from bubblefinder.compare.limit_syntax import format_limit
from bubblefinder.compare.metrics import METRICS, SERVING, Measure, Unit, measure
from bubblefinder.compare.scenario import Results, ServingMeasure, measures
from bubblefinder.economics.serving import served, traps
from bubblefinder.errors import EXIT_GATE, EXIT_INPUT, EXIT_OK
from bubblefinder.overhead.model import TRUSTED
from bubblefinder.report.economics_build import captured
from bubblefinder.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import date

    from bubblefinder.compare.budget import Budget, BudgetFile, Scenario, ServingBudget
    from bubblefinder.report.model import Report

SCHEMA: Final = "bubblefinder.judgement/1"

NO_BASELINE: Final = "there is no baseline to hold it against"
_UNTOLD: Final = "the capture can't tell it"

Outcome = Literal["ok", "improved", "within-noise", "warn", "fail", "missing", "incomparable"]

UNANSWERED: Final = frozenset({"missing", "incomparable"})
_CORRECTED: Final = ("corrected.", "overhead.")
_ASSUMED: Final = (
    "what the profiler costs here is only assumed; analyse with --reference, --untraced-step-ms or --calibration"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The verdict on one limit for one value. `gates`: it can fail the run."""

    metric: str
    where: dict[str, str | int]
    unit: Unit
    outcome: Outcome
    value: float | None
    limit: str
    message: str
    gates: bool
    why: str | None
    owner: str | None
    until: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """All verdicts on one report; where it fails, what explains it, and of what runs that is said.

    A capture that could not be read has no verdicts: the headline says why.
    """

    schema: str
    name: str
    label: str | None
    commit: str | None
    steps: int
    baseline: str | None
    exit_code: int
    headline: str
    judgements: list[Judgement] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    cause: str | None = None
    remedy: str | None = None
    base: str | None = None
    head: str | None = None


def judge(
    report: Report, budgets: BudgetFile, baseline: Baseline | None, today: date, results: Results | None = None
) -> Judged:
    """Return a verdict for every limit and every value it applies to, and what in serving results misleads.

    A limit whose metric the report doesn't know is `missing`; one on a regression without a baseline likewise, or
    `incomparable` if the baseline is of another kind, and a scenario without results is `missing`. None of them passes.
    """
    judgements = [j for one in budgets.budget for j in _judge_one(report, one, baseline, today)]
    judgements += [j for one in budgets.scenario for j in _judge_scenario(one, results or Results(), today)]
    code = exit_code(judgements)
    unable, remedy = unmeasured(report) if budgets.budget and code != EXIT_GATE else ("", "")
    return Judged(
        schema=SCHEMA,
        name=report.trace.name,
        label=report.run.label,
        commit=report.run.commit,
        steps=report.steps.count,
        baseline=baseline.origin if baseline else None,
        exit_code=EXIT_INPUT if unable else code,
        headline=f"Can't tell: {unable}." if unable else _headline(judgements),
        remedy=f"{remedy[:1].upper()}{remedy[1:]}" or None,
        judgements=judgements,
        warnings=_warnings(report, results) if results else [],
    )


def _warnings(report: Report, results: Results) -> list[str]:
    """Return what in the benchmark runs misleads, and where they don't fit the capture."""
    capture = captured(report)
    held = {id(one.bench): one.notes for one in served(results.benches, capture)}
    return [
        f"{bench.scenario or bench.engine} at {bench.concurrency or 'any'}: {note}"
        for bench in results.benches
        for note in held.get(id(bench), tuple(traps(bench, drafts=capture.drafts)))
    ]


def _judge_scenario(scenario: Scenario, results: Results, today: date) -> Iterator[Judgement]:
    for budget in scenario.budget:
        for one in measures(scenario, budget.metric, results):
            yield from _absolute(one, budget, "no result says it", today)


def exit_code(judgements: Sequence[Judgement]) -> int:
    """Return 1 if a gating limit is broken, else 3 if one couldn't be judged, else 0."""
    outcomes = {j.outcome for j in judgements if j.gates}
    if "fail" in outcomes:
        return EXIT_GATE
    return EXIT_INPUT if outcomes & UNANSWERED else EXIT_OK


def _judge_one(report: Report, budget: Budget, baseline: Baseline | None, today: date) -> Iterator[Judgement]:
    chosen = [m for m in measure(report) if m.metric.id == budget.metric and _matches(m, budget)]
    if not chosen:
        where = ", ".join(f"{key} {value}" for key, value in budget.where.items())
        yield _judgement(
            budget, None, "missing", "", f"the report has no {budget.metric}{f' of {where}' * bool(where)}", today
        )
    for one in chosen:
        if one.metric.id.startswith(_CORRECTED) and report.overhead.method not in TRUSTED:
            yield _judgement(budget, one, "missing", "", _ASSUMED, today)
            continue
        yield from _absolute(one, budget, _UNTOLD, today)
        if budget.tolerance is not None:
            outcome, message = _relative(report, one, budget.tolerance, baseline)
            yield _judgement(budget, one, outcome, f"regress {100 * budget.tolerance:g} %", message, today)


def _matches(one: Measure, budget: Budget) -> bool:
    where = dict(one.where)
    return all(where.get(key) == value for key, value in budget.where.items())


def _absolute(
    one: Measure | ServingMeasure, budget: Budget | ServingBudget, unknown: str, today: date
) -> Iterator[Judgement]:
    """Yield the verdicts on the most and the least that are allowed; `unknown` says why nobody knows the value."""
    for name in ("max", "min"):
        limit = budget.limit(name)
        if limit is not None:
            outcome, message = _bounded(one, limit, unknown, above=name == "max")
            yield _judgement(budget, one, outcome, f"{name} {format_limit(limit, one.metric.unit)}", message, today)


def _bounded(one: Measure | ServingMeasure, limit: float, unknown: str, *, above: bool) -> tuple[Outcome, str]:
    if one.value is None:
        return "missing", unknown
    value, bound = (format_limit(number, one.metric.unit) for number in (one.value, limit))
    if (one.value > limit) if above else (one.value < limit):
        return "fail", f"{value} is {'above' if above else 'below'} {bound}"
    if value == bound:
        return "ok", f"{value} is the {'most' if above else 'least'} allowed"
    return "ok", f"{value} is within {bound}" if above else f"{value} is above the least, {bound}"


def _relative(report: Report, one: Measure, tolerance: float, baseline: Baseline | None) -> tuple[Outcome, str]:
    """Judge a change against the baseline: it must exceed both the tolerance and the noise to count."""
    if one.value is None:
        return "missing", _UNTOLD
    if baseline is None or not baseline.captures:
        unlike = f": {baseline.unlike}" if baseline and baseline.unlike else ""
        return "missing", f"{NO_BASELINE}{unlike}"
    if baseline.refusals:
        return "incomparable", " ".join(baseline.refusals)
    moved = shift(baseline, report, one)
    if moved is None:
        return "missing", f"the baseline doesn't know it ({baseline.origin})"
    return _moved(one, moved, tolerance, baseline)


def _moved(one: Measure, moved: Distance, tolerance: float, baseline: Baseline) -> tuple[Outcome, str]:
    worse = moved.delta if one.metric.better == "lower" else -moved.delta
    allowed = tolerance * abs(moved.mean)
    value, mean, line = (format_limit(n, one.metric.unit) for n in (one.value or 0.0, moved.mean, moved.line))
    against = f"{value} against {mean} ({baseline.origin})"
    if worse <= allowed:
        return ("improved" if -worse > max(moved.line, allowed) else "ok"), against
    if worse <= moved.line:
        return "within-noise", f"{against} is more than {100 * tolerance:g} % worse, within the noise of {line}"
    if baseline.excuse and one.metric.unit == "ns":
        return "incomparable", f"{against}, but {baseline.excuse}"
    return "fail", f"{against} is more than {100 * tolerance:g} % worse, beyond the noise of {line}"


def _judgement(
    budget: Budget | ServingBudget,
    one: Measure | ServingMeasure | None,
    outcome: Outcome,
    limit: str,
    message: str,
    today: date,
) -> Judgement:
    waived = budget.until is not None and today <= budget.until
    told, shown = message, outcome
    if outcome == "fail" and waived:
        told = f"{message}; waived until {budget.until}: {budget.why}"
    elif outcome == "fail" and budget.until is not None:
        told = f"{message}; the waiver ended on {budget.until}"
    if outcome == "fail" and (waived or budget.severity == "warn"):
        shown = "warn"
    return Judgement(
        metric=budget.metric,
        where=dict(one.where) if one else dict(getattr(budget, "where", {})),
        unit=(METRICS | SERVING)[budget.metric].unit,
        outcome=shown,
        value=one.value if one else None,
        limit=limit,
        message=told,
        gates=budget.severity == "error",
        why=budget.why,
        owner=budget.owner,
        until=budget.until.isoformat() if budget.until else None,
    )


def _headline(judgements: Sequence[Judgement]) -> str:
    failed = [j for j in judgements if j.outcome == "fail"]
    unanswered = [j for j in judgements if j.outcome in UNANSWERED]
    warned = sum(j.outcome == "warn" for j in judgements)
    if failed:
        others = len(failed) - 1
        more = f" {others} more {'fails' if others == 1 else 'fail'} as well." if others else ""
        return f"Fail: {failed[0].metric}: {failed[0].message}.{more}"
    if gating := [j for j in unanswered if j.gates]:
        return f"Can't tell: {gating[0].metric}: {gating[0].message.rstrip('.')}."
    rest = f", {warned} warn" if warned else ""
    rest += f", {len(unanswered)} can't be told" if unanswered else ""
    return f"Pass: {plural(len(judgements), 'limit')} judged{rest}."
