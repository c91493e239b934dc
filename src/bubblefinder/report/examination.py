"""What a capture is and what it can answer, before any number."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import CannotAnswerError
from bubblefinder.lookup import column_of
from bubblefinder.pipeline import Analysis
from bubblefinder.report import json
from bubblefinder.report.sentences import gravest_first
from bubblefinder.rules.packs import load_packs
from bubblefinder.timeline.missing import missing_work
from bubblefinder.timeline.model import CaptureMode, Timeline
from bubblefinder.timeline.ranges import TOOL_DOMAINS, user_ranges
from bubblefinder.trace.model import GRAPH, KERNEL, MEMCPY, MEMSET, QualityNote, Trace, TraceInfo
from bubblefinder.trace.programs import find_programs
from bubblefinder.units import share

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from bubblefinder.rules.model import Pack

_PROFILE: Final = (
    "nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --cuda-graph-trace={mode} -o capture PROGRAM"
)
SCHEMA: Final = "bubblefinder.doctor/1"
_RANGES: Final = 8
_KINDS: Final = {KERNEL: "kernel", MEMCPY: "copy", MEMSET: "memset", GRAPH: "graph replay"}


@dataclass(frozen=True, slots=True)
class Examination:
    """What `bubblefinder doctor` prints.

    Attributes:
        info: what the capture says of itself.
        rows: what it holds, as (noun, number of rows).
        answers: (question, answer) pairs; an answer begins with yes, no or partly.
        ranges: NVTX names that repeat, with how often: candidates for --step-by nvtx:NAME.
        notes: quality notes.
        purpose: what the command is for, as the words after "To", or an empty string.
        command: the nsys command that would answer more, or an empty string.
    """

    info: TraceInfo
    rows: tuple[tuple[str, int], ...]
    answers: tuple[tuple[str, str], ...]
    ranges: tuple[tuple[str, int], ...]
    notes: tuple[QualityNote, ...]
    purpose: str
    command: str


def examine(trace: Trace) -> Examination:
    """Return what the capture is and can answer; never fails for lack of GPU work."""
    analysis = Analysis(trace)
    try:
        timeline = analysis.timeline
    except CannotAnswerError as error:
        told = str(error).removeprefix(f"{trace.info.name}: ")
        note = QualityNote("no-gpu-activity", "error", f"{told}; {error.hint}")
        return Examination(
            trace.info,
            _rows(trace),
            (("how much does the GPU idle", "no: no GPU activity was recorded"),),
            _ranges(trace),
            (note, *gravest_first(trace.notes)),
            "record GPU work",
            _PROFILE.format(mode="node"),
        )
    steps = analysis.steps
    lanes = steps.windows.filter(steps.windows["excluded"].is_null()).group_by("gpu", "process").len().sort("gpu")
    found = " + ".join(str(number) for number in lanes["len"])
    by = f"{steps.method} ({steps.mark})" if steps.mark else steps.method
    answers = (
        (
            "where does a decode step begin",
            f"yes: {found} decode step{'s' * (found != '1')} by {by}, {steps.confidence} confidence"
            if found
            else "no: nothing repeats; name steps with --step-by",
        ),
        *_answers(timeline),
        *_naming(timeline),
    )
    return Examination(
        trace.info,
        _rows(trace),
        answers,
        _ranges(trace),
        gravest_first((*timeline.trace.notes, *timeline.notes, *steps.notes)),
        *_more(timeline),
    )


def render(examination: Examination) -> str:
    """Return the examination as JSON: what the capture says of itself, and dictionaries of the pairs."""
    found = {
        "schema": SCHEMA,
        "trace": examination.info,
        "rows": dict(examination.rows),
        "answers": dict(examination.answers),
        "ranges": dict(examination.ranges),
        "quality": examination.notes,
        "command": examination.command or None,
    }
    return json.render(found)


def _rows(trace: Trace) -> tuple[tuple[str, int], ...]:
    kinds = dict(trace.operations["kind"].value_counts().iter_rows())
    return (
        *((name, kinds.get(kind, 0)) for kind, name in _KINDS.items()),
        ("API call", len(trace.calls)),
        ("NVTX range", len(trace.nvtx)),
        ("profiler record", len(trace.overheads)),
    )


def _answers(timeline: Timeline) -> tuple[tuple[str, str], ...]:
    inside = {
        CaptureMode.NODE: "yes: every graph node was recorded (which slows launch calls down; see docs/overhead.md)",
        CaptureMode.GRAPH: "no: each replay is one block; capture in node mode for that",
        CaptureMode.MIXED: "partly: only some replays were recorded node by node",
        CaptureMode.NONE: "no: no CUDA graphs were launched",
        CaptureMode.UNSEEN: "no: the graph work is not in this export",
    }
    between = "" if timeline.mode is CaptureMode.NONE else " between graphs"
    frames = (
        "yes"
        if len(timeline.trace.frames)
        else "no: no call chains; record them in a second capture with --cudabacktrace=all:0, for the names alone: "
        "every call is so much slower there that its times mean nothing"
    )
    return (
        (f"how long is the GPU idle{between}, and which call ended each gap", _host_answer(timeline)),
        ("how long is it idle inside a graph", inside[timeline.mode]),
        ("which part of the program waits", _ranges_answer(timeline)),
        ("which line of code waits", frames),
    )


def _ranges_answer(timeline: Timeline) -> str:
    nvtx, own = timeline.trace.nvtx, timeline.ranges.rows
    otherwise = "causes are told by call and place in the step only"
    if nvtx.is_empty():
        return f"no: no NVTX ranges; {otherwise}"
    if own.is_empty():
        tools = ", ".join(sorted(TOOL_DOMAINS.intersection(nvtx["domain"].drop_nulls())))
        these = f"those of {tools} name no part of it" if tools else "they have no name or no length"
        return f"no: no NVTX range is the program's own ({these}); {otherwise}"
    if timeline.calls.is_empty() or set(own["thread"]) & set(column_of(timeline.calls, "thread")):
        return "yes"
    return f"no: no thread that makes CUDA calls opened an NVTX range; {otherwise}"


def _naming(timeline: Timeline) -> Iterator[tuple[str, str]]:
    """Yield what would name the code of each engine that the capture shows and doesn't name."""
    # Engines borrow each other's kernels: their own threads and ranges tell which one runs.
    seen = find_programs(replace(timeline.trace, names={}))
    named = set(timeline.ranges.rows["text"].unique())
    for pack in load_packs().packs:
        if pack.switch is not None and pack.pack.replace("-", "_") in seen and not _is_named(pack, named):
            switch = pack.switch
            how = (
                f"{switch.set}: {switch.names}; cost: {switch.cost}. Or ranges around its functions, 10 to 120 us each"
            )
            file = f"`bubblefinder rules functions {pack.pack} -o FILE`"
            yield f"what would name {pack.pack}'s code", f"{how}: --python-functions-trace=FILE, from {file}"


