"""A comparison as tables of words, the same in every format."""

from __future__ import annotations

from dataclasses import replace
from statistics import median
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.delta.sentences import part_name
from bubblefinder.compare.delta.suspect import STRUCTURAL
from bubblefinder.compare.sentences import MARKS, difference, metric_name, value
from bubblefinder.render.kit.sheet import Table
from bubblefinder.report.prediction_sentences import in_words
from bubblefinder.report.sentences import plain, site_words
from bubblefinder.units import UNKNOWN, count, duration, milliseconds, plural, signed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from bubblefinder.compare.delta.model import Part
    from bubblefinder.compare.model import Capture, Change, Diff, KernelChange, KernelSide, SiteChange, SiteSide

MOST_KERNELS: Final = 20
MOST_PARTS: Final = 12
MOSTLY_OPEN: Final = 0.95
"""A kernel that runs beside others for less than the rest adds its own time, near enough."""
_PDL_NOTE: Final = (
    "A kernel launched early (PDL) runs beside the one before it and waits inside; the change is that of what it adds."
)
_NOT_APART: Final = "not told apart"
_STAYED: Final = "Not told apart: as much idle time was there, under another cause or too little for a finding."
_OTHERWISE: Final = "What the program does otherwise"
_WITHIN: Final = "Each is there in every step or in none; together they change the step by less than the noise."
_BLANK: Final = {"same", "unknown"}
_CAME_OR_WENT: Final = {"new", "gone"}
_COMPARED: Final = ("", "base", "head", "change", "")
_STATUS: Final = ("",)
"""The columns without a name say whether a change is for the better."""


def tables(diff: Diff) -> list[Table]:
    """Return the tables of a comparison, most important first; empty ones are left out."""
    all_tables = [*_ledgers(diff), *_parts(diff), _findings(diff), _others(diff), _kernels(diff)]
    return [table for table in all_tables if table.rows]


def _ledgers(diff: Diff) -> Iterable[Table]:
    steps = [c for c in diff.changes if c.metric.startswith("step.")]
    ranks = sorted({c.where["rank"] for c in steps}, key=str)
    for rank in ranks:
        rows = _ledger([c for c in steps if c.where["rank"] == rank])
        title = "A decode step, ms" + (f", rank {rank}" if len(ranks) > 1 else "")
        header = ("", "base p50", "head p50", "change", "", "noise", "base p95", "head p95", "change", "")
        yield Table(title, header, rows, spare=4, left=_STATUS)


def _ledger(changes: list[Change]) -> list[tuple[str, ...]]:
    table = {c.metric: c for c in changes}
    rows = list[tuple[str, ...]]()
    for metric, middle in table.items():
        tail = table.get(metric.replace(".p50", ".p95"))
        if not metric.endswith(".p50") or tail is None or _nothing(middle, tail):
            continue
        noise = f"±{milliseconds(middle.threshold)}" if middle.threshold is not None else UNKNOWN
        rows.append((metric_name(middle), *_times(middle), noise, *_times(tail)))
    return rows


def _parts(diff: Diff) -> Iterable[Table]:
    """Return where the change of each rank's mean step lies; where it is noise, what is in every step or in none."""
    for delta in diff.deltas:
        on = f", rank {delta.rank}" if len(diff.deltas) > 1 else ""
        if diff.verdict == "no change":
            parts = _alike([part for part in delta.parts if part.kind in STRUCTURAL])
            yield Table(f"{_OTHERWISE}{on}", ("", "base", "head", "change"), _rows(parts), _WITHIN)
            continue
        parts = _alike(delta.parts)
        rows = _rows(parts[:MOST_PARTS])
        left = delta.residual_ns + sum(part.delta_ns for part in parts[MOST_PARTS:])
        rows += [("all that is smaller", "", "", signed(left))] if left else []
        rows.append(("the mean step", duration(delta.base_ns), duration(delta.head_ns), signed(delta.delta_ns)))
        yield Table(f"Where the change lies{on}", ("", "base", "head", "change"), rows)


def _rows(parts: Sequence[Part]) -> list[tuple[str, ...]]:
    return [(part_name(p), *map(duration, (p.base_ns, p.head_ns)), signed(p.delta_ns)) for p in parts]


def _alike(parts: Sequence[Part]) -> list[Part]:
    """Return parts of one kind and name as one, the largest change first; the JSON has each by itself."""
    found: dict[tuple[str | None, ...], list[Part]] = {}
    for part in parts:
        found.setdefault((part.kind, part.role, part.name, part.head_name), []).append(part)
    merged = [_sum(same) for same in found.values()]
    return sorted(merged, key=lambda part: -abs(part.delta_ns))


