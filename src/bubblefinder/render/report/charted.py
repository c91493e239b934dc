"""What a page draws as charts, as the tables of their numbers: windows, lengths of gaps, launch leads, kernels."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit.sheet import Section, Table
from bubblefinder.render.report.charts import filled_histograms, leading_rows, ledger_known
from bubblefinder.report.sentences import EXCLUDED_LABELS, KIND_LABELS, class_label, plain
from bubblefinder.timeline.model import LEDGER_CLASSES
from bubblefinder.units import NS_PER_US, UNKNOWN, count, duration, milliseconds, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.report.charts import KernelRow, KernelRun, LeadRow, StepTimeline, TimelineBar
    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import Report, StepRow

NAME: Final = 110
"""Characters of a kernel's name."""
_NOTABLE_BARS: Final = 60
_EVIDENCE: Final = 50


def sections(report: Report, most: int) -> Iterator[Section]:
    """Yield what there is a chart of, with at most so many rows of windows and of kernels."""
    yield from _windows(report, most)
    yield from _lengths(report)
    yield from _leads(report)
    yield from _kernels(report, most)


def _windows(report: Report, most: int) -> Iterator[Section]:
    rows = leading_rows(report)
    if not rows:
        return
    unknown = "The classes of the windows are not known; what is busy is a lower bound."
    said = () if ledger_known(report.steps.per_step) else (unknown,)
    yield Section("run", "Steps over the run", said, (_window_table(rows, most),), is_detail=True)


def _window_table(rows: Sequence[StepRow], most: int) -> Table:
    names = [name for name in LEDGER_CLASSES if any(getattr(row, f"{name}_ns") for row in rows)]
    cells = [
        (
            str(row.index),
            milliseconds(row.duration_ns),
            *(milliseconds(getattr(row, f"{name}_ns")) for name in names),
            "" if row.excluded is None else EXCLUDED_LABELS.get(row.excluded, plain(row.excluded, 60)),
        )
        for row in rows[:most]
    ]
    left = f"The first {count(most)} of {count(len(rows))} windows; the CSV and JSON reports hold all."
    header = ("window", "ms", *map(class_label, names), "left out")
    note = left if len(rows) > most else ""
    return Table("Numbers of each window", header, cells, note, left=("left out",))


def _lengths(report: Report) -> Iterator[Section]:
    shown = filled_histograms(report)
    if not shown:
        return
    spans = [f"{duration(low)} to {duration(high)}" for low, high in pairwise(shown[0].edges_ns)]
    counts = zip(*(one.counts for one in shown), strict=True)
    rows = [(span, *map(count, numbers)) for span, numbers in zip(spans, counts, strict=True) if any(numbers)]
    table = Table("Counts by length", ("length", *(class_label(one.gap_class) for one in shown)), rows)
    said = (
        "How many idle pieces of each length the decode steps hold, class by class. "
        "Thin gaps ask for fewer or chained kernels, wide ones for a host that runs ahead."
    )
    yield Section("lengths", "Gaps by length", (said,), (table,), is_detail=True)


def _leads(report: Report) -> Iterator[Section]:
    leads = report.detail.leads
    if not leads:
        return
    said = (
        "How long before the GPU was free each graph launch had been made. Above zero the work was waiting in the "
        "queue; below zero the GPU was waiting for the host."
    )
    slow = " Node tracing slows launch calls down, so these leads are smaller than in an untraced run."
    rows = [
        _lead_row(role, [one for one in leads if one.role == role]) for role in dict.fromkeys(one.role for one in leads)
    ]
    table = Table("Leads by role", ("role", "launches", "in time", "smallest lead", "largest lead"), rows)
    traced = slow if report.trace.capture_mode in ("node", "mixed") else ""
    yield Section("leads", "Launch lead", (said + traced,), (table,), is_detail=True)


def _lead_row(role: str | None, leads: Sequence[LeadRow]) -> tuple[str, ...]:
    known = [one.lead_ns for one in leads]
    in_time = share(sum(ns > 0 for ns in known) / len(known))
    return plain(role, 80) or "no role", count(len(known)), in_time, duration(min(known)), duration(max(known))


def _kernels(report: Report, most: int) -> Iterator[Section]:
    detail = report.detail
    if detail.kernels:
        tables = (_kernel_table(detail.kernels, most), *([_run_table(detail.runs, most)] if detail.runs else []))
        yield Section("kernels", "Kernels of a step", tuple(_kernel_sentences(report)), tables, is_detail=True)


def _kernel_sentences(report: Report) -> Iterator[str]:
    yield (
        "The names that run longest. Kernels of about 6 us or less cost nearly as much to start as they work; where "
        "several follow each other, fusing them or launching them early (PDL) pays."
    )
    calls, overlap = report.detail.launches_per_step, report.detail.pdl_overlap_share
    if calls is not None:
        yield f"{count(calls)} launch calls put work on the GPU in a step."
    if overlap is not None:
        early = "of the kernels inside replays begin before the one before them ends (programmatic dependent launch)"
        yield f"{share(overlap)} {early}."


def _kernel_table(kernels: Sequence[KernelRow], most: int) -> Table:
    rows = [
        (
            plain(one.name, NAME),
            count(one.per_step_count),
            f"{one.p50_ns / NS_PER_US:,.2f}",
            f"{one.per_step_ns / NS_PER_US:,.1f}",
            plain(one.role, 40) or UNKNOWN,
            plain(one.category, 40) or UNKNOWN,
        )
        for one in kernels[:most]
    ]
    header = ("kernel", "a step", "p50 us", "us a step", "role", "category")
    return Table("", header, rows, spare=1, left=("role", "category"))


def _run_table(runs: Sequence[KernelRun], most: int) -> Table:
    rows = [
        (
            plain(one.first, NAME),
            plain(one.last, NAME),
            count(one.kernels),
            count(one.per_step_count),
            f"{one.per_step_busy_ns / NS_PER_US:,.1f}",
            f"{one.per_step_gap_ns / NS_PER_US:,.1f}",
            plain(one.role, 40) or UNKNOWN,
        )
        for one in runs[:most]
    ]
    header = ("from", "to", "kernels", "a step", "busy us", "gaps us", "role")
    return Table("Runs of small kernels", header, rows, left=("to", "role"))


def notable(step: StepTimeline) -> Table:
    """Return the waits, launches, replays and wide gaps of a drawn step, the longest first."""
    kinds = {"launch", "wait", "blamed_wait", "replay", "drain", *LEDGER_CLASSES[2:]}
    bars = sorted((bar for bar in step.bars if bar.kind in kinds), key=lambda bar: bar.start_ns - bar.end_ns)
    rows = [_bar_row(bar, step) for bar in bars[:_NOTABLE_BARS]]
    header = ("what", "where", "track", "ms into the step", "length us")
    return Table(f"Waits and gaps of the {step.which} step", header, rows, left=("where", "track"))


def _bar_row(bar: TimelineBar, step: StepTimeline) -> tuple[str, ...]:
    into, length = milliseconds(bar.start_ns - step.start_ns, 6), f"{(bar.end_ns - bar.start_ns) / NS_PER_US:,.3f}"
    return KIND_LABELS.get(bar.kind, bar.kind), plain(bar.name, 120), plain(bar.track, 60), into, length


def evidence(finding: Finding) -> Table:
    """Return the rows of the export that a finding rests on."""
    rows = [(one.table, str(one.row), str(one.start_ns), str(one.end_ns)) for one in finding.evidence[:_EVIDENCE]]
    return Table("", ("table", "row", "start ns", "end ns"), rows)
