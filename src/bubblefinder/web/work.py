"""What a job does: unpack, load, analyse and write every output, or compare.

All that a job needs is imported here, at the top, or by `prepare`: a process that did so does the next job sooner.
"""

from __future__ import annotations

import gzip
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.compare.diff import diff
from bubblefinder.compare.metrics import measure
from bubblefinder.compare.noise import waiting_of
from bubblefinder.overhead.calibration import bundled_calibrations
from bubblefinder.pipeline import Analysis
from bubblefinder.render import formats
from bubblefinder.render.diff import html as diff_html
from bubblefinder.render.kit.html import compile_templates, environment
from bubblefinder.render.report import html as report_html
from bubblefinder.report.build import Options, report_of
from bubblefinder.report.json import read_report
from bubblefinder.report.model import Run
from bubblefinder.report.verdict import verdict
from bubblefinder.rules.packs import load_packs
from bubblefinder.trace.open import open_trace
from bubblefinder.web.archive import Bounds, unpack
from bubblefinder.web.orders import (
    BODY,
    DIFF_OUTPUTS,
    EVENTS,
    FINISHED,
    OUTPUTS,
    PERFETTO,
    WAITING,
    Comparison,
    Upload,
)
from bubblefinder.web.tracks import write_events

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.model import Report

_NAMED: Final = 3
_COLUMNAR: Final = 8
"""How much longer a SQLite export is than the same capture in compressed columns: tables and .nsys-rep."""


def prepare() -> None:
    """Read what every job reads of the product itself: writers, templates, rules and what tracing costs."""
    formats.load("report", *OUTPUTS, "perfetto")
    formats.load("diff", *DIFF_OUTPUTS)
    for templates in (environment(), report_html.templates()):
        compile_templates(templates)
    load_packs()
    bundled_calibrations()


def analyse(job: Upload, tell: Callable[..., None], fit: Callable[[int], None]) -> dict[str, Any]:
    """Write the outputs of a job into its scratch folder and return what the list of runs shows of it.

    `tell` says how far it is; `fit` lowers the limits to what a capture of so many bytes may use.
    """
    scratch = Path(job.scratch)
    scratch.mkdir(mode=0o700, parents=True)
    tempfile.tempdir = job.scratch
    tell(stage="unpack")
    path = unpack(Path(job.upload), job.name, scratch, Bounds(job.unpacked_bytes, job.archive_files))
    size_bytes = _size_of(path)
    tell(stage="load", bytes=size_bytes)
    fit(size_bytes)
    trace = open_trace(path, unpack_limit=job.unpacked_bytes)
    named = replace(trace, info=replace(trace.info, name=job.name))
    analysis = Analysis(named, progress=lambda stage: tell(stage=stage))
    run = Run(label=job.label, commit=job.commit)
    report = report_of(analysis, Options(run=run, launch_shapes=True))
    folder = scratch / FINISHED
    folder.mkdir(mode=0o700)
    _write_report(report, folder)
    write_events(analysis.timeline, analysis.steps, folder / EVENTS)
    return summary(report)


def compare(job: Comparison) -> dict[str, Any]:
    """Write a comparison in every format and return nothing that the server needs to know."""
    base, head = ([read_report(Path(path)) for path in paths] for paths in (job.base, job.head))
    result = diff(base, head)
    out = Path(job.out)
    for form, name in DIFF_OUTPUTS.items():
        (out / name).write_bytes(formats.encoded(formats.render("diff", result, form)))
    (out / BODY).write_text(diff_html.body(result), encoding="utf-8")
    return {}


def summary(report: Report) -> dict[str, Any]:
    """Return what the list of runs and the trends show of a report."""
    shares = report.steps.bubble_share
    names = sorted({gpu.name or f"GPU {gpu.gpu}" for gpu in report.trace.gpus})
    duration = report.steps.per_step.get("duration")
    return {
        "gpu": _listed(names),
        "nsys": report.trace.nsys_version,
        "step_p50_ns": duration.p50 if duration else None,
        "bubble_share": shares.inter_graph if shares.total is None else shares.total,
        "at_least": shares.total is None and shares.inter_graph is not None,
        "verdict": verdict(report).headline,
        "metrics": {WAITING: waiting_of(report)}
        | {
            m.metric.id: m.value
            for m in reversed(measure(report))
            if m.where in ((), (("rank", 0),)) and m.value is not None
        },
    }


def _listed(names: list[str]) -> str | None:
    """Return names in one line, of many only the first."""
    if len(names) > _NAMED:
        return f"{names[0]} and {len(names) - 1:,} others"
    return ", ".join(names) or None


def _write_report(report: Report, folder: Path) -> None:
    for form, name in OUTPUTS.items():
        (folder / name).write_bytes(formats.encoded(formats.render("report", report, form)))
    (folder / PERFETTO).write_bytes(
        gzip.compress(formats.encoded(formats.render("report", report, "perfetto")), mtime=0)
    )
    (folder / BODY).write_text(report_html.render_body(report), encoding="utf-8")


def _size_of(path: Path) -> int:
    """Return how long the trace is, or would be as a SQLite export."""
    if path.is_dir():
        return _COLUMNAR * sum(table.stat().st_size for table in path.iterdir())
    return path.stat().st_size * (_COLUMNAR if path.suffix == ".nsys-rep" else 1)
