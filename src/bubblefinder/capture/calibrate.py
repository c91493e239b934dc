"""Calibration runs: the workload played with no profiler, in graph mode and in node mode, on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.capture.plan import Recording
from bubblefinder.capture.take import take
from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from bubblefinder.capture.plan import Kind
    from bubblefinder.trace.nsys import Nsys

_WORKLOAD: Final = (sys.executable, "-m", "bubblefinder.capture.workload")
_TIMEOUT_S: Final = 600


@dataclass(frozen=True, slots=True)
class Played:
    """What the workload measured in each kind of run, and one node-mode export that names the collector."""

    untraced: list[Mapping[str, Any]]
    graph: list[Mapping[str, Any]]
    node: list[Mapping[str, Any]]
    export: Path


def play(nsys: Nsys, folder: Path, repeats: int, progress: Callable[[str], None] = lambda _: None) -> Played:
    """Play the workload `repeats` times in each kind of run, alternating, and return the measurements.

    Exports and measurements go to the folder; `progress` is called with what runs next.

    Raises:
        CannotAnswerError: Nsight Systems recorded nothing.
        InputError: it can't be run.
        UsageError: the workload failed, or the export.
    """
    played = Played([], [], [], folder / "node0.sqlite")
    for number in range(repeats):
        progress(f"no profiler, run {number + 1} of {repeats}")
        played.untraced.append(_untraced(folder / f"untraced{number}.json"))
        progress(f"graph mode, run {number + 1} of {repeats}")
        played.graph.append(_traced(nsys, folder / f"graph{number}", "graph"))
        progress(f"node mode, run {number + 1} of {repeats}")
        played.node.append(_traced(nsys, folder / f"node{number}", "node"))
    return played


def _untraced(output: Path) -> Mapping[str, Any]:
    done = subprocess.run([*_WORKLOAD, str(output)], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise UsageError(
            f"the calibration workload failed: {said[-1] if said else 'it said nothing'}",
            hint="it needs an NVIDIA GPU that nothing else uses, and its driver",
        )
    return _read(output)


def _traced(nsys: Nsys, stem: Path, mode: Kind) -> Mapping[str, Any]:
    output = stem.with_suffix(".json")
    command = _profiled(nsys, stem, mode, [*_WORKLOAD, str(output)])
    take(Recording(mode, command, stem), nsys, lambda _: None, is_shown=False)
    return _read(output)


def _profiled(nsys: Nsys, stem: Path, mode: Kind, program: Sequence[str]) -> tuple[str, ...]:
    """Return the command that records the profiler range of a program."""
    options = ("-c", "cudaProfilerApi", "--capture-range-end=stop", "--sample=none", "--cpuctxsw=none", "--trace=cuda")
    written = (f"--cuda-graph-trace={mode}", "-f", "true", "-o", str(stem))
    return (str(nsys.command), "profile", *options, *written, *program)


def _read(output: Path) -> Mapping[str, Any]:
    try:
        found: Mapping[str, Any] = json.loads(output.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(
            "the calibration workload failed under the profiler",
            hint="run `bubblefinder calibrate` again, with the GPU idle",
        ) from error
    return found
