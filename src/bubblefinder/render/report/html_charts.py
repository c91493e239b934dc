"""What the page shows of a report, measured out for drawing: key figures, the step's parts, the ranks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit.bars import WIDTH, Segment, lay_out, segment
from bubblefinder.render.report.charts import ledger_known
from bubblefinder.report.many import ranks_shown
from bubblefinder.report.model import mean_of
from bubblefinder.report.prediction_sentences import is_handed_on
from bubblefinder.report.sentences import CLASS_MEANINGS, class_label, plain
from bubblefinder.report.verdict import is_here, leading_finding, row_leads
from bubblefinder.timeline.model import LEDGER_CLASSES
from bubblefinder.units import UNKNOWN, duration, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bubblefinder.report.model import Report, Stats

NOTABLE_REST: Final = 0.005


@dataclass(frozen=True, slots=True)
class KeyFigure:
    """A number with its name and what it rests on."""

    name: str
    value: str
    note: str


@dataclass(frozen=True, slots=True)
class WaterfallRow:
    """A part of the step: the raw and the corrected median, each with its bar."""

    css: str
    name: str
    meaning: str
    raw: tuple[Segment, ...]
    corrected: tuple[Segment, ...]
    raw_ns: float | None
    corrected_ns: float | None


def key_figures(report: Report) -> Iterator[KeyFigure]:
    """Yield the numbers under the verdict; what isn't known has no figure."""
    steps, overhead = report.steps, report.overhead
    if steps.count:
        whole = steps.per_step["duration"]
        yield KeyFigure("Decode step", duration(whole.p50), f"median; p95 {duration(whole.p95)}")
        yield from _idle_figures(report)
    yield from _gain_figures(report)
    if overhead.corrected_step_ns is not None:
        shares = overhead.corrected_bubble_share
        idle = f"{share(shares.total)} idle" if shares and shares.total is not None else ""
        spread = " to ".join(duration(bound) for bound in overhead.range_ns or ())
        told = "; ".join(part for part in (idle, spread) if part) or overhead.method
        yield KeyFigure("Without the profiler", duration(overhead.corrected_step_ns), told)


def _gain_figures(report: Report) -> Iterator[KeyFigure]:
    """Yield what the verdict tells first: what the first finding gives, or all waits that it is one of together."""
    finding, joint, row = leading_finding(report), report.joint, row_leads(report)
    gain, of = (finding.recoverable_ns if finding else None), "the first finding"
    if row is not None and row.joint.recoverable_ns is not None:
        gain, of = row.joint.recoverable_ns, f"the {len(row.links)} waits in a row together"
    elif finding and gain is not None and joint and is_handed_on(finding) and is_here(finding, report):
        gain, of = joint.recoverable_ns, f"all {joint.findings} waits and pauses together"
    if gain is not None:
        yield KeyFigure("To recover", duration(gain), f"a step, from {of}")


def _idle_figures(report: Report) -> Iterator[KeyFigure]:
    ratio, eager = report.steps.bubble_share, report.trace.capture_mode == "none"
    of = "of the decode time"
    if ratio.inter_graph is not None:
        yield KeyFigure("Idle" if eager else "Idle between replays", share(ratio.inter_graph), of)
    if ratio.intra_graph is not None:
        yield KeyFigure("Idle inside replays", share(ratio.intra_graph), of)
    elif ratio.inter_graph is not None and not eager:
        yield KeyFigure("Idle inside replays", UNKNOWN, "not measured: graph capture")


def strip(per_step: Mapping[str, Stats]) -> tuple[Segment, ...]:
    """Return the mean step as one bar, a segment a class; nothing where the classes don't make up the step."""
    if not ledger_known(per_step):
        return ()
    return _mean_step(per_step, per_step["duration"].mean or 0)


def waterfall(report: Report) -> list[WaterfallRow]:
    """Return the parts of the median step, each starting where the one before ends; nothing where some are unknown.

    Medians of the parts need not add up to the median step; a difference of half a percent or more is the last row.
    """
    raw = {name: stats.p50 for name, stats in report.steps.per_step.items()}
    corrected = report.overhead.corrected
    if not ledger_known(report.steps.per_step):
        return []
    scale = max(raw["duration"] or 0, corrected.get("duration") or 0, _parts(raw), _parts(corrected))
    whole = raw.get("duration"), corrected.get("duration")
    rows = [_row("step", "step", "the whole median step", whole, (0.0, 0.0), scale)]
    starts = 0.0, 0.0
    for name in LEDGER_CLASSES:
        values = raw.get(name), corrected.get(name)
        if any(values) or name == "busy":
            rows.append(_row(name, class_label(name), CLASS_MEANINGS[name], values, starts, scale))
            starts = starts[0] + (values[0] or 0), starts[1] + (values[1] or 0)
    step = raw["duration"] or 0
    rest = step - starts[0]
    if abs(rest) >= NOTABLE_REST * step:
        meaning = "medians of the parts need not add up to the median step"
        bar = segment("rest", "", abs(rest), min(starts[0], step), scale)
        rows.append(WaterfallRow("rest", "difference", meaning, (bar,), (), rest, None))
    return rows


def busy_by_role(report: Report) -> list[tuple[str, float]]:
    """Return the busy time of each role in a median step, and of the rest; empty where roles overlap.

    Inside a replay busy is the span without the gaps; where those were not measured, it is the span.
    """
    roles = [
        (plain(role.role, 60), (role.p50_ns - (role.intra_graph_p50_ns or 0)) * role.replays_per_step)
        for role in report.steps.roles
    ]
    busy = report.steps.per_step["busy"].p50 if "busy" in report.steps.per_step else None
    if busy is None or not roles:
        return []
    rest = busy - sum(ns for _, ns in roles)
    if rest < -0.01 * busy:
        return []
    return [*roles, ("outside graphs", max(rest, 0.0))]


def role_segments(report: Report) -> tuple[Segment, ...]:
    """Return the busy part of the waterfall cut by role."""
    parts = busy_by_role(report)
    rows = waterfall(report)
    if not parts or not rows:
        return ()
    scale = WIDTH * (rows[0].raw_ns or 0) / rows[0].raw[0].width
    return lay_out((("busy", name, ns) for name, ns in parts if ns), scale)


def rank_bars(report: Report) -> list[tuple[Segment, ...]]:
    """Return the mean step of each rank that is shown, on one scale; empty for a single one."""
    shown, _ = ranks_shown(report)
    longest = max((one.per_step["duration"].mean or 0 for one in shown), default=0)
    return [_mean_step(one.per_step, longest) for one in shown] if len(shown) > 1 else []


def _mean_step(per_step: Mapping[str, Stats], scale: float) -> tuple[Segment, ...]:
    means = ((name, class_label(name), mean_of(per_step, name) or 0) for name in LEDGER_CLASSES)
    return lay_out((part for part in means if part[2]), scale)


def _parts(values: Mapping[str, float | None] | Mapping[str, int | None]) -> float:
    return sum(values.get(name) or 0 for name in LEDGER_CLASSES)


def _row(
    css: str,
    name: str,
    meaning: str,
    values: tuple[float | None, float | None],
    starts: tuple[float, float],
    scale: float,
) -> WaterfallRow:
    raw, corrected = (
        (segment(css, name, value, start, scale),) if value else () for value, start in zip(values, starts, strict=True)
    )
    return WaterfallRow(css, name, meaning, raw, corrected, *values)
