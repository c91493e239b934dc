"""The parts of a report in one order, as sentences and tables that every format shows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bubblefinder.render.kit.sheet import Section, Table
from bubblefinder.render.report import charted, economics, host
from bubblefinder.report.many import gpu_words, gpus_shown, ranks_shown
from bubblefinder.report.model import sum_of
from bubblefinder.report.overhead_sentences import overhead_sentences
from bubblefinder.report.sentences import (
    CLASS_MEANINGS,
    MODE_LABELS,
    class_label,
    counted_words,
    gravest_first,
    left_out_words,
    plain,
    scope_words,
    steps_sentences,
)
from bubblefinder.timeline.model import LEDGER_CLASSES, STEP_CLASSES
from bubblefinder.units import NS_PER_US, count, duration, milliseconds, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.report.charts import GapRow
    from bubblefinder.report.model import DeviceReport, Report, Stats
    from bubblefinder.trace.model import QualityNote

NAMES: Final = {
    "ledger": "The step",
    "findings": "Findings",
    "waits": "Waits in a row",
    "host": "The host's step",
    "step": "Where the step goes",
    "untraced": "Without the profiler",
    "timelines": "Inside a step",
    "run": "Steps over the run",
    "gaps": "Gaps",
    "lengths": "Gaps by length",
    "leads": "Launch lead",
    "kernels": "Kernels",
    "ranks": "Ranks",
    "economics": economics.HEADING,
    "quality": "Quality",
    "reading": "How to read this",
    "provenance": "Provenance",
}
"""All parts in their order, with their names in a table of contents; `timelines` and `reading` are the page's alone."""

QUALITY: Final = "What this capture can and can't tell"
"""The heading of the notes on quality."""
_FEW: Final = 6
_SOME: Final = 12
"""Rows of details in a comment."""
MOST: Final = 200
"""Rows of details where there is room."""
_PROCESSES: Final = 16
_RARE: Final = ("unattributed", "unrecorded", "profiler")


def sections(report: Report, *, verbose: bool = False) -> dict[str, Section]:
    """Return every part that is made of sentences and tables, by its anchor and in the order of `NAMES`.

    Findings and notes on quality are not among them: each format has its own way to mark how grave they are.
    """
    made = (
        _step(report) if report.steps.count else _window(report),
        *host.sections(report, verbose=verbose),
        *_roles(report),
        *_untraced(report),
        *_gaps(report, verbose=verbose),
        *charted.sections(report, MOST if verbose else _SOME),
        *_ranks(report),
        *economics.sections(report),
        _provenance(report),
    )
    known = {section.anchor: section for section in made}
    return {anchor: known[anchor] for anchor in NAMES if anchor in known}


def notes(report: Report, *, verbose: bool = True) -> tuple[QualityNote, ...]:
    """Return what to know of the capture, the gravest first; without `verbose` no notes that are mere information."""
    shown = (note for note in report.quality if verbose or note.level != "info" or note.code.startswith("capture-mode"))
    return gravest_first(shown)


def gap_rows(report: Report) -> list[GapRow]:
    """Return the recurring gaps outside graphs, the costliest first."""
    return [row for row in report.detail.gaps if row.gap_class != "intra_graph"]


def gap_table(rows: Sequence[GapRow]) -> Table:
    """Return recurring gaps, a row each."""
    header = ("between", "ended by", "a step", "p50 us", "max us", "total ms", "class")
    cells = [
        (
            f"{plain(row.after_role, 30) or 'eager work'} → {plain(row.before_role, 30) or 'eager work'}",
            plain(row.ended_by, 40) or "unknown",
            count(row.per_step_count),
            f"{row.p50_ns / NS_PER_US:,.1f}",
            f"{row.max_ns / NS_PER_US:,.1f}",
            milliseconds(row.total_ns),
            class_label(row.gap_class),
        )
        for row in rows
    ]
    return Table("", header, cells, spare=2, left=("ended by", "class"))


def gpu_table(report: Report, *, whole: bool = True) -> Table:
    """Return the ledger of each GPU over the window, in shares of its span; rare classes are one unless `whole`."""
    devices, others = gpus_shown(report)
    names = (*(name for name in LEDGER_CLASSES if name not in _RARE), *(_RARE if whole else ("other",)))
    rows = [
        (
            str(one.gpu),
            milliseconds(one.span_ns),
            *(share(None if part is None else part / one.span_ns) for part in map(_parts(one).get, names)),
            count(one.replays),
            f"{count(one.launches.recorded)} of {count(one.launches.seen)}",
        )
        for one in devices
    ]
    header = ("GPU", "span ms", *map(class_label, names), "replays", "launch calls recorded")
    return Table("", header, rows, others, spare=2)


def _parts(one: DeviceReport) -> dict[str, int | None]:
    """Return the ledger of a GPU by class, the rare ones summed too."""
    inter = one.inter_graph
    rare = {"unattributed": inter.unattributed_ns, "unrecorded": one.unrecorded_ns, "profiler": one.profiler_ns}
    return rare | {
        "busy": one.busy_ns,
        "intra_graph": one.intra_graph_ns,
        "host_late": inter.host_late_ns,
        "launching": inter.launching_ns,
        "queued": inter.queued_ns,
        "other": sum_of(rare.values()),
    }


