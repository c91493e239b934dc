"""`bubblefinder floor`: what a decode step has to move at least, and how near the capture comes to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bubblefinder.cli.arguments import Capture, Json, OutputFiles, OutputFormat, Quiet, StepBy
from bubblefinder.errors import CannotAnswerError

if TYPE_CHECKING:
    from bubblefinder.report.model import Report

Model = Annotated[
    str,
    typer.Option(
        metavar="NAME|FILE",
        help="A shipped shape (see docs/floor.md), a shape file (.toml) or a Hugging Face config.json.",
    ),
]


def floor(
    trace: Capture,
    model: Model,
    tp: Annotated[int, typer.Option(metavar="N", min=1, help="Tensor-parallel ranks that share the weights.")] = 1,
    context: Annotated[int, typer.Option(metavar="TOKENS", min=0, help="Tokens of context a request has.")] = 0,
    batch: Annotated[int, typer.Option(metavar="N", min=1, help="Requests in a step.")] = 1,
    draft_steps: Annotated[int, typer.Option(metavar="N", min=0, help="Draft passes a step; 0 without drafts.")] = 0,
    draft_tokens: Annotated[int, typer.Option(metavar="N", min=1, help="Positions a verify pass has.")] = 1,
    bandwidth: Annotated[
        float | None, typer.Option(metavar="GB/S", min=0.001, help="Memory bandwidth, instead of the capture's own.")
    ] = None,
    gpu: Annotated[int | None, typer.Option(metavar="N", help="Look at this GPU.")] = None,
    step_by: StepBy = None,
    output: OutputFiles = None,
    output_format: OutputFormat = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say how long a decode step must take at least, by the bytes that the model has to move.

    Nothing is read from counters: bytes follow from the model's shape, times from the capture.
    """
    from bubblefinder.cli.output import Outputs, stages
    from bubblefinder.economics.floor import floor_of
    from bubblefinder.economics.hardware import bandwidth_of
    from bubblefinder.economics.shape import load_shape
    from bubblefinder.economics.traffic import Load
    from bubblefinder.report.build import Options, analyze_trace
    from bubblefinder.trace.open import open_trace

    outputs = Outputs("floor", "json" if json else output_format, output, quiet=quiet)
    shape = load_shape(model)
    load = Load(ranks=tp, context=context, batch=batch, draft_steps=draft_steps, draft_tokens=draft_tokens)
    with stages(quiet=quiet) as progress:
        capture = open_trace(trace)
        report = analyze_trace(capture, Options(gpu=gpu, step_by=step_by), progress=progress)
    if not report.steps.count:
        raise CannotAnswerError("no decode step was found, so no length can be held against the floor")
    used = next((one for one in capture.info.gpus if one.gpu == report.steps.gpu), None)
    name, recorded = (used.name, used.bandwidth) if used else (None, None)
    limit = bandwidth_of(name, recorded, bandwidth * 1e9 if bandwidth else None)
    outputs.emit(floor_of(shape, load, limit, _lengths(report), _means(report)))


def _lengths(report: Report) -> dict[str, float]:
    """Return how long each role's replays take in a step."""
    return {role.role: role.p50_ns * role.replays_per_step for role in report.steps.roles}


def _means(report: Report) -> dict[str, float | None]:
    return {name: stats.mean for name, stats in report.steps.per_step.items()}
