"""Why a report fails its budget: the first suspect against earlier runs, else its costliest finding."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bubblefinder.compare.diff import captures, diff, failed
from bubblefinder.compare.sentences import CAPTURE_AGAIN, capture_name, value
from bubblefinder.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.compare.judge import Judged
    from bubblefinder.compare.model import Diff
    from bubblefinder.report.model import Report


def change_since(earlier: Sequence[Report], report: Report) -> Diff | None:
    """Return what changed from earlier reports to this one; null without any, or where they can't be compared."""
    result = diff(earlier, [report]) if earlier else None
    return result if result and result.verdict != "incomparable" else None


def excuse_of(change: Diff | None) -> str:
    """Return why a longer step is not the program's doing; empty where nothing says so."""
    if change is None or change.verdict != "can't tell":
        return ""
    return change.headline.partition(": ")[2]


def stalls_in(change: Diff | None) -> str:
    """Return in words that few steps of the report stall and none of the earlier ones' did; empty where it isn't so.

    The mean of a step is no measure of that where the host scatters.
    """
    rows = change.changes if change and failed(change) else []
    row = next((r for r in rows if r.gated and r.stalls and r.status == "worse"), None)
    if row is None:
        return ""
    before, after = (value(side.value, row.unit) for side in (row.base, row.head))
    steps = plural(row.stalls, "step")
    return f"the mean step takes {after} against {before}, by {steps} longer than all of the last runs'"


def explained(judged: Judged, report: Report, change: Diff | None) -> Judged:
    """Return the verdicts with their cause, its remedy and the runs compared."""
    cause, remedy = _cause(report, change)
    return replace(
        judged,
        cause=cause,
        remedy=remedy,
        base=", ".join(dict.fromkeys(map(capture_name, change.base))) if change else None,
        head=capture_name(captures([report])[0]),
    )


def _cause(report: Report, change: Diff | None) -> tuple[str | None, str | None]:
    if change and change.verdict == "can't tell":
        return excuse_of(change).removesuffix(CAPTURE_AGAIN).rstrip(), CAPTURE_AGAIN
    if change and change.suspects:
        first = change.suspects[0]
        return f"{first.sentence}, by the mean ({first.confidence} confidence)", first.remedy or None
    costliest = next(iter(report.findings), None)
    return (costliest.title, costliest.remedy) if costliest else (None, None)
