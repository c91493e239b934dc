"""A comparison as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.compare.sentences import (
    capture_name,
    difference,
    metric_name,
    of_cause,
    place,
    rests_on,
    title_and_rest,
    value,
)
from bubblefinder.render.diff.tables import tables
from bubblefinder.render.kit.sheet import Case, Level, Sheet
from bubblefinder.report.sentences import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.compare.model import Capture, Change, Diff

_LEVELS: Final[dict[str, Level]] = {
    "regression": "fail",
    "mixed": "fail",
    "can't tell": "unknown",
    "incomparable": "unknown",
}


def sheet(diff: Diff) -> Sheet:
    """Return the verdict, what it rests on, the captures, and the tables."""
    verdict, rest = title_and_rest(diff)
    names = " against ".join(plain(side[0].name, 60) for side in (diff.base, diff.head))
    return Sheet(
        document="diff",
        title=f"{names} · bubblefinder diff",
        headline=diff.headline,
        verdict=verdict,
        rest=f"{rest[:1].upper()}{rest[1:]}",
        level=_LEVELS.get(diff.verdict, "ok"),
        points=tuple(_points(diff)),
        basis=rests_on(diff),
        warnings=tuple(diff.warnings),
        sources=tuple(
            f"{side}: {capture_name(one)}, {one.capture_mode} mode, {one.steps} steps"
            for side, captures in (("base", diff.base), ("head", diff.head))
            for one in captures
        ),
        tables=tuple(tables(diff)),
        cases=tuple(_cases(diff)),
    )


def records(diff: Diff) -> list[dict[str, object]]:
    """Return one record a metric: both sides, the change, the noise it was held against, and the verdict on it."""
    return [
        {
            "metric": change.metric,
            "where": place(change.where).strip(" ()"),
            "unit": change.unit,
            "base": change.base.value,
            "head": change.head.value,
            "delta": change.delta,
            "threshold": change.threshold,
            "status": change.status,
            "gated": change.gated,
        }
        for change in diff.changes
    ]


def _points(diff: Diff) -> Iterator[tuple[str, str]]:
    """Yield what to do, what else explains or offsets the change, and which runs, by label and commit."""
    for number, one in enumerate(diff.suspects):
        if number:
            yield f"Then ({of_cause(one)})", f"{one.sentence}."
        elif one.remedy:
            yield "What to do", one.remedy
    for said in diff.offsets:
        yield "Cancels out", f"{said}."
    for name, side in (("Base", diff.base), ("Head", diff.head)):
        if any(one.commit or one.label for one in side):
            yield name, ", ".join(dict.fromkeys(_origin(one) for one in side))


def _origin(capture: Capture) -> str:
    return " ".join(plain(text, 80) for text in (capture.label, capture.commit and f"at {capture.commit}") if text)


def _cases(diff: Diff) -> Iterator[Case]:
    """Yield a case for each metric that the verdict hangs on; where nothing can be compared, one that says why."""
    if diff.verdict == "incomparable":
        yield Case("comparison", "unknown", "incomparable", diff.headline)
    for change in diff.changes:
        if change.gated and diff.verdict != "incomparable":
            level: Level = "fail" if change.status == "worse" else "ok"
            yield Case(f"{change.metric}{place(change.where)}", level, change.status, _said(change))


def _said(change: Change) -> str:
    sides = f"{value(change.base.value, change.unit)} before, {value(change.head.value, change.unit)} after"
    return f"{metric_name(change)}: {sides}" + (f" ({moved})" if (moved := difference(change)) else "")
