"""Captures drawn with letters, for the cases of rules and for tests.

One row a track, one character a slice of time, a dot or a blank for nothing; a run of one letter is
one event. A letter on an `api` row is the call that launches the operation of the same letter on a
`gpu` row: of one process, the first call launches the first run, the second call the second.

```
nvtx     | [step 0      ][step 1      ]
api      | GG C...........GG C..........
gpu0 s7  | ..aabb.c........aabb.c.......
gpu0 s7  | ......d...........d..........
gpu0 s14 | ...........C.............C...
G = graph 5 a b c d
C = copy DtoH 8 pageable via cudaMemcpy at resolve
```

Tracks: ``api`` and ``api2`` are threads, ``gpu1 s7`` a device and a stream (several rows of one stream
where its operations overlap), ``nvtx`` ranges in brackets, ``profiler`` its overhead, ``os`` the
operating system's calls, ``off`` when a thread was off its CPU, ``nodes`` the creation of graph nodes,
the last five of thread 1 unless numbered; ``p2`` in front of any names another process. What a letter
means:

* nothing said: a kernel called by its letter; ``kernel NAME``, or ``kernel NAME *900`` for so many side by side in each
  of its runs, and as many calls in each run of its calls; ``memset BYTES``;
* ``copy DtoH BYTES [pageable|pinned|managed]``;
* ``graph [ID]``: one record a launch; with letters behind it, these are its nodes (``a*3``: three of it);
* an API's name: a call that launches nothing on record; waits and events take ``s7`` and ``e3``;
* ``name TEXT`` on a profiler or os row.

Each of them may end with ``via API``, ``fails CODE`` and ``at FRAME`` (repeated: innermost first).
"""

from __future__ import annotations

import re
import shlex
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from bubblefinder.errors import UsageError
from bubblefinder.trace import model
from bubblefinder.trace.sketch import Sketch, process_key, thread_key

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEGEND: Final = re.compile(r"([A-Za-z0-9])\s*=\s*(.+)")
_TRACK: Final = re.compile(
    r"(?:p(?P<process>\d+) +)?(?P<role>api|gpu|nvtx|profiler|os|off|nodes)(?P<number>\d*)(?: +s(?P<stream>\d+))?"
)
_RUN: Final = re.compile(r"([A-Za-z0-9])\1*")
_RANGE: Final = re.compile(r"\[([^\]]*)\]")
_ENDING: Final = re.compile(r"via|at|fails|([se])(\d+)")
_EXTRAS: Final = {"fails": "return_value", "s": "stream", "e": "event"}
_NODE: Final = re.compile(r"([A-Za-z])(?:\*(\d+))?")
_MANY: Final = re.compile(r"\*(\d+)")
_API: Final = re.compile(r"cu(?:da)?[A-Z]\w+")
_KINDS: Final = {"kernel": model.KERNEL, "copy": model.MEMCPY, "memset": model.MEMSET, "graph": model.GRAPH}
_APIS: Final = {
    "kernel": "cudaLaunchKernel_v7000",
    "copy": "cudaMemcpyAsync_v3020",
    "memset": "cudaMemsetAsync_v3020",
    "graph": "cudaGraphLaunch_v10000",
}
_COPY_KINDS: Final = {text: kind for kind, text in model.COPY_KINDS.items()}
_MEMORY_KINDS: Final = {text: kind for kind, text in model.MEMORY_KINDS.items()}
_DEVICE: Final = _MEMORY_KINDS["device"]


@dataclass(slots=True)
class _Meaning:
    """What a letter stands for: columns of its operation, how many a run is, a graph's nodes, its call."""

    kind: str
    values: dict[str, object] = field(default_factory=dict)
    count: int = 1
    nodes: Counter[str] = field(default_factory=Counter)
    api: str = ""
    extras: dict[str, int] = field(default_factory=dict)
    frames: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.api = self.api or _APIS.get(self.kind, "")


@dataclass(frozen=True, slots=True, order=True)
class _Run:
    """One event of a picture on its lane: a thread, or a GPU and a stream."""

    start_ns: int
    end_ns: int
    letter: str
    process: int
    lane: int
    stream: int


def draw(picture: str, *, us_per_char: float = 10) -> model.Trace:
    """Return the capture that a picture shows; its first column is time 0.

    Raises:
        UsageError: the picture can't be read; the message names the line or the letter.
    """
    drawing = _Drawing(round(us_per_char * 1000))
    for number, line in enumerate(picture.splitlines(), 1):
        if text := line.strip():
            try:
                drawing.read(text)
            except ValueError as problem:
                raise UsageError(f"picture, line {number}: {problem}", hint=f"the line reads: {text}") from None
    return drawing.trace()