def _sum(same: Sequence[Part]) -> Part:
    nodes = [part.nodes for part in same if part.nodes is not None]
    return replace(
        same[0],
        what=same[0].what if len({part.what for part in same}) == 1 else None,
        nodes=sum(nodes) if nodes else None,
        base_ns=sum(part.base_ns for part in same),
        head_ns=sum(part.head_ns for part in same),
        delta_ns=sum(part.delta_ns for part in same),
    )


def _nothing(*changes: Change) -> bool:
    return all(not c.base.value and not c.head.value for c in changes)


def _times(change: Change) -> tuple[str, str, str, str]:
    sides = (milliseconds(change.base.value), milliseconds(change.head.value))
    return *sides, UNKNOWN if change.delta is None else f"{change.delta / 1e6:+z.3f}", _word(change.status)


def _others(diff: Diff) -> Table:
    """Return counts, shares and parts; those that are equal and uninteresting on both sides stay out."""
    rows = [
        (metric_name(c), value(c.base.value, c.unit), value(c.head.value, c.unit), difference(c), _word(c.status))
        for c in diff.changes
        if not c.metric.startswith("step.") and not _nothing(c)
    ]
    return Table("Counts, shares and parts of the step", _COMPARED, rows, left=_STATUS)


def _findings(diff: Diff) -> Table:
    rows = [
        (
            _finding_name(f),
            _cost(f, f.base, diff.base),
            _cost(f, f.head, diff.head),
            "" if f.delta_ns is None and f.status in _CAME_OR_WENT else signed(f.delta_ns),
            _word(f.status),
        )
        for f in diff.findings
    ]
    apart = any(_NOT_APART in row for row in rows)
    return Table("Findings, cost a step", _COMPARED, rows, _STAYED if apart else "", left=_STATUS)


def _finding_name(change: SiteChange) -> str:
    title, site = change.head.title or change.base.title or "", change.site
    where = site_words(replace(site, nvtx=None) if site.nvtx and site.nvtx in title else site)
    return f"{plain(title)} ({where})" if where else plain(title)


def _cost(change: SiteChange, side: SiteSide, captures: Sequence[Capture]) -> str:
    if not side.seen:
        return "harmless" if side.benign else _NOT_APART if change.status == "unknown" else "absent"
    parts = (
        _time(side, captures),
        f"{count(side.per_step_count)} a step" if side.per_step_count is not None else "",
        f"in {side.seen} of {plural(len(captures), 'capture')}" if side.seen < len(captures) else "",
    )
    return ", ".join(part for part in parts if part) or "present"


def _time(side: SiteSide, captures: Sequence[Capture]) -> str:
    """Return what a finding costs a step, else its idle time, as the change is of; of few steps, that of each."""
    if side.recoverable_ns is not None or side.bubble_ns is None:
        return in_words(side.recoverable_ns, side.recoverable_range_ns)
    few = side.steps_affected and 2 * side.steps_affected <= median(capture.steps for capture in captures)
    return duration(side.bubble_ns) + (_few_steps(side.steps_affected) if few and side.steps_affected else "")


def _few_steps(steps: float) -> str:
    return " in one step" if steps == 1 else f" in each of {count(steps)} steps"


def _kernels(diff: Diff) -> Table:
    rows = [
        (_kernel_name(k), _kernel(k.base), _kernel(k.head), signed(k.delta_ns), _word(k.status))
        for k in diff.kernels[:MOST_KERNELS]
    ]
    left = len(diff.kernels) - len(rows)
    notes = [f"{plural(left, 'kernel')} with smaller changes left out; the JSON has all."] if left else []
    if any(", adds " in cell for row in rows for cell in row):
        notes.append(_PDL_NOTE)
    return Table("Kernels, time a step", _COMPARED, rows, " ".join(notes), left=_STATUS)


def _kernel_name(kernel: KernelChange) -> str:
    name = plain(kernel.name, 70)
    return f"{name} in {plain(kernel.role, 40)}" if kernel.role else name


def _kernel(side: KernelSide | None) -> str:
    if side is None:
        return "absent"
    waits = side.adds_ns is not None and side.adds_ns < MOSTLY_OPEN * side.per_step_ns
    beside = f", adds {duration(side.adds_ns)}" if waits else ""
    return f"{count(side.per_step_count)} x, {duration(side.per_step_ns)}{beside}"


def _word(status: str) -> str:
    return "" if status in _BLANK else f"{MARKS[status]} {status}"
