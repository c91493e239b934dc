"""`bubblefinder whatif`: how long the step would be without this or that."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bubblefinder.cli.arguments import (
    Capture,
    Gpu,
    Json,
    OutputFiles,
    OutputFormat,
    Pid,
    Quiet,
    StepBy,
    TokenTime,
    UntracedStep,
    untraced_step,
)
from bubblefinder.cli.output import Outputs, stages
from bubblefinder.errors import CannotAnswerError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.fixes import Fix
    from bubblefinder.replay.study import Study
    from bubblefinder.timeline.rank import Rank

_Remove = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIX",
        help="Do this fix: its number in the list, a part of its name, or `all` waits. May be repeated.",
    ),
]
_HostSpeed = Annotated[float | None, typer.Option(metavar="K", min=0.01, help="The host works K times as fast.")]
_FreeLaunches = Annotated[bool, typer.Option("--free-launches", help="Launch calls take no time.")]
_CloseGaps = Annotated[
    float | None,
    typer.Option(metavar="PERCENT", min=0, max=100, help="Gaps inside graphs shrink by this: a bound."),
]
_DropKernels = Annotated[
    list[str] | None,
    typer.Option(metavar="REGEX", help="Kernels with such names are gone: a bound. May be repeated."),
]
_NoProfiler = Annotated[
    bool, typer.Option("--no-profiler", help="The profiler costs nothing, as far as that is known.")
]
_Calibration = Annotated[
    Path | None, typer.Option(metavar="FILE", help="What `bubblefinder calibrate` measured: what tracing costs.")
]
_AcceptLength = Annotated[
    float | None, typer.Option(metavar="N", min=0.01, help="Tokens accepted a step, to show tokens per second.")
]


def whatif(
    trace: Capture,
    remove: _Remove = None,
    host_speed: _HostSpeed = None,
    free_launches: _FreeLaunches = False,
    close_gaps: _CloseGaps = None,
    drop_kernels: _DropKernels = None,
    no_profiler: _NoProfiler = False,
    untraced_step_ms: UntracedStep = None,
    tpot_ms: TokenTime = None,
    calibration: _Calibration = None,
    accept_length: _AcceptLength = None,
    gpu: Gpu = None,
    pid: Pid = None,
    step_by: StepBy = None,
    output: OutputFiles = None,
    output_format: OutputFormat = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the decode step after a fix, or with a faster host.

    Without options: every fix by itself, and the order in which they pay most. With options: all
    that they ask for together, since gains don't add up. Given how long a step takes with no
    profiler, all is answered for a host as fast as that shows it.
    """
    from bubblefinder.pipeline import Analysis
    from bubblefinder.replay.answer import answer, untraced_answer
    from bubblefinder.replay.changes import FreeLaunches, HostSpeed
    from bubblefinder.trace.open import open_trace

    outputs = Outputs("prediction", "json" if json else output_format, output, quiet=quiet)
    step_ns, is_mean = untraced_step(untraced_step_ms, tpot_ms, None if tpot_ms is None else accept_length)
    if step_ns is not None and no_profiler:
        raise UsageError("the untraced step and --no-profiler both take the profiler away", hint="give one of them")
    with stages(quiet=quiet) as progress:
        study = Analysis(open_trace(trace, progress=progress), step_by=step_by, progress=progress).study
    rank = _rank(study, gpu, pid)
    if step_ns is not None:
        study = study.at_untraced(rank, step_ns, calibration, mean=is_mean)
    changes: list[Change] = [fix.change for fix in _chosen(study.fixes, remove or [])]
    changes += [HostSpeed(host_speed)] if host_speed is not None else []
    changes += [FreeLaunches()] if free_launches else []
    changes += [study.close_gaps(close_gaps / 100)] if close_gaps is not None else []
    changes += [study.drop_kernels(pattern) for pattern in drop_kernels or ()]
    if no_profiler and not changes:
        outputs.emit(untraced_answer(study, rank, calibration, accept_length))
        return
    changes += [study.without_profiler(rank, calibration)] if no_profiler else []
    outputs.emit(answer(study, rank, changes, accept_length))


def _rank(study: Study, gpu: int | None, pid: int | None) -> Rank:
    """Return the rank to predict for."""
    fitting = [rank for rank in study.ranks if gpu in (None, rank.gpu) and pid in (None, rank.pid)]
    if not fitting:
        there = ", ".join(f"GPU {rank.gpu} with process {rank.pid}" for rank in study.ranks)
        raise CannotAnswerError("the GPU or process asked for has no decode steps here", hint=f"there is {there}")
    return fitting[0]


def _chosen(fixes: Sequence[Fix], asked: list[str]) -> list[Fix]:
    """Return the fixes that are asked for by number, by a part of their name, or as `all` waits.

    Raises:
        UsageError: one fits none, or more than one.
    """
    chosen: list[Fix] = []
    for text in asked:
        if text == "all":
            chosen += [fix for fix in fixes if fix.subjects and fix not in chosen]
            continue
        fitting = [fix for number, fix in enumerate(fixes, 1) if text == str(number)]
        fitting = fitting or [fix for fix in fixes if text.casefold() in fix.name.casefold()]
        if not fitting:
            known = "; ".join(f"{number} {fix.name}" for number, fix in enumerate(fixes, 1))
            raise UsageError(f"--remove {text!r} fits no fix", hint=f"there is: {known}" if known else "there is none")
        if len(fitting) > 1:
            fits = ", ".join(fix.name for fix in fitting)
            raise UsageError(f"--remove {text!r} fits {len(fitting)} fixes: {fits}", hint="give the number instead")
        chosen += [fix for fix in fitting if fix not in chosen]
    return chosen