def _meaning(text: str, default_graph: int) -> _Meaning:
    """Read a letter's meaning: what it is, then what may end it."""
    words = shlex.split(text)
    ends = next((i for i, word in enumerate(words) if _ENDING.fullmatch(word)), len(words))
    meaning = _kind(words[:ends], default_graph)
    rest = iter(words[ends:])
    for word in rest:
        ending = _ENDING.fullmatch(word)
        if ending is None:
            raise ValueError(f"unexpected {word!r}: a meaning ends with via, at, fails, s7 or e3")
        argument = ending[2] or next(rest, "")
        if not argument:
            raise ValueError(f"{word!r} needs a word behind it")
        _end(meaning, ending[1] or word, argument)
    return meaning


def _end(meaning: _Meaning, word: str, argument: str) -> None:
    if word == "via":
        meaning.api = argument
    elif word == "at":
        meaning.frames.append(argument)
    else:
        meaning.extras[_EXTRAS[word]] = int(argument)


def _kind(words: list[str], default_graph: int) -> _Meaning:
    match words:
        case ["kernel", name, *more]:
            many = _MANY.fullmatch(more.pop()) if more and _MANY.fullmatch(more[-1]) else None
            return _Meaning("kernel", {"name": " ".join((name, *more))}, count=int(many[1]) if many else 1)
        case ["memset", size] if size.isdigit():
            return _Meaning("memset", {"bytes": int(size), "dst_kind": _DEVICE})
        case ["copy", direction, size, *host] if direction in _COPY_KINDS and size.isdigit():
            return _Meaning("copy", {"bytes": int(size), "copy_kind": _COPY_KINDS[direction]} | _ends(direction, host))
        case ["graph", *nodes]:
            number = int(nodes.pop(0)) if nodes and nodes[0].isdigit() else default_graph
            return _Meaning("graph", {"graph": number}, nodes=_nodes(nodes))
        case ["name", _, *_]:
            return _Meaning("name", {"name": " ".join(words[1:])})
        case [api] if _API.fullmatch(api):
            return _Meaning("call", api=api)
        case _:
            raise ValueError(f"{' '.join(words)!r} is no kernel, copy, memset, graph, name or API call")


def _ends(direction: str, host: list[str]) -> dict[str, object]:
    """Return the memory kinds at both ends of a copy; `host` is what its host side is, pinned if empty."""
    memory = " ".join(host) or "pinned"
    if memory not in _MEMORY_KINDS:
        raise ValueError(f"{memory!r} is no kind of memory: {', '.join(_MEMORY_KINDS)}")
    kinds = {"H": _MEMORY_KINDS[memory]}
    return {"src_kind": kinds.get(direction[0], _DEVICE), "dst_kind": kinds.get(direction[-1], _DEVICE)}


def _nodes(words: list[str]) -> Counter[str]:
    """Return how often each letter occurs in a graph: ``a b*3``."""
    nodes: Counter[str] = Counter()
    for word in words:
        node = _NODE.fullmatch(word)
        if node is None:
            raise ValueError(f"{word!r} is no node of a graph: a letter, or `a*3` for three of it")
        nodes[node[1]] += int(node[2] or 1)
    return nodes


