"""`bubblefinder analyze`: the verdict on one capture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bubblefinder.cli.arguments import (
    Bandwidth,
    Batch,
    Bench,
    Captures,
    Commit,
    Context,
    DraftSteps,
    DraftTokens,
    Gpu,
    Json,
    Label,
    Meta,
    OptionalModel,
    OutputFiles,
    OutputFormat,
    Pid,
    Quiet,
    Ranks,
    ReportUrl,
    StepBy,
    Steps,
    TokenTime,
    UntracedStep,
    Verbose,
    Window,
    overhead_source,
    parse_meta,
    parse_severity,
    parse_steps,
    parse_window,
    question,
    refuse_untold,
)
from bubblefinder.cli.output import Outputs, stages
from bubblefinder.errors import EXIT_GATE, EXIT_OK
from bubblefinder.units import plural, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.report.build import Options

_Select = Annotated[list[str] | None, typer.Option(metavar="RULE", help="Only these rules or packs. May be repeated.")]
_Ignore = Annotated[list[str] | None, typer.Option(metavar="RULE", help="Not these rules or packs. May be repeated.")]
_Rules = Annotated[
    list[Path] | None, typer.Option(metavar="DIR", help="A folder of your own rule packs. May be repeated.")
]
_FailOn = Annotated[
    str | None, typer.Option(metavar="SEVERITY", help="Exit with 1 if a finding is low, medium or high, or worse.")
]
_Reference = Annotated[
    Path | None, typer.Option(metavar="TRACE", help="The same workload captured in graph mode, to correct by.")
]
_AcceptLength = Annotated[
    float | None, typer.Option(metavar="N", help="Tokens accepted a step; a step takes --tpot-ms times this.")
]
_Calibration = Annotated[
    Path | None, typer.Option(metavar="FILE", help="What `bubblefinder calibrate` measured on that machine.")
]
_NamesFrom = Annotated[
    Path | None, typer.Option(metavar="TRACE", help="The same program with call chains, to name this one's calls.")
]


def analyze(
    traces: Captures,
    output: OutputFiles = None,
    output_format: OutputFormat = None,
    json: Json = False,
    gpu: Gpu = None,
    pid: Pid = None,
    window: Window = None,
    steps: Steps = None,
    step_by: StepBy = None,
    select: _Select = None,
    ignore: _Ignore = None,
    rules: _Rules = None,
    fail_on: _FailOn = None,
    reference: _Reference = None,
    untraced_step_ms: UntracedStep = None,
    tpot_ms: TokenTime = None,
    accept_length: _AcceptLength = None,
    calibration: _Calibration = None,
    names_from: _NamesFrom = None,
    model: OptionalModel = None,
    tp: Ranks = 1,
    context: Context = 0,
    batch: Batch = 1,
    draft_steps: DraftSteps = 0,
    draft_tokens: DraftTokens = 1,
    bandwidth: Bandwidth = None,
    bench: Bench = None,
    label: Label = None,
    commit: Commit = None,
    meta: Meta = None,
    report_url: ReportUrl = "",
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    """Say how much of a decode step the GPU idled, and why.

    Several captures, a folder or a quoted pattern give a line each; -f and -o then mean them side by side, and the exit
    code is the highest of any. To keep a report of each: bubblefinder batch.
    """
    from bubblefinder.fleet.find import several

    failing, form = parse_severity(fail_on), "json" if json else output_format
    captures = several(traces)
    outputs = Outputs("fleet" if captures else "report", form, output, quiet=quiet)
    with stages(quiet=quiet):
        from bubblefinder.report.build import Options, analyze_trace
        from bubblefinder.report.model import Run
        from bubblefinder.rules.config import find_config, load_config
        from bubblefinder.trace.open import open_trace

        config = load_config(find_config(Path.cwd()))
        options = Options(
            gpu=gpu,
            pid=pid,
            window=parse_window(window),
            steps=parse_steps(steps),
            step_by=step_by,
            run=Run(label=label, commit=commit, meta=parse_meta(meta)),
            rules=config.override(select=select or (), ignore=ignore or (), rules=rules or ()),
            overhead=overhead_source(reference, untraced_step_ms, (tpot_ms, accept_length), calibration),
            economics=question(
                model, (tp, context, batch, draft_steps, draft_tokens), bandwidth, bench or (), accept_length
            ),
            names_from=open_trace(names_from) if names_from else None,
        )
    if captures:
        raise typer.Exit(_several(captures, options, failing, outputs, quiet=quiet, verbose=verbose > 0))
    with stages(quiet=quiet) as progress:
        report = analyze_trace(open_trace(traces[0], progress=progress), options, progress=progress)
    outputs.emit(report, url=report_url, verbose=verbose > 0)
    refuse_untold(report)
    if any(finding.severity in failing for finding in report.findings):
        raise typer.Exit(EXIT_GATE)


def _several(
    paths: Sequence[Path],
    options: Options,
    failing: Sequence[str],
    outputs: Outputs,
    *,
    quiet: bool,
    verbose: bool,
) -> int:
    """Analyse captures one after the other and put them side by side; return the highest exit code of any.

    Findings of the severities `failing` fail a capture; `verbose` prints the whole report of each with its line.
    """
    from bubblefinder.fleet.analyse import analyse, side_by_side
    from bubblefinder.render.fleet import line, sheet
    from bubblefinder.report.json import decode

    done = []
    for place, path in enumerate(paths, 1):
        with stages(quiet=quiet) as progress:
            progress(f"{path.name} ({place} of {len(paths)})")
            one = analyse(str(path), options)
        done.append(one)
        outputs.tell(line(one), decode(one.report) if verbose and one.report else None)
    fleet = side_by_side(done)
    outputs.tell(sheet(fleet).headline)
    outputs.emit(fleet)
    gated = [one.path for one in done if not one.severities.isdisjoint(failing)]
    if gated:
        names = ", ".join(printable(path, 200) for path in gated)
        typer.echo(f"{plural(len(gated), 'capture')} with findings that --fail-on is for: {names}", err=True)
    return max(EXIT_GATE if gated else EXIT_OK, *(one.code for one in done))
