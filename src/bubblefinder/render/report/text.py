"""The report as text for a terminal: verdict first, then what stands behind it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from bubblefinder.render.kit.table import Table
from bubblefinder.render.kit.text import PLAIN_WIDTH, drawn, rich_table, show
from bubblefinder.render.report import economics, host
from bubblefinder.report.ledgers import STEP_CLASSES
from bubblefinder.report.many import gpu_words, gpus_shown, ranks_shown
from bubblefinder.report.overhead_sentences import overhead_sentences
from bubblefinder.report.prediction_sentences import gain_words, in_turn_words
from bubblefinder.report.sentences import (
    CLASS_MEANINGS,
    EVERY_STEP,
    bound_words,
    class_label,
    counted_words,
    left_out_words,
    per_step_words,
    plain,
    scope_words,
    site_words,
    steps_sentences,
)
from bubblefinder.report.verdict import leading_finding, verdict
from bubblefinder.units import count, duration, milliseconds, plural, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.report.charts import GapRow
    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import Report, Stats

_WIDE: Final = 118
_FEW: Final = 6
_WORDS: Final = frozenset({"", "class", "role", "between", "ended by"})
_LONG: Final = 800
_LEVEL_STYLE: Final = {"error": "bold red", "warn": "yellow", "info": "dim"}
_SEVERITY_STYLE: Final = {"high": "bold red", "medium": "yellow", "low": "cyan", "info": "dim"}


def render(report: Report, width: int = PLAIN_WIDTH, *, verbose: bool = False) -> str:
    """Return the report as plain text, `width` columns wide."""
    return drawn(_page(report, width, verbose=verbose), width)


def print_text(report: Report, *, verbose: bool = False) -> None:
    """Print the report to standard output, as wide as the terminal, in colour where that is wanted."""
    show(lambda width: _page(report, width, verbose=verbose))


def _page(report: Report, width: int, *, verbose: bool) -> RenderableType:
    sections = [
        *_opening(report),
        *_steps(report, width),
        *_findings(report, verbose=verbose),
        *_host(report, verbose=verbose),
        *_roles(report),
        *_gaps(report, width, verbose=verbose),
        *_overhead(report),
        *_economics(report),
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
    parts = [
        plain(facts.name, 60),
        f"capture mode {facts.capture_mode}",
        f"Nsight Systems {plain(facts.nsys_version, 20) or 'unknown'}",
        gpu_words(facts.gpus),
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
    rows = list[tuple[str, ...]]()
    total = steps.per_step["duration"].mean
    for name in STEP_CLASSES:
        stats = steps.per_step.get(name)
        if stats is None or _silent(report, name, stats):
            continue
        ratio = stats.mean / total if stats.mean is not None and total else None
        cells = [class_label(name), milliseconds(stats.p50), milliseconds(stats.p95), share(ratio)]
        cells += [milliseconds(corrected.get(name))] if corrected else []
        rows.append((*cells, *((CLASS_MEANINGS.get(name, ""),) if width >= _WIDE else ())))
    yield _table(("class", "p50 ms", "p95 ms", "share", *extra), rows)
    if steps.excluded:
        yield Text(f"  left out of the statistics: {left_out_words(report)}", style="dim")
    for sentence in steps_sentences(report):
        yield Text(f"  {sentence}")


def _host(report: Report, *, verbose: bool) -> Iterator[RenderableType]:
    for section in host.sections(report, verbose=verbose):
        yield _heading(section.heading)
        yield from (_indented(Text(sentence)) for sentence in section.sentences)
        yield from (_indented(rich_table(table)) for table in section.tables)


def _economics(report: Report) -> Iterator[RenderableType]:
    """Show the floor and the benchmark, where they were asked for."""
    if report.economics is None:
        return
    yield _heading(economics.HEADING)
    yield from (Padding(Text(sentence), (0, 0, 0, 2)) for sentence in economics.sentences(report.economics))
    yield from (_indented(rich_table(table)) for table in economics.tables(report.economics))


def _silent(report: Report, name: str, stats: Stats) -> bool:
    """Tell whether a class has nothing to say: rare ones at 0, and what such a capture can't hold."""
    mode = report.trace.capture_mode
    if mode == "unseen":
        return name != "duration"
    absent = name == "intra_graph" and mode == "none"
    return absent or (stats.max == 0 and name in ("unattributed", "unrecorded", "profiler"))


def _window_ledger(report: Report) -> Iterator[RenderableType]:
    yield _heading("The whole window, since no decode steps were found")
    rows = list[tuple[str, ...]]()
    devices, others = gpus_shown(report)
    for device in devices:
        inter = device.inter_graph
        rest = (inter.unattributed_ns, device.unrecorded_ns, device.profiler_ns)
        parts = (device.busy_ns, device.intra_graph_ns, inter.host_late_ns, inter.launching_ns, inter.queued_ns)
        other = None if None in rest else sum(part for part in rest if part is not None)
        shares = (_of(part, device.span_ns) for part in (*parts, other))
        rows.append((str(device.gpu), milliseconds(device.span_ns), *shares))
    yield _table(("GPU", "span ms", "busy", "inside graphs", "host late", "launching", "queued", "other"), rows)
    if others:
        yield Text(f"  {others}", style="dim")


def _of(part: int | None, whole: int) -> str:
    return share(None if part is None else part / whole)


def _roles(report: Report) -> Iterator[RenderableType]:
    if not report.steps.roles:
        return
    yield _heading("What a step is made of")
    rows = [
        (
            plain(role.role, 40),
            count(role.replays_per_step),
            count(role.nodes),
            duration(role.p50_ns),
            duration(role.intra_graph_p50_ns),
        )
        for role in report.steps.roles
    ]
    yield _table(("role", "a step", "nodes", "p50", "idle inside"), rows)


