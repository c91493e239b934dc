"""`bubblefinder calibrate`: what this machine's profiler costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bubblefinder.cli.output import stages
from bubblefinder.ending import end_by_exception, temporary_folder
from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from bubblefinder.overhead.model import Calibration, Cost


def calibrate(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where to write the calibration.")
    ] = Path("calibration.json"),
    nsys: Annotated[
        Path | None, typer.Option(metavar="PATH", help="The nsys command to measure (default: the one on PATH).")
    ] = None,
    repeats: Annotated[
        int, typer.Option(metavar="N", min=1, max=20, help="Runs of each kind; more show more of the spread.")
    ] = 2,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print no progress and no summary.")] = False,
) -> None:
    """Measure what Nsight Systems costs on this GPU.

    Plays a small workload of CUDA graphs and eager launches with no profiler, in graph mode and in node mode. It takes
    about half a minute a repeat and needs the GPU to itself. `analyze --calibration` corrects by the file it writes.
    """
    from bubblefinder.capture.calibrate import play
    from bubblefinder.capture.take import find_nsys

    if not output.absolute().parent.is_dir():
        raise UsageError(f"{output.parent} is no folder", hint="make it, or choose another path")
    end_by_exception()
    found = find_nsys(nsys)
    with temporary_folder() as folder, stages(quiet=quiet) as progress:
        played = play(found, folder, repeats, progress)
        calibration = _fitted(played.untraced, played.graph, played.node, played.export)
    _write(output, calibration)
    if not quiet:
        typer.echo(_summary(calibration, output))


def _fitted(untraced: list, graph: list, node: list, export: Path) -> Calibration:  # type: ignore[type-arg]
    from bubblefinder.overhead.fit import Runs, fit
    from bubblefinder.trace.open import open_trace

    info = open_trace(export).info
    if info.cupti_version is None or info.driver_version is None:
        raise UsageError(
            "this Nsight Systems doesn't record which CUPTI it loaded, so its costs couldn't be matched to captures",
            hint="use Nsight Systems 2024.2 or later",
        )
    runs = Runs(untraced=untraced, graph=graph, node=node)
    return fit(runs, driver=info.driver_version, cupti=info.cupti_version, nsys=info.nsys_version)


def _write(output: Path, calibration: Calibration) -> None:
    from bubblefinder.overhead.calibration import encode_calibration
    from bubblefinder.render.formats import write_whole

    write_whole(output, encode_calibration(calibration))


def _summary(calibration: Calibration, output: Path) -> str:
    node = calibration.node
    lines = [
        f"{calibration.gpu}, CUPTI {calibration.cupti}, driver {calibration.driver}: node mode adds",
        f"  to the GPU, a kernel node    {_said(node.kernel_node)}",
        f"  to the GPU, a memset node    {_said(node.memset_node)}",
        f"  to the GPU, a graph replay   {_said(node.replay)}",
        f"  to the GPU, an eager launch  {_said(node.eager_operation)}",
        f"  to the host, a launch call   {_said(node.kernel_call)}",
        f"written to {output}; use it with: bubblefinder analyze TRACE --calibration {output}",
    ]
    return "\n".join(lines)


def _said(cost: Cost) -> str:
    return f"{cost.value:7.0f} ns  ({cost.low:.0f} to {cost.high:.0f})"
