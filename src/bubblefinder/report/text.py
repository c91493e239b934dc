"""The report as text for a terminal: verdict first, then what stands behind it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bubblefinder.report.ledgers import STEP_CLASSES
from bubblefinder.report.overhead_words import overhead_words
from bubblefinder.report.verdict import verdict
from bubblefinder.report.words import CLASS_MEANINGS, EXCLUDED_LABELS, class_label, plain, scope_words, site_words
from bubblefinder.units import count, duration, milliseconds, plural, share

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.report.model import Finding, Report
    from bubblefinder.report.pictures import GapRow

PLAIN_WIDTH: Final = 100
_WIDE: Final = 118
_FEW: Final = 6
_LEVEL_STYLE: Final = {"error": "bold red", "warn": "yellow", "info": "dim"}
_SEVERITY_STYLE: Final = {"high": "bold red", "medium": "yellow", "low": "cyan", "info": "dim"}


def render(report: Report, width: int = PLAIN_WIDTH) -> str:
    """Return the report as plain text, `width` columns wide."""
    console = Console(file=io.StringIO(), width=width, color_system=None, highlight=False, legacy_windows=False)
    console.print(_page(report, width, verbose=False))
    text = console.file.getvalue()  # type: ignore[attr-defined] # it is the StringIO above
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def print_text(report: Report, *, verbose: bool = False) -> None:
    """Print the report to standard output, as wide as the terminal, in colour where that is wanted."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PLAIN_WIDTH)
    console.print(_page(report, console.width, verbose=verbose))


def _page(report: Report, width: int, *, verbose: bool) -> RenderableType:
    sections = [
        *_opening(report),
        *_steps(report, width),
        *_roles(report),
        *_overhead(report),
        *_findings(report, verbose=verbose),
        *_gaps(report, width, verbose=verbose),
        *_devices(report),
        *_quality(report, verbose=verbose),
    ]
    return Group(*sections)


def _heading(text: str) -> RenderableType:
    return Text(f"\n{text}", style="bold")


def _opening(report: Report) -> Iterator[RenderableType]:
    said = verdict(report)
    headline = Text(said.headline, style="bold")
    if said.number:
        headline.highlight_words([said.number], style="bold red")
    yield headline
    for sentence in (said.blame, said.gain):
        if sentence:
            yield Text(sentence)
    facts = report.trace
    gpus = ", ".join(f"GPU {gpu.gpu} {plain(gpu.name, 40)}".strip() for gpu in facts.gpus)
    parts = [
        plain(facts.name, 60),
        f"capture mode {facts.capture_mode}",
        f"Nsight Systems {plain(facts.nsys_version, 20) or 'unknown'}",
        gpus,
    ]
    yield Text(" · ".join(part for part in parts if part), style="dim")


def _steps(report: Report, width: int) -> Iterator[RenderableType]:
    steps = report.steps
    if not steps.count:
        yield from _window_ledger(report)
        return
    yield _heading(f"A decode step on GPU {steps.gpu}, process {steps.pid}: {scope_words(report)}")
    corrected = report.overhead.corrected
    extra = (*(("corrected ms",) if corrected else ()), *(("",) if width >= _WIDE else ()))
    table = _table("class", "p50 ms", "p95 ms", "share", *extra)
    total = steps.per_step["duration"].mean
    for name in STEP_CLASSES:
        stats = steps.per_step.get(name)
        if stats is None or (stats.max == 0 and name in ("unattributed", "unrecorded", "profiler")):
            continue
        ratio = stats.mean / total if stats.mean is not None and total else None
        cells = [class_label(name), milliseconds(stats.p50), milliseconds(stats.p95), share(ratio)]
        cells += [milliseconds(corrected.get(name))] if corrected else []
        table.add_row(*cells, *((CLASS_MEANINGS.get(name, ""),) if width >= _WIDE else ()))
    yield _indented(table)
    if steps.excluded:
        counted = ", ".join(
            f"{number} {EXCLUDED_LABELS.get(reason, plain(reason))}" for reason, number in steps.excluded.items()
        )
        yield Text(f"  left out of the statistics: {counted}", style="dim")


def _window_ledger(report: Report) -> Iterator[RenderableType]:
    yield _heading("The whole window, since no decode steps were found")
    table = _table("GPU", "span ms", "busy", "inside graphs", "host late", "launching", "queued", "other")
    for device in report.devices:
        inter = device.inter_graph
        rest = (inter.unattributed_ns, device.unrecorded_ns, device.profiler_ns)
        parts = (device.busy_ns, device.intra_graph_ns, inter.host_late_ns, inter.launching_ns, inter.queued_ns)
        other = None if None in rest else sum(part for part in rest if part is not None)
        table.add_row(
            str(device.gpu), milliseconds(device.span_ns), *(_of(part, device.span_ns) for part in (*parts, other))
        )
    yield _indented(table)


def _of(part: int | None, whole: int) -> str:
    return share(None if part is None else part / whole)