def _step(report: Report) -> Section:
    steps, left_out = report.steps, left_out_words(report)
    heading = f"A decode step on GPU {steps.gpu}, process {steps.pid}: {scope_words(report)}"
    said = tuple(plain(sentence, 700) for sentence in steps_sentences(report))
    note = f"Left out of the statistics: {left_out}." if left_out else ""
    return Section("ledger", heading, said, (_ledger(report, note),))


def _ledger(report: Report, note: str) -> Table:
    corrected, whole = report.overhead.corrected, report.steps.per_step["duration"].mean
    rows = [
        (
            _part(name),
            *(milliseconds(value) for value in (stats.mean, stats.p50, stats.p95, stats.max)),
            share(stats.mean / whole) if stats.mean is not None and whole else share(None),
            *((milliseconds(corrected.get(name)),) if corrected else ()),
            CLASS_MEANINGS.get(name, ""),
        )
        for name in STEP_CLASSES
        if (stats := report.steps.per_step.get(name)) and not _silent(report, name, stats)
    ]
    header = ("ms a step", "mean", "p50", "p95", "max", "share", *(("p50 corrected",) if corrected else ()), "meaning")
    return Table("", header, rows, note, 1, ("meaning",))


def _part(name: str) -> str:
    return "step" if name == "duration" else class_label(name)


def _silent(report: Report, name: str, stats: Stats) -> bool:
    """Tell whether a class has nothing to say: rare ones at 0, and what such a capture can't hold."""
    mode = report.trace.capture_mode
    if mode == "unseen":
        return name != "duration"
    return (name == "intra_graph" and mode == "none") or (name in _RARE and stats.max == 0)


def _window(report: Report) -> Section:
    return Section(
        "ledger", "The whole window, since no decode steps were found", (), (gpu_table(report, whole=False),)
    )


def _roles(report: Report) -> Iterator[Section]:
    corrected = report.overhead.corrected_roles
    rows = [
        (
            plain(role.role, 60),
            count(role.replays_per_step),
            count(role.nodes),
            duration(role.p50_ns),
            *((duration(corrected.get(role.role)),) if corrected else ()),
            duration(role.intra_graph_p50_ns),
        )
        for role in report.steps.roles
    ]
    if rows:
        header = ("role", "a step", "nodes", "p50", *(("corrected",) if corrected else ()), "idle inside")
        yield Section("step", "What a step is made of", (), (Table("", header, rows),))


def _untraced(report: Report) -> Iterator[Section]:
    if said := tuple(plain(sentence, 700) for sentence in overhead_sentences(report.overhead)):
        yield Section("untraced", "Without the profiler", said, ())


def _gaps(report: Report, *, verbose: bool) -> Iterator[Section]:
    if rows := gap_rows(report):
        where = " between graphs" if any(device.replays for device in report.devices) else ""
        heading = f"Costliest recurring gaps{where}, and the call that ended them{counted_words(report)}"
        yield Section("gaps", heading, (), (gap_table(rows if verbose else rows[:_FEW]),))


def _ranks(report: Report) -> Iterator[Section]:
    ranks, others = ranks_shown(report)
    if len(ranks) < 2:  # noqa: PLR2004 - nothing to lay side by side
        return
    names = [name for name in STEP_CLASSES if any(rank.per_step[name].max for rank in ranks)]
    rows = [
        (
            f"GPU {rank.gpu}, process {rank.pid}",
            count(rank.count),
            *(milliseconds(rank.per_step[name].p50) for name in names),
        )
        for rank in ranks
    ]
    table = Table("", ("rank", "steps", *map(_part, names)), rows, others)
    yield Section("ranks", "Ranks side by side, p50 of a step in ms", (), (table,))


def _provenance(report: Report) -> Section:
    facts = [(name, plain(value, 200) or "unknown") for name, value in _facts(report)]
    table = Table("", ("what", "this capture"), facts, left=("this capture",))
    ledgers = replace(gpu_table(report), title="The ledger of each GPU over the whole window")
    tables = (table, ledgers) if report.devices else (table,)
    return Section("provenance", "Where the numbers come from", (), tables, is_detail=True)


def _facts(report: Report) -> Iterator[tuple[str, str | None]]:
    """Yield what the user and the capture say of it, and how its steps were found."""
    run, trace, overhead = report.run, report.trace, report.overhead
    yield from (("capture", trace.name), ("label", run.label), ("commit", run.commit))
    yield from (("Nsight Systems", trace.nsys_version), ("export schema", trace.schema_version))
    yield from (("CUPTI", trace.cupti_version), ("driver", trace.driver_version), ("CUDA", trace.cuda_version))
    yield "recorded", f"{duration(trace.duration_ns)}, {MODE_LABELS[trace.capture_mode]}"
    yield "GPUs", gpu_words(trace.gpus)
    named = ", ".join(f"{one.pid} {plain(one.name, 60)}".strip() for one in trace.processes[:_PROCESSES])
    left = len(trace.processes) - _PROCESSES
    yield "processes", f"{named} and {count(left)} more" if left > 0 else named
    yield from ((plain(key, 60), value) for key, value in report.run.meta.items())
    yield "steps", scope_words(report) + (f", mark {plain(report.steps.mark, 120)}" if report.steps.mark else "")
    slower = f", the traced step is {overhead.inflation:.3f} times the corrected one" if overhead.inflation else ""
    yield "profiler overhead", overhead.method.replace("_", " ") + slower
    yield "tool", f"{report.tool.name} {report.tool.version}"
