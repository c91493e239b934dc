"""What holds of every report, whatever the capture: broken laws come back as sentences, none means all hold."""

from __future__ import annotations

import json
import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import polars as pl

from bubblefinder.render.formats import formats_of, render
from bubblefinder.report.found import DeviceRef
from bubblefinder.report.json import embedded_json
from bubblefinder.timeline.model import INTER_CLASSES, LEDGER_CLASSES
from bubblefinder.trace.schema import CALLS_TABLE, KIND_TABLES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from bubblefinder.report.found import Finding
    from bubblefinder.report.model import DeviceReport, Report, StepRow
    from bubblefinder.trace.model import Trace

LEFT_OUT = ("invalid-times", "missing-times", "unusable-rows")
ALL_IDLE = 0.99
_TIME = r"[\d.,]+ (?:ns|us|ms|s)\b"


def broken(report: Report, trace: Trace) -> list[str]:
    """The laws that a report breaks."""
    return [
        *_devices(report, trace),
        *_steps(report),
        *_findings(report),
        *_order(report),
        *_silence(report),
        *_formats(report),
    ]


def _devices(report: Report, trace: Trace) -> Iterator[str]:
    if not report.devices:
        yield "no device, and no refusal"
    for device in report.devices:
        where = f"GPU {device.gpu}"
        if device.span_ns != device.end_ns - device.start_ns:
            yield f"{where}: the span isn't its end less its start"
        if device.busy_ns != _union(trace, device):
            yield f"{where}: busy {device.busy_ns} is not the union {_union(trace, device)} of its operations"
        if device.launches.recorded > device.launches.seen:
            yield f"{where}: more launches recorded than seen"
        yield from _device_ledger(device, report.trace.capture_mode, where)


def _union(trace: Trace, device: DeviceReport) -> int:
    """The union of the device's operations that lie in its window, added up one by one."""
    rows = trace.operations.filter(
        (pl.col("gpu") == device.gpu) & (pl.col("start_ns") >= device.start_ns) & (pl.col("end_ns") <= device.end_ns)
    )
    busy, reached = 0, device.start_ns
    for start, end in rows.select("start_ns", "end_ns").sort("start_ns").iter_rows():
        busy += max(0, end - max(start, reached))
        reached = max(reached, end)
    return busy


def _device_ledger(device: DeviceReport, mode: str, where: str) -> Iterator[str]:
    parts = {name: getattr(device.inter_graph, f"{name}_ns") for name in INTER_CLASSES}
    parts |= {"unrecorded": device.unrecorded_ns, "profiler": device.profiler_ns}
    if mode == "unseen":
        if any(part is not None for part in parts.values()) or device.idle_ns is not None:
            yield f"{where}: graph work is unseen, and yet idle time is told"
        return
    if mode == "graph" and device.replays and device.intra_graph_ns is not None:
        yield f"{where}: the inside of graphs was not measured, and yet it is told"
    if any(part is None or part < 0 for part in parts.values()):
        yield f"{where}: a class is missing or negative: {parts}"
        return
    total = device.busy_ns + (device.intra_graph_ns or 0) + sum(parts.values())
    if total != device.span_ns:
        yield f"{where}: the ledger sums to {total}, the span is {device.span_ns}"
    if device.idle_ns != device.span_ns - device.busy_ns - parts["unrecorded"] - parts["profiler"]:
        yield f"{where}: idle is not what its parts say"


def _steps(report: Report) -> Iterator[str]:
    for row in report.steps.rows:
        total = _row_total(row)
        if row.duration_ns < 0 or (total is not None and total != row.duration_ns):
            yield f"window {row.index} of GPU {row.gpu}: {total} of {row.duration_ns} ns are explained"
    decoded = [
        row
        for row in report.steps.rows
        if row.excluded is None and (row.gpu, row.pid) == (report.steps.gpu, report.steps.pid)
    ]
    if report.steps.count != len(decoded):
        yield f"{report.steps.count} steps are counted, {len(decoded)} are listed"
    for name in ("intra_graph", "inter_graph", "total"):
        part = getattr(report.steps.bubble_share, name)
        if part is not None and not 0 <= part <= 1:
            yield f"the {name} share is {part}"
        if part is not None and (report.trace.capture_mode == "unseen" or not decoded):
            yield f"the {name} share is told without steps to tell it of"


def _row_total(row: StepRow) -> int | None:
    """The sum of a window's classes; null where one of them can't be known, unless only the inside of graphs."""
    parts = [getattr(row, f"{name}_ns") for name in LEDGER_CLASSES if name != "intra_graph"]
    return None if None in parts else sum(parts) + (row.intra_graph_ns or 0)


