"""The report as text for a terminal: verdict first, then what stands behind it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as Grid
from rich.text import Text

from bubblefinder.render.kit.text import PLAIN_WIDTH, drawn, rich_table, show
from bubblefinder.render.report.sections import NAMES, QUALITY, notes, sections
from bubblefinder.report.many import gpu_words
from bubblefinder.report.sentences import cost_words, plain, site_words
from bubblefinder.report.verdict import leading_finding, names_only, verdict
from bubblefinder.units import plural

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.render.kit.sheet import Section
    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import Report

_WIDE: Final = 118
"""Columns from which on tables show those that they can spare."""
_LONG: Final = 2_000
"""A message whose names from the capture are cut already is whole."""
_LEVEL_STYLE: Final = {"error": "bold red", "warn": "yellow", "info": "dim"}
_SEVERITY_STYLE: Final = {"high": "bold red", "medium": "yellow", "low": "cyan", "info": "dim"}


def render(report: Report, width: int = PLAIN_WIDTH, *, verbose: bool = False) -> str:
    """Return the report as plain text, `width` columns wide."""
    return drawn(_page(report, width, verbose=verbose), width)


def print_text(report: Report, *, verbose: bool = False) -> None:
    """Print the report to standard output, as wide as the terminal, in colour where that is wanted."""
    show(lambda width: _page(report, width, verbose=verbose))


def _page(report: Report, width: int, *, verbose: bool) -> RenderableType:
    shared = sections(report, verbose=verbose)
    own = {"findings": _findings, "quality": _quality}
    parts = list(_opening(report))
    for anchor in NAMES:
        if anchor in own:
            parts += own[anchor](report, verbose=verbose)
        elif anchor in shared and (verbose or not shared[anchor].is_detail):
            parts += _section(shared[anchor], width)
    return Group(*parts)


def _section(section: Section, width: int) -> Iterator[RenderableType]:
    yield _heading(section.heading)
    yield from (_indented(Text(sentence)) for sentence in section.sentences)
    for table in section.tables:
        if table.title:
            yield _indented(Text(table.title))
        yield _indented(rich_table(table if width >= _WIDE else table.narrow()))
        if table.note:
            yield _indented(Text(table.note, style="dim"))


def _heading(text: str) -> RenderableType:
    return Text(f"\n{text}", style="bold")


def _opening(report: Report) -> Iterator[RenderableType]:
    said = verdict(report)
    headline = Text(said.headline, style="bold")
    if said.number:
        headline.highlight_words([said.number], style="bold red")
    yield headline
    for sentence in (said.blame, said.gain, said.rest):
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


def _findings(report: Report, *, verbose: bool) -> Iterator[RenderableType]:
    if not report.findings and not report.expected:
        return
    named = names_only(report)
    telling = [finding for finding in report.findings if verbose or named or finding.severity != "info"]
    if telling:
        yield _heading("Causes and where they are called" if named else "Findings, gravest first")
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
    lines = [site_words(finding.site), cost_words(finding, report)]
    if full:
        lines += [plain(finding.message, _LONG), plain(finding.remedy, _LONG)]
        lines += [f"note: {plain(caveat, _LONG)}" for caveat in finding.caveats]
    yield from (_row("", Text(line)) for line in lines if line)


def _row(word: str, text: Text, style: str = "default") -> RenderableType:
    """Return a word in a narrow first column and text that wraps in the second."""
    row = Grid.grid(padding=(0, 1))
    row.add_column(width=9)
    row.add_column()
    row.add_row(Text(word, style=style), text)
    return _indented(row)


def _quality(report: Report, *, verbose: bool) -> Iterator[RenderableType]:
    shown = notes(report, verbose=verbose)
    if not shown:
        return
    yield _heading(QUALITY)
    for note in shown:
        line = Text(plain(note.message, _LONG))
        line.append(f"  [{plain(note.code, 40)}]", style="dim")
        yield _row(note.level, line, _LEVEL_STYLE[note.level])
    left_out = len(report.quality) - len(shown)
    if left_out:
        yield Text(f"  and {plural(left_out, 'note')} more: -v shows all", style="dim")


def _indented(renderable: RenderableType) -> RenderableType:
    return Padding(renderable, (0, 0, 0, 2))
