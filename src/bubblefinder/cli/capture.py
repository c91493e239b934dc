"""`bubblefinder capture`: the nsys line for a question, and with --run the whole way to the answer."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from bubblefinder.cli.output import stages
from bubblefinder.ending import end_by_exception
from bubblefinder.errors import CannotAnswerError, InputError, UsageError

if TYPE_CHECKING:
    from bubblefinder.capture.engines import Engine
    from bubblefinder.capture.plan import Plan, Wish
    from bubblefinder.trace.nsys import Nsys

_COMPUTE: Final = "/nsight-compute/"
"""Where an nsys lies that was seen to find no importer of its own."""

_Command = Annotated[list[str], typer.Argument(metavar="COMMAND", help="The program and its arguments, after --.")]
_Mode = Annotated[
    str,
    typer.Option(
        metavar="MODE",
        help="graph: gaps between graphs, at the least cost. node: those inside too. both: node, with graph as its "
        "reference. names: graph, and a slow run that names its calls.",
    ),
]
_Output = Annotated[Path, typer.Option("-o", "--output", metavar="STEM", help="Where the files go, without a suffix.")]
_Delay = Annotated[
    float | None,
    typer.Option(metavar="S", min=0, help="Record S seconds on, rather than from cudaProfilerStart to Stop."),
]
_Duration = Annotated[
    float | None, typer.Option(metavar="S", min=0.1, help="With --delay, how many seconds to record (default: 3).")
]
_Engine = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="sglang, vllm, tensorrt_llm or pytorch, where the command doesn't show it."),
]
_OsCalls = Annotated[
    bool, typer.Option("--os-calls", help="Trace OS calls too; a PyTorch program then writes gigabytes.")
]
_Nsys = Annotated[Path | None, typer.Option(metavar="PATH", help="The nsys command (default: the one found).")]
_Run = Annotated[bool, typer.Option("--run", help="Run it, export and analyse; otherwise print the commands.")]
_Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]


def capture(
    command: _Command,
    mode: _Mode = "graph",
    output: _Output = Path("decode"),
    delay: _Delay = None,
    duration: _Duration = None,
    engine: _Engine = None,
    os_calls: _OsCalls = False,
    nsys: _Nsys = None,
    run: _Run = False,
    force: _Force = False,
) -> None:
    """Print how to capture a decode run, or with --run do it."""
    from bubblefinder.capture.engines import engine_of
    from bubblefinder.capture.plan import DURATION_S, Wish, plan
    from bubblefinder.trace.nsys import installed_nsys

    if duration is not None and delay is None:
        raise UsageError(
            "--duration needs --delay: without it, cudaProfilerStart and Stop say what is recorded",
            hint="for example --delay 60 --duration 5; --delay 0 records from the start",
        )
    wish = Wish(tuple(command), mode, output, delay, DURATION_S if duration is None else duration, os_calls, force)
    found = installed_nsys(nsys)
    if nsys and found is None:
        raise UsageError(f"{nsys} is no nsys command", hint="name the file, or leave --nsys out")
    planned, known = plan(wish, found), engine_of(command, engine)
    if not run:
        _print(planned, known, wish, found)
        return
    if found is None:
        raise InputError(
            "Nsight Systems wasn't found here",
            hint="install it, name the command with --nsys PATH, or run elsewhere what is printed without --run",
        )
    for sentence in planned.lacking:
        raise UsageError(sentence, hint="or name a newer one with --nsys PATH")
    _run(planned, known, wish, found)


def _print(planned: Plan, engine: Engine, wish: Wish, found: Nsys | None) -> None:
    """Print the commands as a script, what to know first as comments."""
    version = ".".join(map(str, found.version)) if found else ""
    typer.echo(f"# Nsight Systems {version}: {found.command}" if found else "# Nsight Systems wasn't found here.")
    if found and found.importer and _COMPUTE in str(found.command):
        typer.echo(f"# It leaves STEM.qdstrm: before the export, {found.importer} -i STEM.qdstrm -o STEM.nsys-rep")
    for sentence in (*planned.lacking, *(engine.hints if wish.delay_s is None else ())):
        typer.echo(f"# {sentence}")
    typer.echo("# 20 to 100 steps are enough; longer captures overflow the profiler's buffers.")
    if wish.mode == "names":
        typer.echo(shlex.join(["bubblefinder", "rules", "functions", *engine.packs, "-o", str(wish.functions)]))
    for line in planned.script():
        typer.echo(line)


def _run(planned: Plan, engine: Engine, wish: Wish, nsys: Nsys) -> None:
    """Record, export and analyse."""
    from bubblefinder.capture.take import check_free, take
    from bubblefinder.render.formats import write_whole
    from bubblefinder.rules.functions import functions_file
    from bubblefinder.rules.packs import load_packs

    check_free(planned, wish)
    if wish.mode == "names":
        write_whole(wish.functions, functions_file(load_packs(()), engine.packs).encode())
    end_by_exception()
    for recording in planned.recordings:
        typer.echo(f"recording {recording.report}", err=True)
        with stages(quiet=False) as progress:
            take(recording, nsys, progress)
    first, *others = planned.recordings
    reports = [wish.stem.with_name(f"{wish.stem.name}.report.{suffix}") for suffix in ("html", "json")]
    _analyse(first.export, {other.kind: other.export for other in others}, reports)


def _analyse(export: Path, beside: dict[str, Path], reports: list[Path]) -> None:
    """Analyse what was recorded with what was recorded beside it, or without where that can't be used."""
    from bubblefinder.cli.analyze import analyze

    try:
        analyze([export], output=reports, reference=beside.get("graph"), names_from=beside.get("names"))
    except CannotAnswerError as error:
        if not beside:
            raise
        typer.echo(f"{error}: analysed without it", err=True)
        analyze([export], output=reports)