def _is_named(pack: Pack, named: Collection[str]) -> bool:
    functions = {f"{listed.module}.{name}" for listed in pack.functions for name in listed.names}
    opens = re.compile(pack.switch.opens) if pack.switch else None
    return any(text in functions or (opens and opens.search(text)) for text in named)


def _host_answer(timeline: Timeline) -> str:
    if missing := missing_work(timeline.mode, timeline.trace.notes):
        return f"no: {missing.why}"
    if timeline.calls.is_empty():
        return "partly: how long, but no API calls were traced"
    orphans = int(timeline.operations["call_index"].is_null().sum())
    if orphans * 10 <= len(timeline.operations):
        return "yes"
    lost = share(orphans / len(timeline.operations), 0)
    return f"partly: how long, but {lost} of the GPU's work has no API call in the capture"


def _ranges(trace: Trace) -> tuple[tuple[str, int], ...]:
    return tuple(
        (text, number)
        for text, number in Counter(user_ranges(trace.nvtx)["text"].to_list()).most_common(_RANGES)
        if number > 1
    )


def _more(timeline: Timeline) -> tuple[str, str]:
    """Return what another capture would be for, and its command; empty where none would answer more."""
    if timeline.mode is CaptureMode.NONE:
        return "", ""
    if timeline.mode is CaptureMode.NODE:
        purpose = "time a step and its gaps without the cost of recording every node"
        return purpose, _PROFILE.format(mode="graph")
    return "see inside every graph", _PROFILE.format(mode="node")
