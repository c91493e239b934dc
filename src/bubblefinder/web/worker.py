"""One job, in a process of its own: unpack, load, analyse, write every output, within its limits.

Run as ``python -m bubblefinder.web.worker``. The job comes as one line of JSON on stdin, which then
stays open: its end means that the server is gone, and the job with it. Progress and the outcome go
to stdout, one line of JSON each.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import sys
import tempfile
import threading
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.errors import EXIT_INPUT, BubblefinderError
from bubblefinder.memory import collect_seldom
from bubblefinder.web.limits import NO_ROOM, Limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.report.model import Report

STAGES: Final = ("unpack", "load", "timeline", "steps", "causes", "report")
"""What the page shows; finer stages that the analysis names count as part of the one before."""
OUTPUTS: Final = {"json": "report.json", "html": "report.html", "markdown": "report.md"}
PERFETTO: Final = "report.perfetto.json.gz"
BODY: Final = "body.html"
EVENTS: Final = "events"
FINISHED: Final = "finished"
DIFF_OUTPUTS: Final = {"json": "diff.json", "html": "diff.html", "markdown": "diff.md"}
WAITING: Final = "waiting"
"""Beside the metrics of a run: the share of a step in which the GPU waited for the host, on which noise depends."""
_NAMED: Final = 3
_GONE: Final = 70
_COLUMNAR: Final = 8
"""How much longer a SQLite export is than the same capture in compressed columns: tables and .nsys-rep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """A trace to report on; paths are the server's own."""

    upload: str
    scratch: str
    name: str
    label: str | None
    commit: str | None
    unpacked_bytes: int
    archive_files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Reports to compare, by path, and the folder to write to."""

    base: list[str]
    head: list[str]
    out: str


def main() -> int:
    """Do the job on stdin and return the exit code."""
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(**said: Any) -> None:  # noqa: ANN401 - whatever JSON can say
        told.write(json.dumps(said) + "\n")
        told.flush()

    order = json.loads(sys.stdin.readline())
    os.umask(0o077)
    os.nice(5)
    collect_seldom()
    threading.Thread(target=_die_with_the_server, daemon=True).start()
    limit = Limit(**order["limit"])
    _confine(limit)
    try:
        done = (
            analyse(Upload(**order["analysis"]), tell, lambda size_bytes: _confine(limit.fitted(size_bytes)))
            if "analysis" in order
            else compare(Comparison(**order["comparison"]))
        )
    except BubblefinderError as error:
        name = order.get("analysis", {}).get("name", "")
        tell(error=_about(str(error), name), hint=_about(error.hint, name))
        return error.exit_code
    except MemoryError:
        tell(memory=True)
        return EXIT_INPUT
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        tell(disk=True)
        return EXIT_INPUT
    tell(done=done)
    return 0


def analyse(job: Upload, tell: Callable[..., None], fit: Callable[[int], None]) -> dict[str, Any]:
    """Write the outputs of a job into its scratch folder and return what the list of runs shows of it.

    `tell` says how far it is; `fit` lowers the limits to what a capture of so many bytes may use.
    """
    from bubblefinder.web.archive import Bounds, unpack

    scratch = Path(job.scratch)
    scratch.mkdir(mode=0o700, parents=True)
    tempfile.tempdir = job.scratch
    tell(stage="unpack")
    path = unpack(Path(job.upload), job.name, scratch, Bounds(job.unpacked_bytes, job.archive_files))
    size_bytes = _size_of(path)
    tell(stage="load", bytes=size_bytes)
    fit(size_bytes)
    from bubblefinder.pipeline import Analysis
    from bubblefinder.report.build import Options, report_of
    from bubblefinder.report.model import Run
    from bubblefinder.trace.open import open_trace
    from bubblefinder.web.tracks import write_events

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
    from bubblefinder.compare.diff import diff
    from bubblefinder.render.diff.html import body
    from bubblefinder.render.formats import encoded, render
    from bubblefinder.report.json import read_report

    base, head = ([read_report(Path(path)) for path in paths] for paths in (job.base, job.head))
    result = diff(base, head)
    out = Path(job.out)
    for form, name in DIFF_OUTPUTS.items():
        (out / name).write_bytes(encoded(render("diff", result, form)))
    (out / BODY).write_text(body(result), encoding="utf-8")
    return {}


def summary(report: Report) -> dict[str, Any]:
    """Return what the list of runs and the trends show of a report."""
    from bubblefinder.compare.metrics import measure
    from bubblefinder.compare.noise import waiting_of
    from bubblefinder.report.verdict import verdict

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
    from bubblefinder.render.formats import encoded, render
    from bubblefinder.render.report.html import render_body

    for form, name in OUTPUTS.items():
        (folder / name).write_bytes(encoded(render("report", report, form)))
    (folder / PERFETTO).write_bytes(gzip.compress(encoded(render("report", report, "perfetto")), mtime=0))
    (folder / BODY).write_text(render_body(report), encoding="utf-8")


def _about(message: str, name: str) -> str:
    """Call the trace what its sender calls it."""
    from bubblefinder.web.archive import TRACE

    return message.replace(f"{TRACE}.nsys-rep", name).replace(TRACE, name)


def _size_of(path: Path) -> int:
    """Return how long the trace is, or would be as a SQLite export."""
    if path.is_dir():
        return _COLUMNAR * sum(table.stat().st_size for table in path.iterdir())
    return path.stat().st_size * (_COLUMNAR if path.suffix == ".nsys-rep" else 1)


def _confine(limit: Limit) -> None:
    """Lower what this process may use; a processor second on every core is what wall time allows for."""
    for what, bound in (
        (resource.RLIMIT_DATA, limit.memory_bytes),
        (resource.RLIMIT_FSIZE, limit.file_bytes),
        (resource.RLIMIT_CPU, int(limit.seconds * (os.cpu_count() or 1)) + 1),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (bound, bound))


def _die_with_the_server() -> None:
    while os.read(0, 4096):
        pass
    os._exit(_GONE)


if __name__ == "__main__":
    sys.exit(main())
