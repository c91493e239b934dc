"""One table for captures of every shape: `python -m benchmarks.shapes FOLDER --kernels 200000`.

Makes each capture in the folder unless it is there, and times on it, in turns: the floor, the standard library, the
whole analysis, and the gap queries of Nsight Systems and of nsys-ai where they are installed. See README.md.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.generate import Shape, generate
from benchmarks.load import ANALYZE, FLOOR, PLAIN, commands, measured, warm

if TYPE_CHECKING:
    from benchmarks.load import Run

NSYS = "nsys analyze"
NSYS_AI = "nsys-ai"
OTHERS = {
    NSYS: ["nsys", "analyze", "--rule", "gpu_gaps:gap=1:rows=1000"],
    NSYS_AI: ["nsys-ai", "skill", "run", "gpu_idle_gaps"],
}
KERNELS_OF_A_GPU = 100


def shapes(kernels: int) -> dict[str, Shape]:
    """What is made, by name, for so many kernels."""
    return {
        "replays": Shape(),
        "eager": Shape(nodes=0, eager=1_600, ranges=0),
        "ranks": Shape(nodes=16, eager=24, gpus=8, ranges=8),
        "short": Shape(nodes=0, eager=40, ranges=0),
        "nvtx": Shape(nodes=0, eager=400, ranges=400),
        "streams": Shape(nodes=0, eager=800, streams=400, ranges=0),
        "gpus": Shape(nodes=0, eager=50, gpus=max(kernels // KERNELS_OF_A_GPU, 2), ranges=0),
    }


def times(path: Path, repeat: int) -> dict[str, list[Run]]:
    """Run everything in turns, after reading the file once."""
    with tempfile.TemporaryDirectory() as folder:
        ours = commands(path, Path(folder) / "report.json")
        warm(path)
        runs: dict[str, list[Run]] = {}
        for _ in range(repeat):
            for name in (FLOOR, PLAIN, ANALYZE):
                runs.setdefault(name, []).append(measured(ours[name]))
            for name, command in OTHERS.items():
                if shutil.which(command[0]):
                    runs.setdefault(name, []).append(on_a_copy(command, path))
    return runs


def on_a_copy(command: list[str], path: Path) -> Run:
    """Run the gap query of another tool on a copy: nsys-ai adds an index to the file, or keeps files beside it."""
    with tempfile.TemporaryDirectory() as folder:
        return measured([*command, shutil.copy(path, folder)])


def row(name: str, runs: dict[str, list[Run]], kernels: int) -> str:
    """One line of the table: processor seconds, and of the analysis its ratio and its peak."""
    taken = {what: statistics.median(run.processor for run in found) for what, found in runs.items()}
    peak = max(run.megabytes for run in runs[ANALYZE])
    of_others = "".join(f"{taken[what]:10.2f}" if what in taken else f"{'-':>10}" for what in (NSYS, NSYS_AI))
    ratio = taken[ANALYZE] / taken[PLAIN]
    each = peak * 1e6 / kernels
    ours = f"{taken[ANALYZE]:10.2f}{ratio:7.2f}{peak:8.0f}{each:7.0f}"
    return f"{name:<9}{taken[FLOOR]:8.2f}{taken[PLAIN]:9.2f}{ours}{of_others}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kernels", type=int, default=200_000, help="about so many in each capture")
    parser.add_argument("--repeat", type=int, default=3, help="how often each is run; the median counts")
    parser.add_argument("--shape", action="append", help="only this one. May be repeated.")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print("processor seconds, medians; MB at the peak of the analysis, and bytes a kernel")
    print(f"{'shape':<9}{'floor':>8}{'stdlib':>9}{'analyze':>10}{'ratio':>7}{'MB':>8}{'B':>7}{'nsys':>10}{NSYS_AI:>10}")
    for name, shape in shapes(given.kernels).items():
        if given.shape and name not in given.shape:
            continue
        path = given.folder / f"{name}-{given.kernels}.sqlite"
        if not path.exists():
            generate(path, given.kernels, shape)
        print(row(name, times(path, given.repeat), given.kernels), flush=True)


if __name__ == "__main__":
    main()
