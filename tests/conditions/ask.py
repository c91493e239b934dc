"""Asks the product about a drawing or an export, and reads the answer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from bubblefinder.report.build import Options, analyze_trace
from bubblefinder.rules.cases import Case, picture
from bubblefinder.timeline.model import INTER_CLASSES
from bubblefinder.trace.drawn import draw
from bubblefinder.trace.open import open_trace
from tests.exports import export

if TYPE_CHECKING:
    from pathlib import Path

    from bubblefinder.report.model import DeviceReport, Report
    from bubblefinder.trace.model import Trace


def drawn(timeline: str, *, repeat: int = 1, us: float = 1) -> Trace:
    """The capture that a picture shows, one microsecond a character, the picture repeated as often as asked."""
    case = Case(name="x", why="x", fires=True, timeline=timeline, repeat=repeat)
    return draw(picture(case), us_per_char=us)


def ask(timeline: str, *, repeat: int = 1, us: float = 1, **options: Any) -> Report:
    """The report on a drawing."""
    return analyze_trace(drawn(timeline, repeat=repeat, us=us), Options(**options))


def exported(path: Path, timeline: str, *statements: str, schema: str = "3.28", repeat: int = 1) -> Report:
    """The report on a drawing written as an export of a generation, which `statements` have then changed."""
    return analyze_trace(open_trace(written(path, timeline, *statements, schema=schema, repeat=repeat)))


def written(path: Path, timeline: str, *statements: str, schema: str = "3.28", repeat: int = 1) -> Path:
    """The export itself."""
    path.unlink(missing_ok=True)
    export(drawn(timeline, repeat=repeat), path, schema=schema)
    change(path, *statements)
    return path


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.execute(statement)


def ledger(report: Report, gpu: int = 0) -> dict[str, int]:
    """Microseconds by class of a GPU, classes without time left out."""
    device = device_of(report, gpu)
    parts = {"busy": device.busy_ns, "intra_graph": device.intra_graph_ns, "profiler": device.profiler_ns}
    parts |= {"unrecorded": device.unrecorded_ns}
    parts |= {name: getattr(device.inter_graph, f"{name}_ns") for name in INTER_CLASSES}
    return {name: time // 1000 for name, time in parts.items() if time}


def device_of(report: Report, gpu: int = 0) -> DeviceReport:
    return next(device for device in report.devices if device.gpu == gpu)


def codes(report: Report) -> dict[str, int | None]:
    """The counts of the quality notes by code."""
    return {note.code: note.count for note in report.quality}


def warnings(report: Report) -> set[str]:
    return {note.code for note in report.quality if note.level != "info"}


def rules(report: Report) -> list[str]:
    """The rules of the findings above info, worst first."""
    return [finding.rule for finding in report.findings if finding.severity != "info"]