@dataclass(slots=True)
class _Drawing:
    scale: int
    width: int = 0
    runs: dict[str, list[_Run]] = field(default_factory=lambda: defaultdict(list))
    legend: dict[str, _Meaning] = field(default_factory=dict)
    launches: dict[tuple[int, str], list[int]] = field(default_factory=lambda: defaultdict(list))
    sketch: Sketch = field(default_factory=Sketch)

    def read(self, line: str) -> None:
        """Take in one line: a letter's meaning or a track."""
        if legend := _LEGEND.fullmatch(line):
            self.legend[legend[1]] = _meaning(legend[2], len(self.legend) + 1)
            return
        label, bar, cells = line.partition("|")
        track = _TRACK.fullmatch(label.strip())
        if not (bar and track):
            raise ValueError("neither a track (`api | ...`) nor a letter's meaning (`A = kernel name`)")
        if cells[:1].strip():
            raise ValueError("leave one blank after the bar: the first column is the second one behind it")
        self._read_track(track, cells[1:])

    def _read_track(self, track: re.Match[str], cells: str) -> None:
        role, number = track["role"], track["number"]
        pattern = _RANGE if role == "nvtx" else _RUN
        if junk := pattern.sub("", cells).strip(". "):
            raise ValueError(f"can't read {junk!r} on a track of this kind")
        process = process_key(1000 + int(track["process"] or 1))
        lane = int(number or 0) if role == "gpu" else thread_key(process, int(number or 1))
        self.width = max(self.width, len(cells))
        for run in pattern.finditer(cells):
            start, end = run.start() * self.scale, run.end() * self.scale
            self.runs[role].append(_Run(start, end, run[1].strip(), process, lane, int(track["stream"] or 7)))

    def trace(self) -> model.Trace:
        """Return the capture, once every line is read."""
        for run in self._events("api"):
            self._call(run)
        for (process, letter), runs in self._by_letter().items():
            self._operations(process, letter, runs)
        add = self.sketch.add
        for run in self.runs["nvtx"]:
            add("nvtx", run.start_ns, run.end_ns, process=run.process, thread=run.lane, text=run.letter)
        for run in self.runs["profiler"]:
            name = self._name(run.letter, "CUPTI Buffer flush")
            owner = {"process": run.process, "thread": run.lane, "table": "PROFILER_OVERHEAD"}
            add("overheads", run.start_ns, run.end_ns, **owner, name=name)
        for run in self.runs["off"]:
            add("off_cpu", run.start_ns, run.end_ns, thread=run.lane)
        for run in self.runs["os"]:
            add("os_calls", run.start_ns, run.end_ns, thread=run.lane, name=self._name(run.letter, run.letter))
        for run in self.runs["nodes"]:
            add("graph_nodes", run.start_ns, run.end_ns, thread=run.lane)
        return self.sketch.trace("drawn", self.width * self.scale)

    def _events(self, role: str) -> Iterator[_Run]:
        """Yield the events of the tracks of a role, a run of several as so many, in the order of time."""
        for run in sorted(self.runs[role]):
            many, length = self._meaning(run.letter).count, run.end_ns - run.start_ns
            edges = [run.start_ns + length * number // many for number in range(many + 1)]
            yield from (replace(run, start_ns=start, end_ns=end) for start, end in pairwise(edges))

    def _meaning(self, letter: str) -> _Meaning:
        return self.legend.get(letter) or _Meaning("kernel", {"name": letter})

    def _name(self, letter: str, default: str) -> str:
        return str(self.legend[letter].values["name"]) if letter in self.legend else default

    def _owner(self, letter: str) -> str:
        return next((graph for graph, meaning in self.legend.items() if letter in meaning.nodes), letter)

    def _call(self, run: _Run) -> None:
        meaning = self._meaning(run.letter)
        needed = [] if meaning.kind == "call" else list(meaning.nodes) or [run.letter]
        drawn = {op.letter for op in self.runs["gpu"] if op.process == run.process}
        if missing := [letter for letter in needed if letter not in drawn]:
            problem = f"{run.letter} is launched, but {missing[0]} is nowhere on a gpu row"
            raise UsageError(problem, hint=f"if its record is missing, say so: {run.letter} = {meaning.api}")
        times = run.start_ns, run.end_ns, run.lane
        correlation = self.sketch.call(meaning.api, *times, frames=meaning.frames, **meaning.extras)
        self.launches[run.process, run.letter].append(correlation)

    def _by_letter(self) -> dict[tuple[int, str], list[_Run]]:
        groups: dict[tuple[int, str], list[_Run]] = defaultdict(list)
        for run in self._events("gpu"):
            groups[run.process, run.letter].append(run)
        return groups

    def _operations(self, process: int, letter: str, runs: list[_Run]) -> None:
        owner = self._owner(letter)
        meaning, nodes = self._meaning(letter), self._meaning(owner).nodes
        each = nodes[letter] or 1
        if meaning.kind not in _KINDS:
            raise UsageError(f"{letter} can't run on a gpu row", hint=f"it stands for {meaning.api or meaning.values}")
        launches = self.launches[process, owner]
        if not launches:
            launches += [self.sketch.correlate(process) for _ in range(-(-len(runs) // each))]
        if len(runs) != each * len(launches):
            problem = f"{letter} has {len(runs)} runs on gpu rows, but {len(launches)} launches of {each} each"
            raise UsageError(problem, hint="a run is one event: neighbours need different letters")
        for position, run in enumerate(runs):
            values = meaning.values | {"process": process, "gpu": run.lane, "stream": run.stream}
            values["correlation"] = launches[position // each]
            if nodes:
                node = 1 + list(nodes.elements()).index(letter) + position % each
                values["graph_node"] = int(str(self._meaning(owner).values["graph"])) << 32 | node
            self.sketch.operation(_KINDS[meaning.kind], run.start_ns, run.end_ns, **values)
