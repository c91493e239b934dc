"""`bubblefinder speculation`: whether drafting pays, and how deep."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bubblefinder.cli.arguments import DraftSteps, DraftTokens, Json, OutputFiles, OutputFormat, Quiet, load_all
from bubblefinder.cli.output import Outputs
from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from bubblefinder.economics.speculation import Point
    from bubblefinder.report.model import Report

_META = "--meta draft_steps=3 --meta draft_tokens=4 --meta accept_length=3.11"


def speculation(
    reports: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="TRACE|REPORT",
            help=f"Captures, or reports analysed with {_META}; TPOT is the step without the profiler over accept.",
        ),
    ] = None,
    point: Annotated[
        list[str] | None,
        typer.Option(metavar="STEPS:TOKENS:ACCEPT:TPOT_MS", help="A measured run. May be repeated, also of one depth."),
    ] = None,
    accept_length: Annotated[
        float | None, typer.Option(metavar="N", help="Tokens a step of the captures commits, where they don't say it.")
    ] = None,
    draft_steps: DraftSteps = 0,
    draft_tokens: DraftTokens = 1,
    plain_ms: Annotated[
        float | None, typer.Option(metavar="MS", min=0.000001, help="TPOT of the same workload without speculation.")
    ] = None,
    cost: Annotated[
        float | None,
        typer.Option(
            metavar="C", min=0.000001, help="A round of draft and verify over a plain step, where it is known."
        ),
    ] = None,
    output: OutputFiles = None,
    output_format: OutputFormat = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say whether speculation pays, and how deep to draft.

    An accept length counts the verifier's own token: 1.00 means that no draft token was taken.
    """
    from bubblefinder.economics.speculation import parse_point, sweep, verdict
    from bubblefinder.render.speculation import Speculation

    outputs = Outputs("speculation", "json" if json else output_format, output, quiet=quiet)
    said = {"draft_steps": draft_steps, "draft_tokens": draft_tokens, "accept_length": accept_length}
    asked = {name: str(value) for name, value in said.items() if accept_length is not None}
    points = [parse_point(text) for text in point or ()]
    points += [_measured(report, asked) for report in load_all(reports or (), quiet=quiet)]
    if not points:
        raise UsageError("no run was given", hint="for example --point 3:4:3.11:1.51 --point 4:5:3.37:1.45")
    found = sweep(points)
    best = found.best
    against = verdict(best.accept, best.tpot_ms, plain_ms, cost) if best and (plain_ms or cost) else None
    outputs.emit(Speculation(sweep=found, against=against))


def _measured(report: Report, asked: dict[str, str]) -> Point:
    """Return the run that a report is of: its mean step without the profiler, its depth and its accept length.

    The report's own `meta` counts before what was asked.

    Raises:
        UsageError: it states none, or has no decode step.
    """
    from bubblefinder.economics.speculation import Point, impossible
    from bubblefinder.report.economics_build import captured

    meta, name = asked | report.run.meta, report.trace.name
    known = captured(report)
    step_ns = known.untraced_ns or known.step_ns
    stated = [meta.get(one) for one in ("draft_steps", "draft_tokens", "accept_length")]
    if None in stated or not step_ns:
        raise UsageError(
            f"the report on {name} doesn't say how deep it drafts and what was accepted",
            hint=f"give --accept-length, --draft-steps and --draft-tokens, or analyse the capture with {_META}",
        )
    steps, tokens, accept = (value or "" for value in stated)
    try:
        length = float(accept)
        point = Point(steps=int(steps), tokens=int(tokens), accept=length, tpot_ms=step_ns / 1e6 / length)
    except (ValueError, ZeroDivisionError) as error:
        told = f"{name}: {steps} draft steps, {tokens} positions and an accept length of {accept} are no run"
        raise UsageError(told, hint=f"for example {_META}") from error
    if why := impossible(point):
        told = f"{name}: {accept} tokens can't be accepted of {tokens} with {steps} draft steps: {why}"
        raise UsageError(told, hint="give --accept-length with --draft-steps and --draft-tokens as the engine has them")
    return point
