"""Chrome's trace format, which ui.perfetto.dev opens: steps, gaps, waits, findings, launches and replays."""

from __future__ import annotations

import json as stdlib_json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bubblefinder.report.sentences import class_label, plain, site_words, steps_sentences
from bubblefinder.report.verdict import verdict
from bubblefinder.timeline.model import LEDGER_CLASSES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.causes.evidence import Evidence
    from bubblefinder.report.charts import TimelineBar
    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import Report

Span = TypeVar("Span", "TimelineBar", "Evidence")

NS_PER_TICK: Final = 1_000
"""Times in this format are microseconds; fractions keep the nanoseconds."""

_DRAWN: Final = {"operation", "operations", "nvtx", "api", "wait", "blamed_wait", "intra_graph", "drain"}


@dataclass(slots=True)
class _Tracks:
    """Events, and one track a name: slices of one track must nest, so each kind has its own."""

    events: list[dict[str, Any]] = field(default_factory=list)
    named: dict[tuple[int, str], int] = field(default_factory=dict)

    def track(self, pid: int, name: str) -> int:
        """Return the track of that name, made at its first use."""
        key = (pid, name)
        if key not in self.named:
            self.named[key] = len(self.named) + 1
            self.events.append(
                {"ph": "M", "name": "thread_name", "pid": pid, "tid": self.named[key], "args": {"name": name}}
            )
            order = {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": self.named[key]}
            self.events.append(order | {"args": {"sort_index": self.named[key]}})
        return self.named[key]

    def process(self, pid: int, name: str) -> None:
        """Name the group of tracks of a process id."""
        self.events.append({"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}})

    def slice(self, where: tuple[int, str], name: str, span: tuple[int, int], args: dict[str, Any]) -> None:
        """Add an interval to the track (process, name)."""
        start, end = span
        times = {"ts": start / NS_PER_TICK, "dur": (end - start) / NS_PER_TICK}
        self.events.append({"ph": "X", "name": name, "pid": where[0], "tid": self.track(*where), **times, "args": args})

    def flow(self, number: int, tail: tuple[int, str, int], head: tuple[int, str, int]) -> None:
        """Add an arrow from (process, track, time) to another; each time lies inside a slice."""
        for phase, (pid, name, at) in (("s", tail), ("f", head)):
            end = {"bp": "e"} if phase == "f" else {}
            shared = {"name": "launch", "cat": "launch", "id": number, "ts": at / NS_PER_TICK}
            self.events.append({"ph": phase, "pid": pid, "tid": self.track(pid, name), **shared, **end})


def render(report: Report) -> str:
    """Return the trace as JSON; times are the capture's own clock."""
    tracks = _Tracks()
    for gpu in report.trace.gpus:
        tracks.process(_group(gpu.gpu), f"GPU {gpu.gpu} {plain(gpu.name, 60)}")
    _add_steps(tracks, report)
    _add_launches(tracks, report)
    _add_idle(tracks, report)
    _add_timelines(tracks, report)
    for number, finding in enumerate(report.findings, start=1):
        _add_finding(tracks, number, finding)
    judged = verdict(report)
    about = {
        "tool": f"{report.tool.name} {report.tool.version}",
        "trace": plain(report.trace.name),
        "verdict": judged.headline,
        "steps": [plain(sentence, 400) for sentence in steps_sentences(report)],
    }
    trace = {"displayTimeUnit": "ns", "otherData": about, "traceEvents": tracks.events}
    return stdlib_json.dumps(trace, separators=(",", ":")) + "\n"


def _group(gpu: int) -> int:
    return 1_000_000 + gpu


def _add_steps(tracks: _Tracks, report: Report) -> None:
    for row in report.steps.rows:
        group = _group(row.gpu)
        parts = {f"{name}_ns": getattr(row, f"{name}_ns") for name in LEDGER_CLASSES}
        name = f"step {row.index}" if row.excluded is None else f"{plain(row.excluded)} {row.index}"
        args = {
            "pid": row.pid,
            "duration_ns": row.duration_ns,
            "excluded": row.excluded,
            "requests": row.requests,
            **parts,
        }
        span = (row.start_ns, row.start_ns + row.duration_ns)
        tracks.slice((group, f"steps of process {row.pid}"), name, span, args)
        known = {class_label(name): value for name in LEDGER_CLASSES if (value := parts[f"{name}_ns"]) is not None}
        tracks.events.append(
            {"ph": "C", "name": "ns per step", "pid": group, "ts": row.start_ns / NS_PER_TICK, "args": known}
        )


def _add_launches(tracks: _Tracks, report: Report) -> None:
    for number, lead in enumerate(report.detail.leads, start=1):
        group, role = _group(lead.gpu), plain(lead.role, 80) or "replay"
        if lead.end_ns is None or lead.call_start_ns is None or lead.call_end_ns is None:
            continue
        calls, replays = f"graph launches of process {lead.pid}", f"graph replays of process {lead.pid}"
        args = {"lead_ns": lead.lead_ns, "step": lead.index}
        tracks.slice((group, calls), f"launch {role}", (lead.call_start_ns, lead.call_end_ns), args)
        tracks.slice((group, replays), role, (lead.start_ns, lead.end_ns), args)
        tracks.flow(number, (group, calls, lead.call_start_ns), (group, replays, lead.start_ns))


def _add_idle(tracks: _Tracks, report: Report) -> None:
    for idle in report.detail.idle:
        where = (_group(idle.gpu), f"idle: {class_label(idle.gap_class)}")
        tracks.slice(
            where, class_label(idle.gap_class), (idle.start_ns, idle.end_ns), {"ns": idle.end_ns - idle.start_ns}
        )


def _add_timelines(tracks: _Tracks, report: Report) -> None:
    """Add what the drawn steps hold and the tracks of the whole run don't."""
    for step in report.detail.timelines:
        groups: dict[str, list[TimelineBar]] = {}
        for bar in step.bars:
            if bar.kind in _DRAWN:
                kind = "wait" if bar.kind in ("wait", "blamed_wait") else bar.kind
                groups.setdefault(f"{plain(step.which, 20)} step: {plain(bar.track, 60)} · {kind}", []).append(bar)
        for name, bars in groups.items():
            for lane, bar in _in_lanes(bars):
                args = {"kind": bar.kind, "covered": bar.fill}
                where = (_group(step.gpu), _lane_name(name, lane))
                tracks.slice(where, plain(bar.name), (bar.start_ns, bar.end_ns), args)


def _add_finding(tracks: _Tracks, number: int, finding: Finding) -> None:
    group = _group(finding.devices[0].gpu) if finding.devices else 1
    name = f"finding {number}: {plain(finding.rule, 60)}"
    args = {
        "severity": finding.severity,
        "confidence": finding.confidence,
        "site": site_words(finding.site),
        "bubble_p50_ns": finding.bubble_ns.p50,
        "recoverable_ns": finding.recoverable_ns,
        "remedy": plain(finding.remedy, 400),
    }
    for lane, one in _in_lanes(finding.evidence):
        row = {"table": plain(one.table), "row": one.row}
        tracks.slice((group, _lane_name(name, lane)), plain(finding.title), (one.start_ns, one.end_ns), args | row)


def _lane_name(name: str, lane: int) -> str:
    return name if lane == 0 else f"{name} ({lane + 1})"


def _in_lanes(spans: Sequence[Span]) -> Iterator[tuple[int, Span]]:
    """Yield the spans by start, each with the first lane in which it begins after all others have ended."""
    ends: list[int] = []
    for span in sorted(spans, key=lambda one: (one.start_ns, one.end_ns)):
        lane = next((lane for lane, end in enumerate(ends) if end <= span.start_ns), len(ends))
        ends[lane : lane + 1] = [span.end_ns]
        yield lane, span
