"""Makes an export of any size with a known answer: `python -m benchmarks.generate big.sqlite --kernels 2000000`.

Every step does the same: an upload, three graphs (draft, verify, draft-extend) whose kernels overlap here and
there, in one stream and on a second one, eager kernels, and a blocking read after which the host thinks for a while.
The answer is worked out on one step, in plain Python, and written beside the export as JSON. `Shape` says
what can differ.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass, field, fields
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from tests.exports import create, insert, tables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

SCHEMA = "3.20"
US = 1_000
ROWS_AT_ONCE = 200_000
VM = 1 << 48
CALLS = {"cudaGraphLaunch_v10000": 1, "cudaLaunchKernel_v7000": 2, "cudaMemcpyAsync_v3020": 3}
RANGES = {f"layers.{number}": 100 + number for number in range(32)}
DECODE_STEP = 4
KERNELS = {
    f"void decode::{name}<{tile}, __nv_bfloat16, cutlass::layout::RowMajor>(decode::Params<{tile}>)": number
    for number, (name, tile) in enumerate(
        ((name, tile) for name in ("attention", "router", "experts", "norm", "project") for tile in range(8)), 10
    )
}
PINNED, PAGEABLE, DEVICE = 1, 0, 2
TO_DEVICE, TO_HOST = 1, 2


@dataclass(frozen=True, slots=True)
class Shape:
    """What a made-up program looks like.

    Attributes:
        nodes: of its verify graph; draft and extend have fewer. 0 for a program without graphs.
        eager: kernels a step outside of graphs, each with a call of its own.
        gpus: GPUs, each with a process of its own.
        streams: that the eager kernels take turns in.
        ranges: NVTX ranges a step: the first around all of it, the others in it, around its calls in turn and around
            each other by fours. 0 for none at all.
    """

    nodes: int = 1_600
    eager: int = 40
    gpus: int = 1
    streams: int = 1
    ranges: int = 1


@dataclass(frozen=True, slots=True)
class Operation:
    start: int
    end: int
    call: int
    stream: int = 7
    node: int = 0
    name: int = 0
    direction: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    start: int
    end: int
    api: str


@dataclass(frozen=True, slots=True)
class Mark:
    start: int
    end: int
    text: int


@dataclass(slots=True)
class Step:
    """One step, in ns from its own beginning; the same is done again after `period`."""

    random: Random
    operations: list[Operation] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    now: int = 0
    free: int = 0
    period: int = 0

    def call(self, api: str, us: float) -> int:
        self.calls.append(Call(self.now, self.now + round(us * US), api))
        self.now = self.calls[-1].end
        return len(self.calls) - 1

    def copy(self, direction: int) -> None:
        call = self.call("cudaMemcpyAsync_v3020", 5)
        start = max(self.free, self.now - 2 * US)
        self.free = start + 1_300
        self.operations.append(Operation(start, self.free, call, direction=direction))

    def replay(self, graph: int, nodes: int, launch_us: float) -> None:
        call = self.call("cudaGraphLaunch_v10000", launch_us)
        now = max(self.free + 3 * US, self.calls[call].start + 5 * US)
        for number in range(1, nodes + 1):
            length = self.random.randint(1_500, 6_000)
            node = graph << 32 | number
            self.operations.append(Operation(now, now + length, call, node=node, name=self.random.randint(10, 49)))
            if number % 20 == 0:
                side = Operation(now + 500, now + length + 800, call, 20, node | 1 << 24, name=49)
                self.operations.append(side)
                self.free = max(self.free, side.end)
            self.free = max(self.free, now + length)
            now += length + self.random.choice((-700, 300, 400, 500))

    def eager(self, kernels: int, streams: int) -> None:
        for number in range(kernels):
            call = self.call("cudaLaunchKernel_v7000", 3)
            start = max(self.free, self.now + US)
            self.free = start + self.random.randint(1_500, 6_000)
            stream = 7 + number % streams
            self.operations.append(Operation(start, self.free, call, stream, name=self.random.randint(10, 49)))

    def read(self, host_us: float) -> None:
        """Read a result back, blocking until it is there, then think."""
        begin = self.now
        start = max(self.free + US, begin + 3 * US)
        self.free = start + 1_400
        self.now = self.free + 2 * US
        self.calls.append(Call(begin, self.now, "cudaMemcpyAsync_v3020"))
        self.operations.append(Operation(start, self.free, len(self.calls) - 1, direction=TO_HOST))
        self.period = self.now + round(host_us * US)

    def mark(self, ranges: int) -> None:
        """Put ranges around the whole step, and around its calls: every 4th has the 3 behind it inside, and so on."""
        if ranges:
            self.marks.append(Mark(0, self.period - US, DECODE_STEP))
        for number in range(ranges - 1):
            inside = next(4**level for level in (3, 2, 1, 0) if number % 4**level == 0)
            first = self.calls[number * len(self.calls) // ranges]
            last = self.calls[min(number + inside, ranges - 1) * len(self.calls) // ranges]
            self.marks.append(Mark(first.start, max(first.end, last.start), 100 + number % len(RANGES)))


def make_step(shape: Shape) -> Step:
    step = Step(Random(shape.nodes + shape.eager))
    step.copy(TO_DEVICE)
    if shape.nodes:
        step.replay(5, max(1, shape.nodes // 12), 20)
        step.replay(6, shape.nodes, 120)
        step.replay(7, max(1, shape.nodes // 40), 10)
    step.eager(shape.eager, shape.streams)
    step.read(1_200)
    step.operations.sort(key=lambda o: (o.start, o.end))
    step.mark(shape.ranges)
    return step


def answer(step: Step, steps: int) -> dict[str, int]:
    """What is true of `steps` steps: each has the same ledger, but the last has no gap behind it."""
    spans: dict[int, list[int]] = {}
    for o in step.operations:
        if o.node:
            span = spans.setdefault(o.call, [o.start, o.end])
            span[1] = max(span[1], o.end)
    found = dict.fromkeys(("busy", "intra_graph", "host_late", "launching", "queued"), 0)
    reach = step.operations[0].start
    for o in step.operations:
        if o.start > reach:
            charge(found, reach, o.start, step.calls[o.call], list(spans.values()))
        found["busy"] += max(0, o.end - max(reach, o.start))
        reach = max(reach, o.end)
    total = {name: time * steps for name, time in found.items()}
    seam = dict.fromkeys(found, 0)
    first = step.calls[step.operations[0].call]
    following = Call(first.start + step.period, first.end + step.period, first.api)
    charge(seam, reach, step.operations[0].start + step.period, following, [])
    total = {name: time + seam[name] * (steps - 1) for name, time in total.items()}
    length = step.period * (steps - 1) + reach - step.operations[0].start
    return {f"{name}_ns": time for name, time in total.items()} | {"span_ns": length, "replays": len(spans) * steps}


def charge(found: dict[str, int], start: int, end: int, call: Call, spans: list[list[int]]) -> None:
    if any(low <= start < high for low, high in spans):
        found["intra_graph"] += end - start
        return
    late, launched = min(max(call.start, start), end), min(max(call.end, start), end)
    found["host_late"] += late - start
    found["launching"] += max(0, launched - late)
    found["queued"] += end - max(launched, late)


def column(values: Iterable[int]) -> NDArray[np.int64]:
    return np.fromiter(values, np.int64)


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes one GPU's steps, each by its own process; their correlation ids collide."""

    db: sqlite3.Connection
    step: Step
    gpu: int

    def write(self, first: int, count: int) -> None:
        begin = (np.arange(first, first + count, dtype=np.int64) * self.step.period)[:, None] + US * (
            1000 + 137 * self.gpu
        )
        ids = (np.arange(first, first + count, dtype=np.int64) * len(self.step.calls))[:, None] + 1
        calls = self.step.calls
        names = column(CALLS[c.api] for c in calls)
        times = (column(c.start for c in calls), column(c.end for c in calls))
        rows = [begin + time for time in times] + [
            ids + np.arange(len(calls)),
            np.broadcast_to(names, (count, len(names))),
        ]
        into = ("start", "end", "correlationId", "nameId")
        self._insert("CUPTI_ACTIVITY_KIND_RUNTIME", into, rows, eventClass=0, globalTid=self.thread, returnValue=0)
        self._operations(begin, ids, [o for o in self.step.operations if o.direction == 0])
        for direction in (TO_DEVICE, TO_HOST):
            self._operations(begin, ids, [o for o in self.step.operations if o.direction == direction])
        self._marks(begin)

    def _marks(self, begin: NDArray[np.int64]) -> None:
        marks = self.step.marks
        texts = np.broadcast_to(column(m.text for m in marks), (len(begin), len(marks)))
        rows = [begin + column(m.start for m in marks), begin + column(m.end for m in marks), texts]
        into = ("start", "end", "textId")
        self._insert("NVTX_EVENTS", into, rows, eventType=59, globalTid=self.thread, domainId=0)

    @property
    def process(self) -> int:
        return VM | (1000 + self.gpu) << 24

    @property
    def thread(self) -> int:
        return self.process | 1000 + self.gpu

    def _operations(self, begin: NDArray[np.int64], ids: NDArray[np.int64], operations: list[Operation]) -> None:
        times = [begin + column(o.start for o in operations), begin + column(o.end for o in operations)]
        rows = [*times, ids + column(o.call for o in operations)]
        into = ["start", "end", "correlationId"]
        place = {"deviceId": 0, "contextId": 1, "globalPid": self.process}
        direction = operations[0].direction
        if direction:
            kinds = (PINNED, DEVICE) if direction == TO_DEVICE else (DEVICE, PAGEABLE)
            what = {"bytes": 64, "copyKind": direction, "srcKind": kinds[0], "dstKind": kinds[1], "streamId": 7}
            self._insert("CUPTI_ACTIVITY_KIND_MEMCPY", into, rows, **place, **what)
            return
        for name, values in {
            "streamId": column(o.stream for o in operations),
            "graphNodeId": column(o.node for o in operations),
            "demangledName": column(o.name for o in operations),
            "shortName": column(o.name for o in operations),
        }.items():
            into.append(name)
            rows.append(np.broadcast_to(values, rows[0].shape))
        zeros = dict.fromkeys(REQUIRED - {*into, *place}, 0)
        self._insert("CUPTI_ACTIVITY_KIND_KERNEL", into, rows, **place, **zeros)

    def _insert(self, table: str, into: Iterable[str], rows: list[NDArray[np.int64]], **constants: int) -> None:
        """Insert columns of equal shape, constants beside them; a graph node of 0 is stored as null."""
        names = [*into, *constants]
        values = ["nullif(?, 0)" if name == "graphNodeId" else "?" for name in into] + [
            str(v) for v in constants.values()
        ]
        statement = f"INSERT INTO {table} ({', '.join(map(quoted, names))}) VALUES ({', '.join(values)})"
        self.db.executemany(statement, zip(*(part.ravel().tolist() for part in rows), strict=True))


