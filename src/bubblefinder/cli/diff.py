"""`bubblefinder diff`: what changed between two captures, and whether it is real."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bubblefinder.cli import usage
from bubblefinder.cli.arguments import (
    BISECT,
    Json,
    KnownLabel,
    OutputFiles,
    OutputFormat,
    Quiet,
    ReportUrl,
    load_all,
    runs_of,
)
from bubblefinder.cli.output import Outputs
from bubblefinder.errors import EXIT_GATE, EXIT_INPUT, UsageError, for_bisect
from bubblefinder.units import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bubblefinder.compare.diff import Options
    from bubblefinder.compare.metrics import Key
    from bubblefinder.compare.model import Diff
    from bubblefinder.compare.noise import Spread
    from bubblefinder.economics.bench import Bench
    from bubblefinder.report.model import Report

_SIDES = ("--base", "--head")


class Command(usage.Command):
    """Lets `--base A1 A2 A3` take several values, as `--base A1 --base A2 --base A3` does."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - the context is typer's own
        """Repeat the option before each of its values."""
        return super().parse_args(ctx, spread_sides(args))


def spread_sides(args: list[str]) -> list[str]:
    """Return the arguments with --base and --head repeated before each value up to the next option."""
    spread, side = list[str](), ""
    for argument in args:
        if argument.startswith("-") and argument != "-":
            side = argument if argument in _SIDES else ""
            spread += [] if side else [argument]
        else:
            spread += [side, argument] if side else [argument]
    return spread


_Captures = Annotated[
    list[Path] | None, typer.Argument(metavar="BASE HEAD", help="Two captures, report JSONs or HTML reports.")
]
_Base = Annotated[list[Path] | None, typer.Option(metavar="PATH...", help="Several captures of the base side.")]
_Head = Annotated[list[Path] | None, typer.Option(metavar="PATH...", help="Several captures of the head side.")]
_Gate = Annotated[
    list[str] | None,
    typer.Option(
        "--gate",
        metavar="METRIC",
        help="Fail if this metric is worse (default: the mean, median and tail of a step). May be repeated.",
    ),
]
_InterOnly = Annotated[
    bool,
    typer.Option("--inter-only", help="Compare only the idle time between replays, which node and graph mode share."),
]
_FloorGpu = Annotated[
    str, typer.Option(metavar="SHARE", help="Difference that means nothing for steps bound by the GPU.")
]
_FloorHost = Annotated[
    str, typer.Option(metavar="SHARE", help="Difference that means nothing for steps bound by the host.")
]
_History = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Take the spread between captures from the runs in this history file."),
]
_Bench = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Results of a benchmark, given twice: those of base, then those of head."),
]
_Bisect = Annotated[
    bool,
    typer.Option(BISECT, help="Answer as `git bisect run` wants it: 125 for what can't be told, 128 to stop."),
]


def diff(
    captures: _Captures = None,
    base: _Base = None,
    head: _Head = None,
    output: OutputFiles = None,
    output_format: OutputFormat = None,
    json: Json = False,
    gate: _Gate = None,
    inter_only: _InterOnly = False,
    floor_gpu: _FloorGpu = "1%",
    floor_host: _FloorHost = "10%",
    history: _History = None,
    label: KnownLabel = None,
    bench: _Bench = None,
    report_url: ReportUrl = "",
    bisect: _Bisect = False,
    quiet: Quiet = False,
) -> None:
    """Compare two captures, or several a side, per step. Exit 1 if head is worse, 3 if they can't be compared."""
    from bubblefinder.compare.diff import diff as compare
    from bubblefinder.compare.source import labelled
    from bubblefinder.report.economics_build import with_benches

    outputs = Outputs("diff", "json" if json else output_format, output, quiet=quiet)
    sides = _sides(captures or [], base or [], head or [])
    results = _benches(bench or [])
    before, after = (
        [with_benches(report, runs) for report in load_all(side, quiet=quiet, launch_shapes=True)]
        for side, runs in zip(sides, results, strict=True)
    )
    options = _options(
        gate or [], (floor_gpu, floor_host), labelled(before[0], label=label), history, inter_only=inter_only
    )
    result = compare(before, after, options)
    outputs.emit(result, url=report_url)
    raise typer.Exit(for_bisect(exit_code(result)) if bisect else exit_code(result))


def exit_code(result: Diff) -> int:
    """Return 1 for a worse gated metric, 3 for what can't be compared or told, else 0."""
    from bubblefinder.compare.diff import failed

    if result.verdict in {"incomparable", "can't tell"}:
        return EXIT_INPUT
    return EXIT_GATE if failed(result) else 0


def _sides(captures: list[Path], base: list[Path], head: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the paths of each side, however they were given."""
    if captures and not base and not head and len(captures) == 2:  # noqa: PLR2004 - BASE and HEAD
        return captures[:1], captures[1:]
    if captures or not base or not head:
        raise UsageError(
            "give BASE and HEAD, or --base with --head",
            hint="as in `bubblefinder diff before.sqlite after.sqlite` or `--base A1 A2 A3 --head B1 B2 B3`",
        )
    return base, head


def _benches(files: list[Path]) -> tuple[tuple[Bench, ...], ...]:
    """Return the benchmark runs of each side; none without files."""
    if len(files) not in {0, 2}:
        raise UsageError(
            f"--bench is given {plural(len(files), 'time')}; give it twice",
            hint="the results of base first, then those of head: `--bench before.jsonl --bench after.jsonl`",
        )
    return tuple(runs_of([file]) for file in files) or ((), ())


def _options(
    gates: list[str], floors: tuple[str, str], base: Report, history: Path | None, *, inter_only: bool
) -> Options:
    from bubblefinder.compare.diff import Options
    from bubblefinder.compare.noise import Floors

    gpu, host = (_floor(text) for text in floors)
    return Options(
        gates=frozenset(gates),
        inter_only=inter_only,
        floors=Floors(gpu=gpu, host=max(gpu, host)),
        known=_spreads(history, base) if history else {},
    )


def _spreads(history: Path, report: Report) -> Mapping[Key, Spread]:
    """Return the spread between the stored runs of the base's kind, or say that there are none."""
    from bubblefinder.compare.history import spreads
    from bubblefinder.compare.store import open_store

    with open_store(history) as database:
        known = spreads(database, report)
    if not known:
        typer.echo(f"no run in {history} is comparable with base; name the runs to take with --label", err=True)
    return known


def _floor(text: str) -> float:
    from bubblefinder.compare.limit_syntax import parse_share

    try:
        floor = parse_share(text)
    except ValueError as error:
        raise UsageError(str(error), hint="for example --floor-host 10%") from error
    if not 0 <= floor < 1:
        raise UsageError(f"a floor of {text} is not between 0 and 100 %", hint="for example --floor-host 10%")
    return floor
