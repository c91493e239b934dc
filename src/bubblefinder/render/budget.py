"""A judged budget as people and CI read it."""

from __future__ import annotations

from typing import Final

from bubblefinder.compare.judge import UNANSWERED, Judged, Judgement
from bubblefinder.compare.limit_syntax import format_limit
from bubblefinder.compare.sentences import place
from bubblefinder.render.kit.sheet import Case, Level, Sheet, Table
from bubblefinder.report.sentences import plain
from bubblefinder.units import UNKNOWN, count

SIGNS: Final = {
    "ok": "✓", "improved": "✓", "within-noise": "✓", "warn": "!", "fail": "✗", "missing": "?", "incomparable": "?",
}  # fmt: skip
_ORDER: Final = ("fail", "missing", "incomparable", "warn", "within-noise", "improved", "ok")
_LEVELS: Final[dict[int, Level]] = {0: "ok", 1: "fail"}


def sheet(judged: Judged) -> Sheet:
    """Return the verdict, what was judged against what, and every limit, broken ones first."""
    verdict, _, rest = judged.headline.partition(": ")
    said = ("Cause", judged.cause), ("What to do", judged.remedy), ("Base", judged.base), ("Head", judged.head)
    return Sheet(
        document="budget",
        title=f"{plain(judged.name, 60)} · bubblefinder budget",
        headline=judged.headline,
        verdict=verdict,
        rest=rest,
        level=_LEVELS.get(judged.exit_code, "unknown"),
        points=tuple((name, plain(text, 600)) for name, text in said if text),
        basis=rests_on(judged),
        warnings=tuple(judged.warnings),
        tables=(limits(judged),) if judged.judgements else (),
        cases=_cases(judged),
    )


def records(judged: Judged) -> list[dict[str, object]]:
    """Return one record a limit: what was measured, what was allowed, and the verdict on it."""
    return [
        {
            "metric": one.metric,
            "where": place(one.where).strip(" ()"),
            "unit": one.unit,
            "value": one.value,
            "limit": one.limit,
            "outcome": one.outcome,
            "gates": one.gates,
            "message": one.message,
            "why": one.why,
            "owner": one.owner,
        }
        for one in judged.judgements
    ]


def limits(judged: Judged) -> Table:
    """Return one row a limit, broken ones first."""
    rows = [
        (
            f"{one.metric}{place(one.where)}",
            one.limit or UNKNOWN,
            format_limit(one.value, one.unit) if one.value is not None else UNKNOWN,
            f"{SIGNS[one.outcome]} {one.outcome}",
            plain("; ".join(part for part in (one.message, one.why, one.owner and f"owner: {one.owner}") if part), 400),
        )
        for one in sorted(judged.judgements, key=lambda one: _ORDER.index(one.outcome))
    ]
    return Table("Limits", ("metric", "limit", "value", "verdict", "why"), rows, left=("verdict", "why"))


def rests_on(judged: Judged) -> str:
    """Return what was judged, and against what."""
    parts = [plain(part, 80) for part in (judged.name, judged.label, judged.commit) if part]
    parts.append(f"{count(judged.steps)} decode steps")
    parts.append(f"baseline: {plain(judged.baseline, 120)}" if judged.baseline else "no baseline")
    return ", ".join(parts)


def _cases(judged: Judged) -> tuple[Case, ...]:
    """Return a case for each limit, and one for the verdict itself where it doesn't rest on any of them."""
    cases = tuple(map(_case, judged.judgements))
    level = _LEVELS.get(judged.exit_code, "unknown")
    if level == "ok" or any(case.level == level for case in cases):
        return cases
    return (Case(name="verdict", level=level, kind=level, message=judged.headline), *cases)


def _case(one: Judgement) -> Case:
    level: Level = "fail" if one.outcome == "fail" else "ok"

    return Case(
        name=f"{one.metric}{place(one.where)} {one.limit}".strip(),
        level="unknown" if one.outcome in UNANSWERED and one.gates else level,
        kind=one.outcome,
        message=one.message,
        text=one.why or "",
        properties=(("verdict", one.outcome), ("severity", "error" if one.gates else "warn"), ("owner", one.owner)),
    )