REQUIRED = {c.name for c in tables(SCHEMA)["CUPTI_ACTIVITY_KIND_KERNEL"] if c.required}


USUAL = Shape()


def quoted(name: str) -> str:
    return f'"{name}"'


def generate(path: Path, kernels: int, shape: Shape = USUAL) -> dict[str, object]:
    """Write an export with about so many kernels and return what is true of it."""
    step, gpus = make_step(shape), shape.gpus
    steps = max(2, round(kernels / gpus / sum(o.direction == 0 for o in step.operations)))
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("BEGIN")
        prepare(db, step, steps, gpus)
        at_once = max(1, ROWS_AT_ONCE // len(step.operations))
        for first in range(0, steps, at_once):
            for gpu in range(gpus):
                Writer(db, step, gpu).write(first, min(at_once, steps - first))
        db.execute("COMMIT")
    device = answer(step, steps) | {"steps": steps, "operations": steps * len(step.operations)}
    return {
        "devices": [{"gpu": gpu, **device} for gpu in range(gpus)],
        "step_ns": step.period,
        "file_bytes": path.stat().st_size,
    }


def prepare(db: sqlite3.Connection, step: Step, steps: int, gpus: int) -> None:
    """Create the tables and fill those that don't grow."""
    strings = {
        **{text: number for number, text in enumerate(CALLS, 1)},
        "decode_step": DECODE_STEP,
        **KERNELS,
        **RANGES,
    }
    duration = step.period * steps + 2_000 * US
    pids = [1000 + gpu for gpu in range(gpus)]
    few: dict[str, list[dict[str, int | str]]] = {
        "StringIds": [{"id": number, "value": text} for text, number in strings.items()],
        "ANALYSIS_DETAILS": [{"globalVid": VM, "duration": duration, "startTime": 0, "stopTime": duration}],
        "PROCESSES": [{"globalPid": VM | pid << 24, "pid": pid, "name": "python3"} for pid in pids],
        "TARGET_INFO_GPU": [{"vmId": VM, "id": gpu, "name": "Made up", "cuDevice": gpu} for gpu in range(gpus)],
        "TARGET_INFO_CUDA_DEVICE": [{"gpuId": gpu, "cudaId": 0, "pid": pid} for gpu, pid in enumerate(pids)],
        "META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": f"{SCHEMA}.0"}],
    }
    grown = ("KERNEL", "MEMCPY", "RUNTIME")
    for table, columns in tables(SCHEMA).items():
        if table in few or table == "NVTX_EVENTS" or table.removeprefix("CUPTI_ACTIVITY_KIND_") in grown:
            create(db, table, columns)
            insert(db, table, columns, few.get(table, ()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--kernels", type=int, default=2_000_000, help="about so many, over all GPUs")
    for part in fields(Shape):
        parser.add_argument(f"--{part.name}", type=int, default=part.default, help="see Shape")
    given = vars(parser.parse_args())
    path, kernels = given.pop("path"), given.pop("kernels")
    truth = generate(path, kernels, Shape(**given))
    text = json.dumps(truth, indent=2)
    path.with_suffix(".answer.json").write_text(text + "\n")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