def _overhead(report: Report) -> Iterator[RenderableType]:
    said = [plain(sentence, 400) for sentence in overhead_sentences(report.overhead)]
    if said:
        yield _heading("Without the profiler")
        yield _indented(Group(*(Text(sentence) for sentence in said)))


def _findings(report: Report, *, verbose: bool) -> Iterator[RenderableType]:
    if not report.findings and not report.expected:
        return
    telling = [finding for finding in report.findings if verbose or finding.severity != "info"]
    if telling:
        yield _heading("Findings, gravest first")
    leader = leading_finding(report)
    for finding in telling:
        full = verbose or finding is leader or finding.severity in ("high", "medium")
        yield from _finding(finding, report, full=full)
    silent = Counter(plain(finding.title, 90) for finding in report.findings if finding not in telling)
    if silent:
        yield _heading("For information (-v tells more)")
    for title, places in silent.items():
        text = title if places == 1 else f"{title} (in {places} places)"
        yield _row("INFO", Text(text), _SEVERITY_STYLE["info"])
    for expected in report.expected:
        said = f"{plain(expected.finding.title)} ({plain(expected.reason)}; owner {plain(expected.owner)})"
        yield _row("EXPECTED", Text(said), "dim")


def _finding(finding: Finding, report: Report, *, full: bool) -> Iterator[RenderableType]:
    title = Text(plain(finding.title), style="bold")
    title.append(f"  [{finding.rule}, {finding.confidence} confidence]", style="not bold dim")
    yield _row(finding.severity.upper(), title, _SEVERITY_STYLE[finding.severity])
    lines = [site_words(finding.site), _cost(finding, per_step_words(finding, report))]
    if full:
        lines += [plain(finding.message, _LONG), plain(finding.remedy, _LONG)]
        lines += [f"note: {plain(caveat, _LONG)}" for caveat in finding.caveats]
    yield from (_row("", Text(line)) for line in lines if line)


def _cost(finding: Finding, where: str) -> str:
    spent = (("bubble", finding.bubble_ns.p50), ("host blocked", finding.host_blocked_ns.p50))
    now = ", ".join(f"{name} {duration(value)}" for name, value in spent if value)
    gain = f"to recover {gain}{in_turn_words(finding)}" if (gain := gain_words(finding)) else ""
    step = f"step then {duration(finding.step_after_ns)}" if finding.step_after_ns else ""
    then = ", ".join(part for part in (gain, step) if part)
    bound = f" (then bound by the {bound_words(finding.bound_after)})" if finding.bound_after and (now or then) else ""
    if where == EVERY_STEP:
        told = ", ".join(part for part in (now, then) if part)
        return told and f"{where}: {told}{bound}"
    return "; ".join(part for part in (now and f"{where}: {now}", then and f"a median step: {then}{bound}") if part)


def _row(word: str, text: Text, style: str = "default") -> RenderableType:
    """Return a word in a narrow first column and text that wraps in the second."""
    row = Grid.grid(padding=(0, 1))
    row.add_column(width=9)
    row.add_column()
    row.add_row(Text(word, style=style), text)
    return _indented(row)


def _gaps(report: Report, width: int, *, verbose: bool) -> Iterator[RenderableType]:
    rows = [row for row in report.detail.gaps if row.gap_class != "intra_graph"]
    if not rows:
        return
    where = " between graphs" if any(device.replays for device in report.devices) else ""
    yield _heading(f"Costliest recurring gaps{where}, and the call that ended them" + counted_words(report))
    cells = [
        (
            duration(row.p50_ns),
            duration(row.max_ns),
            count(row.per_step_count),
            _between(row),
            plain(row.ended_by, 40) or "unknown",
            *((class_label(row.gap_class),) if width >= _WIDE else ()),
        )
        for row in (rows if verbose else rows[:_FEW])
    ]
    yield _table(("p50", "max", "a step", "between", "ended by", *(("class",) if width >= _WIDE else ())), cells)


def _between(row: GapRow) -> str:
    return f"{plain(row.after_role, 24) or '…'} → {plain(row.before_role, 24) or '…'}"


def _devices(report: Report) -> Iterator[RenderableType]:
    ranks, others = ranks_shown(report)
    if len(ranks) < 2:  # noqa: PLR2004 - nothing to lay side by side
        return
    yield _heading("Ranks side by side, p50 of a step in ms")
    names = [name for name in STEP_CLASSES if any(rank.per_step[name].max for rank in ranks)]
    rows = [
        (str(rank.gpu), str(rank.pid), count(rank.count), *(milliseconds(rank.per_step[name].p50) for name in names))
        for rank in ranks
    ]
    yield _table(("GPU", "process", "steps", *(class_label(name) for name in names)), rows)
    if others:
        yield Text(f"  {others}", style="dim")


def _quality(report: Report, *, verbose: bool) -> Iterator[RenderableType]:
    notes = [note for note in report.quality if verbose or note.level != "info" or note.code.startswith("capture-mode")]
    if not notes:
        return
    yield _heading("What this capture can and can't tell")
    for note in sorted(notes, key=lambda one: list(_LEVEL_STYLE).index(one.level)):
        line = Text(plain(note.message, _LONG))
        line.append(f"  [{plain(note.code, 40)}]", style="dim")
        yield _row(note.level, line, _LEVEL_STYLE[note.level])
    left_out = len(report.quality) - len(notes)
    if left_out:
        yield Text(f"  and {plural(left_out, 'note')} more: -v shows all", style="dim")


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> RenderableType:
    return _indented(rich_table(Table("", header, rows, left=_WORDS)))


def _indented(renderable: RenderableType) -> RenderableType:
    return Padding(renderable, (0, 0, 0, 2))