def _roles(report: Report) -> Iterator[RenderableType]:
    if not report.steps.roles:
        return
    yield _heading("What a step is made of")
    table = _table("role", "a step", "nodes", "p50", "idle inside")
    for role in report.steps.roles:
        table.add_row(
            plain(role.role, 40),
            count(role.replays_per_step),
            count(role.nodes),
            duration(role.p50_ns),
            duration(role.intra_graph_p50_ns),
        )
    yield _indented(table)


def _overhead(report: Report) -> Iterator[RenderableType]:
    said = [plain(sentence, 400) for sentence in overhead_words(report.overhead)]
    if said:
        yield _heading("Without the profiler")
        yield _indented(Group(*(Text(sentence) for sentence in said)))


def _findings(report: Report, *, verbose: bool) -> Iterator[RenderableType]:
    if not report.findings and not report.expected:
        return
    yield _heading("Findings, most to recover first")
    shown = report.findings if verbose else report.findings[:_FEW]
    for finding in shown:
        yield from _finding(finding)
    if len(shown) < len(report.findings):
        yield Text(f"  and {plural(len(report.findings) - len(shown), 'more finding')}: -v shows all", style="dim")
    for expected in report.expected:
        yield Text(
            f"  expected: {plain(expected.finding.title)} ({plain(expected.reason)}; owner {plain(expected.owner)})",
            style="dim",
        )


def _finding(finding: Finding) -> Iterator[RenderableType]:
    head = Text(f"  {finding.severity.upper():<6} ", style=_SEVERITY_STYLE[finding.severity])
    head.append(plain(finding.title), style="bold default")
    head.append(f"  [{finding.rule}, {finding.confidence} confidence]", style="dim")
    yield head
    where = site_words(finding.site)
    numbers = (
        ("bubble", duration(finding.bubble_ns.p50) if finding.bubble_ns.p50 is not None else None),
        ("host blocked", duration(finding.host_blocked_ns.p50) if finding.host_blocked_ns.p50 is not None else None),
        ("to recover", duration(finding.recoverable_ns) if finding.recoverable_ns is not None else None),
        ("step then", duration(finding.step_after_ns) if finding.step_after_ns is not None else None),
    )
    told = ", ".join(f"{name} {value}" for name, value in numbers if value)
    for line in (where, told and f"a step: {told}", plain(finding.message, 600), plain(finding.remedy, 600)):
        if line:
            yield Padding(Text(line), (0, 0, 0, 9))


def _gaps(report: Report, width: int, *, verbose: bool) -> Iterator[RenderableType]:
    rows = [row for row in report.detail.gaps if row.gap_class != "intra_graph"]
    if not rows:
        return
    yield _heading("Widest recurring gaps between graphs, and the call that ended them")
    table = _table("p50", "max", "a step", "between", "ended by", *(("class",) if width >= _WIDE else ()))
    for row in rows if verbose else rows[:_FEW]:
        table.add_row(
            duration(row.p50_ns),
            duration(row.max_ns),
            count(row.per_step_count),
            _between(row),
            plain(row.ended_by, 40) or "unknown",
            *((class_label(row.gap_class),) if width >= _WIDE else ()),
        )
    yield _indented(table)


def _between(row: GapRow) -> str:
    return f"{plain(row.after_role, 24) or '…'} → {plain(row.before_role, 24) or '…'}"


def _devices(report: Report) -> Iterator[RenderableType]:
    ranks = [rank for rank in report.steps.by_device if rank.count]
    if len(ranks) < 2:  # noqa: PLR2004 - nothing to lay side by side
        return
    yield _heading("Ranks side by side, p50 of a step in ms")
    names = [name for name in STEP_CLASSES if any(rank.per_step[name].max for rank in ranks)]
    table = _table("GPU", "process", "steps", *(class_label(name) for name in names))
    for rank in ranks:
        table.add_row(
            str(rank.gpu), str(rank.pid), count(rank.count), *(milliseconds(rank.per_step[name].p50) for name in names)
        )
    yield _indented(table)


def _quality(report: Report, *, verbose: bool) -> Iterator[RenderableType]:
    notes = [note for note in report.quality if verbose or note.level != "info" or note.code.startswith("capture-mode")]
    if not notes:
        return
    yield _heading("What this capture can and can't tell")
    for note in notes:
        line = Text(f"  {note.level:<5} ", style=_LEVEL_STYLE[note.level])
        line.append(plain(note.message, 600), style="default")
        line.append(f"  [{plain(note.code, 40)}]", style="dim")
        yield line
    left_out = len(report.quality) - len(notes)
    if left_out:
        yield Text(f"  and {plural(left_out, 'note')} more: -v shows all", style="dim")


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    words = {"", "class", "role", "between", "ended by"}
    for column in columns:
        table.add_column(
            column, justify="left" if column in words else "right", overflow="fold" if column in words else "ellipsis"
        )
    return table


def _indented(renderable: RenderableType) -> RenderableType:
    return Padding(renderable, (0, 0, 0, 2))