def _findings(report: Report) -> Iterator[str]:
    longest = max((row.duration_ns for row in report.steps.rows), default=0)
    span = max((device.span_ns for device in report.devices), default=0)
    for finding in report.findings:
        if finding.recoverable_ns is not None and not 0 <= finding.recoverable_ns <= (longest or span):
            yield f"{finding.rule} recovers {finding.recoverable_ns} ns of at most {longest or span}"
        if finding.bubble_ns.p50 is not None and finding.bubble_ns.p50 > span:
            yield f"{finding.rule} has a bubble longer than the capture"
        if not _parts_fit(finding.message):
            yield f"{finding.rule} tells a part longer than its whole: {finding.message}"
        if report.trace.capture_mode == "unseen" and finding.severity != "info":
            yield f"{finding.rule} blames a call although graph work is unseen"


def _parts_fit(message: str) -> bool:
    """Whether no "... lasts 3 us, and the GPU idles 4 us of that" is told."""
    timed = [said for said in message.split(" of that")[:-1] if re.search(f"{_TIME}$", said)]  # a share may be told too
    told = [re.findall(_TIME, sentence)[-2:] for sentence in timed]
    return all(_in_ns(part) <= _in_ns(whole) for whole, part in told)


def _in_ns(words: str) -> float:
    number, unit = words.split()
    return float(number.replace(",", "")) * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[unit]


def _order(report: Report) -> Iterator[str]:
    """Findings of one severity come by what their cure is told to give the reported rank."""
    shown = DeviceRef(gpu=report.steps.gpu or 0, pid=report.steps.pid or 0)
    priced = [one for one in report.findings if one.recoverable_ns is not None and shown in one.devices]
    for first, second in pairwise(priced):
        alike = first.severity == second.severity
        if alike and _given_ns(first) < _given_ns(second):
            yield f"{first.rule} gives {_given_ns(first)} ns and comes before {second.rule} with {_given_ns(second)}"


def _given_ns(finding: Finding) -> int:
    return max(finding.recoverable_ns or 0, finding.in_turn_ns or 0)


def _silence(report: Report) -> Iterator[str]:
    """A GPU that seems idle nearly always, or launches without work, must come with a warning."""
    warned = {note.code for note in report.quality if note.level != "info"}
    lost = any(device.launches.recorded < device.launches.seen for device in report.devices)
    if lost and not warned & {"launches-without-work", "capture-mode-unseen"}:
        yield "launches lack their work, and nothing says so"
    if report.trace.capture_mode == "unseen" and "capture-mode-unseen" not in warned:
        yield "graph work is unseen, and nothing says so"


def seems_idle(report: Report, known: Collection[str] = ()) -> bool:
    """Whether a device is told to idle all the time without a warning beside it, other than those known of before."""
    warned = {note.code for note in report.quality if note.level != "info"} - set(known)
    return not warned and idle_share(report) > ALL_IDLE


def idle_share(report: Report) -> float:
    """The largest share of its span that a device is told to idle."""
    shares = (device.idle_ns / device.span_ns for device in report.devices if device.idle_ns is not None)
    return max(shares, default=0)


def _formats(report: Report) -> Iterator[str]:
    """Every format renders, and those that have a grammar keep to it."""
    rendered = {name: render("report", report, name) for name in formats_of("report")}
    text = {name: content for name, content in rendered.items() if isinstance(content, str)}
    for name in ("json", "perfetto"):
        json.loads(text[name], parse_constant=_no_number)
    ET.fromstring(text["junit"])
    if json.loads(embedded_json(text["html"])) != json.loads(text["json"]):
        yield "the page holds another report than the JSON"
    if re.search(r"(?<![\w.])(?:nan|inf)(?![\w.])\s*(?:ms|us|ns|s|%)", text["text"] + text["markdown"]):
        yield "the text shows something that is no number"
    yield from (f"{path} is {value}" for path, value in _floats(json.loads(text["json"])) if not math.isfinite(value))


def _no_number(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _floats(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield path, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _floats(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from _floats(inner, f"{path}[]")


def lost_rows(trace: Trace, stored: dict[str, int]) -> Iterator[str]:
    """Rows of operations and calls that are neither in the trace nor counted in its notes."""
    groups = {"operations": KIND_TABLES, "calls": (CALLS_TABLE,)}
    for name, tables in groups.items():
        loaded = getattr(trace, name).height
        counted = sum(_counted(trace, table) for table in tables)
        nowhere = "device-unknown" if name == "operations" else "thread-unknown"
        unplaced = sum(note.count or 0 for note in trace.notes if note.code == nowhere)
        missing = sum(stored.get(table, 0) for table in tables) - loaded - counted
        if missing != unplaced:
            yield f"{missing} {name} are neither loaded nor counted"


def _counted(trace: Trace, table: str) -> int:
    told = (re.search(rf"\b{table} ([\d,]+)", note.message) for note in trace.notes if note.code in LEFT_OUT)
    return sum(int(found[1].replace(",", "")) for found in told if found)
