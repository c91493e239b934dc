"""What several commands take: arguments declared once, what they mean, and the captures and reports they name."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bubblefinder.errors import CannotAnswerError, UsageError
from bubblefinder.units import NS_PER_MS, parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from bubblefinder.compare.scenario import Results
    from bubblefinder.economics.bench import Bench as BenchRun
    from bubblefinder.overhead.model import Source
    from bubblefinder.report.economics_build import Question
    from bubblefinder.report.model import Report

Capture = Annotated[
    Path,
    typer.Argument(
        metavar="TRACE",
        help="A SQLite export (also .xz, .gz, .zst), a parquetdir or arrowdir folder, or a .nsys-rep.",
    ),
]
Captures = Annotated[
    list[Path],
    typer.Argument(
        metavar="TRACE",
        help="A SQLite export (also .xz, .gz, .zst), a parquetdir or arrowdir folder, or a .nsys-rep; or several.",
    ),
]
OutputFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "-o", "--output", metavar="FILE", help="Write a report here; the suffix picks the format. May be repeated."
    ),
]
OutputFormat = Annotated[
    str | None,
    typer.Option(
        "-f", "--format", metavar="NAME", help="What to print: text, json, markdown, ... (see docs/formats.md)."
    ),
]
Gpu = Annotated[
    int | None,
    typer.Option(metavar="N", help="Look at the steps of this GPU (default: the lowest with decode steps)."),
]
Pid = Annotated[int | None, typer.Option(metavar="PID", help="Look at the steps of this process.")]
Window = Annotated[
    str | None, typer.Option(metavar="START:END", help="Only work that starts in this window, as in 1.2s:1.5s.")
]
Steps = Annotated[str | None, typer.Option(metavar="A:B", help="Only decode steps A to B-1.")]
StepBy = Annotated[
    str | None,
    typer.Option(
        metavar="METHOD",
        help="How to find steps: nvtx:REGEX, kernel:REGEX, nvtx, cadence, sequence, or sequence:N for about N steps.",
    ),
]
Bench = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE", help="What `sglang.bench_serving` or `vllm bench serve` wrote of this program. May be repeated."
    ),
]
Acceptance = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="What no benchmark writes, for scenarios: acceptance/1 JSON (docs/budgets.md)."),
]
_MODEL = typer.Option(
    "--model",
    metavar="NAME|FILE",
    help="A shipped shape (see docs/floor.md), a shape file (.toml) or a Hugging Face config.json.",
)
Model = Annotated[str, _MODEL]
OptionalModel = Annotated[str | None, _MODEL]
Ranks = Annotated[int, typer.Option(metavar="N", min=1, help="Tensor-parallel ranks that share the weights.")]
Context = Annotated[int, typer.Option(metavar="TOKENS", min=0, help="Tokens of context a request has.")]
Batch = Annotated[int, typer.Option(metavar="N", min=1, help="Requests in a step.")]
DraftSteps = Annotated[int, typer.Option(metavar="N", min=0, help="Draft passes a step; 0 without drafts.")]
DraftTokens = Annotated[int, typer.Option(metavar="N", min=1, help="Positions a verify pass has.")]
Bandwidth = Annotated[
    float | None,
    typer.Option(metavar="GB/S", min=0.001, help="Memory bandwidth, instead of the capture's own."),
]
Verbose = Annotated[
    int, typer.Option("-v", "--verbose", count=True, show_default=False, help="Print every quality note and every gap.")
]
UntracedStep = Annotated[
    float | None,
    typer.Option(metavar="MS", help="How long a decode step takes with no profiler: the median."),
]
TokenTime = Annotated[
    float | None,
    typer.Option(metavar="MS", help="Mean time per output token with no profiler, with --accept-length."),
]
BISECT = "--bisect"
ReportUrl = Annotated[str, typer.Option(metavar="URL", help="Where the full report will lie; Markdown links to it.")]
Label = Annotated[str | None, typer.Option(metavar="NAME", help="What was run; only runs of one label are compared.")]
Commit = Annotated[str | None, typer.Option(metavar="SHA", help="The commit that was captured.")]
KnownLabel = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Whose runs in the history; by default those of the capture's own label."),
]
Meta = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Anything else about the run. May be repeated."),
]
HistoryFile = Annotated[
    Path, typer.Option("--history", metavar="FILE", envvar="BUBBLEFINDER_HISTORY", help="The history file.")
]
HISTORY = Path("bubblefinder-history.sqlite")
Json = Annotated[bool, typer.Option("--json", help="Print JSON; the same as -f json.")]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Print no progress and, with -o, no summary.")]


def parse_window(text: str | None) -> tuple[int, int] | None:
    """Return (start_ns, end_ns) for ``1.2s:1.5s``; an empty side means the capture's start or end.

    Raises:
        UsageError: the text is no window.
    """
    if text is None:
        return None
    start, colon, end = text.partition(":")
    first = parse_time(start) if start.strip() else 0
    last = parse_time(end) if end.strip() else 2**62
    if not colon or first is None or last is None or first >= last:
        raise UsageError(f"--window {text!r} is not START:END", hint="for example --window 1.2s:1.5s or 300ms:")
    return first, last


def parse_steps(text: str | None) -> tuple[int, int] | None:
    """Return (first, last) for ``A:B``, B left out as in Python; an empty side means the first or last step.

    Raises:
        UsageError: the text is no range of steps.
    """
    if text is None:
        return None
    start, colon, end = text.partition(":")
    try:
        first, last = int(start or 0), int(end or 2**62)
    except ValueError:
        first, last = 1, 0
    if not colon or first < 0 or first >= last:
        raise UsageError(f"--steps {text!r} is not A:B", hint="for example --steps 2:10 for steps 2 to 9")
    return first, last


def parse_meta(pairs: list[str] | None) -> dict[str, str]:
    """Return the ``key=value`` pairs as a mapping.

    Raises:
        UsageError: a pair has no key or no equals sign.
    """
    found = dict[str, str]()
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not key or not equals:
            raise UsageError(f"--meta {pair!r} is not key=value")
        found[key] = value
    return found


def parse_severity(name: str | None) -> tuple[str, ...]:
    """Return the severities that fail a run with --fail-on NAME: that one and the worse ones.

    Raises:
        UsageError: there is no such severity.
    """
    known = ("high", "medium", "low")
    if name is not None and name not in known:
        raise UsageError(f"--fail-on {name!r} is not a severity", hint="use low, medium or high")
    return () if name is None else known[: known.index(name) + 1]


def refuse_untold(report: Report) -> None:
    """Say by exception, after the report is written, that the capture couldn't answer.

    Raises:
        CannotAnswerError: work is missing, so there is no bubble to tell.
    """
    from bubblefinder.timeline.missing import missing_work

    if missing := missing_work(report.trace.capture_mode, report.quality):
        raise CannotAnswerError(f"{missing.why}, so no bubble can be told", hint=missing.hint)


def load_all(paths: Sequence[Path], *, quiet: bool, launch_shapes: bool = False) -> list[Report]:
    """Return the reports on captures, or those that files hold, showing progress."""
    from bubblefinder.cli.output import stages
    from bubblefinder.compare.source import load

    with stages(quiet=quiet) as progress:
        return [load(path, progress, launch_shapes=launch_shapes) for path in paths]


def today() -> date:
    """Return the day, for waivers."""
    from datetime import UTC, datetime

    return datetime.now(UTC).date()


def question(
    model: str | None,
    load: tuple[int, int, int, int, int],
    bandwidth: float | None,
    benches: Sequence[Path] = (),
    accept_length: float | None = None,
) -> Question:
    """Return what is asked of the floor and of benchmark runs.

    Args:
        model: a shape's name, or a file; null: no floor.
        load: ranks, context, batch, draft steps and draft tokens.
        bandwidth: GB a second, instead of the capture's own.
        benches: files that benchmarks wrote.
        accept_length: tokens a verify pass commits; null: as the benchmarks say.

    Raises:
        UsageError: there is no such shape, or a file is wrong.
    """
    from bubblefinder.economics.shapes import load_shape
    from bubblefinder.economics.traffic import Load
    from bubblefinder.report.economics_build import Question

    ranks, context, batch, draft_steps, draft_tokens = load
    return Question(
        shape=load_shape(model) if model else None,
        load=Load(ranks=ranks, context=context, batch=batch, draft_steps=draft_steps, draft_tokens=draft_tokens),
        bandwidth=bandwidth * 1e9 if bandwidth else None,
        benches=runs_of(benches),
        accept_length=accept_length,
    )


def runs_of(benches: Sequence[Path]) -> tuple[BenchRun, ...]:
    """Return the runs that these files hold.

    Raises:
        UsageError: a file is wrong.
    """
    from bubblefinder.economics.bench import read_bench

    return tuple(run for path in benches for run in read_bench(path))


def results_of(benches: Sequence[Path], acceptance: Path | None) -> Results:
    """Return what is known of serving.

    Raises:
        UsageError: a file is wrong.
    """
    from bubblefinder.compare.scenario import Results
    from bubblefinder.economics.acceptance import read_acceptance

    return Results(benches=runs_of(benches), acceptance=read_acceptance(acceptance) if acceptance else None)


def overhead_source(
    reference: Path | None,
    untraced_step_ms: float | None,
    tokens: tuple[float | None, float | None],
    calibration: Path | None,
) -> Source:
    """Return what is known of the run without a profiler.

    Args:
        reference: a graph-mode capture of the same workload.
        untraced_step_ms: median length of an untraced decode step.
        tokens: mean time per output token in ms, and tokens accepted a step; both or neither.
        calibration: a file that `bubblefinder calibrate` wrote.

    Raises:
        UsageError: a number is not above zero, one of a pair is missing, or the file is no calibration.
        InputError: the reference can't be read.
    """
    from bubblefinder.overhead.calibration import read_calibration
    from bubblefinder.overhead.model import Source
    from bubblefinder.trace.open import open_trace

    step_ns, is_mean = untraced_step(untraced_step_ms, *tokens)
    return Source(
        reference=open_trace(reference) if reference else None,
        untraced_step_ns=step_ns,
        untraced_is_mean=is_mean,
        calibration=read_calibration(calibration) if calibration else None,
    )


def untraced_step(
    step_ms: float | None, tpot_ms: float | None, accept_length: float | None
) -> tuple[float | None, bool]:
    """Return the untraced step in ns, null if it isn't given, and whether it is a mean: a step is a median, a TPOT one.

    Raises:
        UsageError: a number is not above zero, one of a pair is missing, or both a step and a TPOT are given.
    """
    if (tpot_ms is None) != (accept_length is None):
        raise UsageError("--tpot-ms and --accept-length belong together", hint="a step takes their product")
    for value in (step_ms, tpot_ms, accept_length):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise UsageError(f"{value:g} is no length", hint="give a number above zero")
    if tpot_ms is not None and accept_length is not None:
        if step_ms is not None:
            raise UsageError("--untraced-step-ms and --tpot-ms say the same thing", hint="give one of them")
        return tpot_ms * accept_length * NS_PER_MS, True
    return None if step_ms is None else step_ms * NS_PER_MS, False
