"""Which recordings answer a question, and the nsys command line of each."""

from __future__ import annotations

import re
import shlex
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from bubblefinder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from bubblefinder.trace.nsys import Nsys

Kind = Literal["graph", "node", "names"]
MODES: Final[dict[str, tuple[Kind, ...]]] = {
    "graph": ("graph",),
    "node": ("node",),
    "both": ("node", "graph"),
    "names": ("graph", "names"),
}
"""The recordings of each mode, that which is analysed first; the other one gives it its reference or its names."""

DURATION_S: Final = 3.0
"""How long is recorded after a delay: some hundred steps of 10 ms."""
_OPTION: Final = re.compile(r"--[a-z][a-z-]+")
_FUNCTIONS: Final = ("--python-functions-trace", "--python-nvtx-annotations")
"""What the option is called, newer name first: 2025.3 and 2023.4 were looked at."""
_GRAPHS_EXPORTED: Final = (2024, 2)
"""The first version seen to export graphs that were recorded whole; 2023.4 drops them."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of a capture.

    Attributes:
        command: the program and its arguments.
        mode: a key of `MODES`.
        stem: where the files go, without a suffix.
        delay_s: seconds to wait before recording; null to record what cudaProfilerStart and Stop enclose.
        duration_s: how long to record after the delay.
        os_calls: trace calls into the operating system as well.
        force: replace files that are there.
    """

    command: tuple[str, ...]
    mode: str
    stem: Path
    delay_s: float | None = None
    duration_s: float = DURATION_S
    os_calls: bool = False
    force: bool = False

    @property
    def functions(self) -> Path:
        """The list of functions to open ranges around."""
        return self.stem.with_name(f"{self.stem.name}.functions.json")


@dataclass(frozen=True, slots=True)
class Recording:
    """One run of the program under nsys; its files are `stem` with a suffix."""

    kind: Kind
    command: tuple[str, ...]
    stem: Path

    @property
    def report(self) -> Path:
        """What nsys writes."""
        return self.stem.with_name(f"{self.stem.name}.nsys-rep")

    @property
    def raw(self) -> Path:
        """What nsys writes where it finds no importer."""
        return self.stem.with_name(f"{self.stem.name}.qdstrm")

    @property
    def export(self) -> Path:
        """What is analysed."""
        return self.stem.with_name(f"{self.stem.name}.sqlite")


@dataclass(frozen=True, slots=True)
class Plan:
    """Recordings, that which is analysed first, and what this nsys can't do for them."""

    recordings: tuple[Recording, ...]
    lacking: tuple[str, ...]

    def analysis(self) -> tuple[str, ...]:
        """Return the command line that analyses them together."""
        first, *others = self.recordings
        beside = {"graph": "--reference", "names": "--names-from"}
        given = [word for other in others for word in (beside[other.kind], str(other.export))]
        return ("bubblefinder", "analyze", str(first.export), *given)

    def script(self) -> list[str]:
        """Return the command lines, one a line, as a shell takes them."""
        export = ("nsys", "export", "--type", "sqlite", "--output")
        lines = [
            shlex.join(line)
            for one in self.recordings
            for line in (one.command, (one.command[0], *export[1:], str(one.export), str(one.report)))
        ]
        return [*lines, shlex.join(self.analysis())]


def plan(wish: Wish, nsys: Nsys | None) -> Plan:
    """Return how to record what is wished with an Nsight Systems; with none, as if it were able to do everything.

    Raises:
        UsageError: the mode is unknown.
    """
    if wish.mode not in MODES:
        raise UsageError(f"--mode {wish.mode!r} is not a mode", hint="use " + ", ".join(MODES))
    known = options_of(nsys) if nsys else None
    several = len(MODES[wish.mode]) > 1
    command = str(nsys.command) if nsys else "nsys"
    recordings = tuple(
        Recording(kind, (command, "profile", *_options(wish, kind, stem, known), *wish.command), stem)
        for kind in MODES[wish.mode]
        for stem in [wish.stem.with_name(f"{wish.stem.name}.{kind}") if several else wish.stem]
    )
    return Plan(recordings, _lacking(wish, nsys, known))


def options_of(nsys: Nsys) -> frozenset[str] | None:
    """Return the options that `nsys profile --help` names; null where it doesn't answer: then nothing is known."""
    try:
        said = subprocess.run(
            [nsys.command, "profile", "--help"], capture_output=True, text=True, timeout=60, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    return frozenset(_OPTION.findall(said)) or None


def _options(wish: Wish, kind: Kind, stem: Path, known: Collection[str] | None) -> list[str]:
    """Return the options of one recording; those that this version doesn't know are left out."""
    trace = "cuda,nvtx,osrt" if wish.os_calls else "cuda,nvtx"
    options = [f"--trace={trace}", f"--cuda-graph-trace={'node' if kind == 'node' else 'graph'}", "--cpuctxsw=none"]
    options.append("--trace-fork-before-exec=true")
    if kind == "names":
        options += ["--sample=process-tree", "--cudabacktrace=all:0", f"{_functions(known)}={wish.functions}"]
    else:
        options.append("--sample=none")
    if wish.delay_s is None:
        options += ["--capture-range=cudaProfilerApi", "--capture-range-end=stop"]
    else:
        options += [f"--delay={wish.delay_s:g}", f"--duration={wish.duration_s:g}"]
    if wish.force:
        options.append("--force-overwrite=true")
    kept = [option for option in options if known is None or option.partition("=")[0] in known]
    return [*kept, f"--output={stem}"]


def _functions(known: Collection[str] | None) -> str:
    return next((name for name in _FUNCTIONS if known is None or name in known), _FUNCTIONS[0])


def _lacking(wish: Wish, nsys: Nsys | None, known: Collection[str] | None) -> tuple[str, ...]:
    """Return what a version can't do of what is wished, one sentence each."""
    if nsys is None or known is None:
        return ()
    version = ".".join(map(str, nsys.version)) or "this version"
    kinds = MODES[wish.mode]
    found = []
    if "--cuda-graph-trace" not in known:
        found.append(f"Nsight Systems {version} can't choose how CUDA graphs are recorded")
    if nsys.version and nsys.version < _GRAPHS_EXPORTED and set(kinds) & {"graph", "names"}:
        found.append(f"Nsight Systems {version} doesn't export graphs that were recorded whole: use --mode node")
    if "names" in kinds and not set(_FUNCTIONS) & set(known):
        found.append(f"Nsight Systems {version} can't open ranges around Python functions: only call chains name calls")
    return tuple(found)
