"""`bubblefinder floor`: what a decode step has to move at least, and how near the capture comes to it."""

from __future__ import annotations

from bubblefinder.cli.arguments import (
    Bandwidth,
    Batch,
    Capture,
    Context,
    DraftSteps,
    DraftTokens,
    Gpu,
    Json,
    Model,
    OutputFiles,
    OutputFormat,
    Quiet,
    Ranks,
    StepBy,
    question,
)
from bubblefinder.cli.output import Outputs, stages
from bubblefinder.errors import CannotAnswerError


def floor(
    trace: Capture,
    model: Model,
    tp: Ranks = 1,
    context: Context = 0,
    batch: Batch = 1,
    draft_steps: DraftSteps = 0,
    draft_tokens: DraftTokens = 1,
    bandwidth: Bandwidth = None,
    gpu: Gpu = None,
    step_by: StepBy = None,
    output: OutputFiles = None,
    output_format: OutputFormat = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say how long a decode step must take at least.

    It has to move the bytes of the model that it touches.

    Nothing is read from counters: bytes follow from the model's shape, times from the capture.
    """
    from bubblefinder.report.build import Options, analyze_trace
    from bubblefinder.report.economics_build import floor_under
    from bubblefinder.trace.open import open_trace

    outputs = Outputs("floor", "json" if json else output_format, output, quiet=quiet)
    asked = question(model, (tp, context, batch, draft_steps, draft_tokens), bandwidth)
    with stages(quiet=quiet) as progress:
        capture = open_trace(trace)
        report = analyze_trace(capture, Options(gpu=gpu, step_by=step_by), progress=progress)
    if not report.steps.count or asked.shape is None:
        raise CannotAnswerError("no decode step was found, so no length can be held against the floor")
    outputs.emit(floor_under(report, capture.info, asked.shape, asked))
