"""One decode loop with and without a profiler that taxes host and GPU: what a correction has to find again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import polars as pl

from bubblefinder.pipeline import Analysis
from bubblefinder.replay.corrected import TracedSteps, traced_steps
from bubblefinder.replay.ledger import COLUMNS
from bubblefinder.timeline.ledger import window_ledger
from bubblefinder.trace.model import GRAPH, KERNEL, MEMCPY, Gpu
from bubblefinder.trace.sketch import Sketch, process_key, thread_key

if TYPE_CHECKING:
    from bubblefinder.replay.model import Model
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import Trace

US = 1_000
PROCESS = process_key(1001)
THREAD = thread_key(PROCESS, 1)
GRAPHS = (("draft", 1, 20), ("verify", 2, 200), ("extend", 3, 8))


@dataclass(frozen=True, slots=True)
class Tax:
    """What the profiler adds, in ns."""

    node: int = 0
    launch_node: int = 0
    call: int = 0
    behind: int = 0


@dataclass(slots=True)
class Loop:
    """A host thread that prepares a step, launches three graphs and, if it reads, waits for the second one.

    Without reads the host runs ahead by up to two steps, as an engine that waits for the step before does.
    """

    tax: Tax
    host_us: int
    reads: bool
    node_mode: bool = True
    graphs: tuple[tuple[str, int, int], ...] = GRAPHS
    now: int = 1_000_000
    free: int = 0
    sketch: Sketch = field(default_factory=Sketch)

    def run(self, steps: int) -> Trace:
        ends: list[int] = []
        for _ in range(steps):
            self.now += self.host_us * US
            for name, graph, nodes in self.graphs:
                self._replay(name, graph, nodes)
                if self.reads and name == "verify":
                    self._read()
            ends.append(self.free)
            if not self.reads and len(ends) > 1:
                self._wait(ends[-2])
        return self.sketch.trace()

    def _call(self, api: str, length: int, tax: int) -> int:
        begin, self.now = self.now, self.now + length + tax
        return self.sketch.call(api, begin, self.now, THREAD)

    def _replay(self, name: str, graph: int, nodes: int) -> None:
        begin = self.now
        correlation = self._call("cudaGraphLaunch_v10000", 5 * US, self.tax.launch_node * nodes)
        at = max(self.free + US, begin + 4 * US + self.tax.launch_node * nodes)
        place = {"process": PROCESS, "correlation": correlation}
        if not self.node_mode:
            self.free = at + nodes * 4 * US - US
            self.sketch.operation(GRAPH, at, self.free, graph=graph, **place)
            return
        for number in range(nodes):
            self.free = at + 3 * US
            self.sketch.operation(KERNEL, at, self.free, name=name, graph_node=graph << 32 | number + 1, **place)
            at = self.free + US + self.tax.node

    def _read(self) -> None:
        begin = self.now
        start = max(self.free + US, begin + 2 * US + self.tax.call)
        self.free = start + 2 * US
        self.now = self.free + 3 * US
        correlation = self.sketch.call("cudaMemcpyAsync_v3020", begin, self.now, THREAD)
        sides = {"copy_kind": 2, "src_kind": 2, "dst_kind": 0, "bytes": 8}
        self.sketch.operation(MEMCPY, start, self.free, process=PROCESS, correlation=correlation, **sides)

    def _wait(self, end: int) -> None:
        begin, self.now = self.now, max(self.now + 2 * US + self.tax.call, end + 3 * US)
        self.sketch.call("cudaEventSynchronize_v3020", begin, self.now, THREAD)


@dataclass(slots=True)
class Eager(Loop):
    """A host thread that launches 60 short kernels a step, slower than the GPU runs them, and reads a result."""

    def run(self, steps: int) -> Trace:
        for _ in range(steps):
            for number in range(60):
                self._launch(f"kernel {number}")
            self._read()
            self.now += self.host_us * US + self.tax.behind
        return self.sketch.trace()

    def _launch(self, name: str) -> None:
        begin = self.now
        correlation = self._call("cudaLaunchKernel_v7000", 3 * US, self.tax.call)
        self.now += 4 * US + self.tax.behind
        at = max(self.free, begin + 4 * US)
        self.free = at + 2 * US
        self.sketch.operation(KERNEL, at, self.free, name=name, process=PROCESS, correlation=correlation)


def on_h200(trace: Trace, cupti: str | None = "13.0") -> Trace:
    """The same capture, as if made on a GPU that a calibration comes with the product for."""
    info = replace(trace.info, gpus=(Gpu(0, "NVIDIA H200"),), cupti_version=cupti, driver_version="580.1")
    return replace(trace, info=info)


def decode(capture: Trace | Analysis) -> tuple[Timeline, Steps, Model | None, pl.DataFrame]:
    """Return timeline, steps, the recorded run and the decode steps' raw ledger of the first rank."""
    analysis = capture if isinstance(capture, Analysis) else Analysis(capture)
    timeline, steps, model = analysis.timeline, analysis.steps, analysis.model
    rows = steps.windows.filter(pl.col("excluded").is_null())
    if rows.is_empty():
        return timeline, steps, model, rows
    gpu, process = rows.select("gpu", "process").row(0)
    rows = rows.filter((pl.col("gpu") == gpu) & (pl.col("process") == process))
    ledger = window_ledger(timeline, gpu, rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy())
    if not timeline.replays.filter(pl.col("gpu") == gpu)["nodes"].count():
        ledger = ledger.with_columns(intra_graph_ns=pl.lit(None, pl.Int64))
    lengths = rows.with_columns(duration_ns=pl.col("end_ns") - pl.col("start_ns"))
    return timeline, steps, model, lengths.hstack(ledger)


def traced(trace: Trace) -> TracedSteps:
    timeline, steps, model, rows = decode(trace)
    assert model is not None
    return traced_steps(timeline, steps, model, rows)


def sums(rows: pl.DataFrame) -> bool:
    """Tell whether every row of a ledger sums to its duration with no part below zero."""
    parts = rows.select(pl.col(COLUMNS[1:]).fill_null(0))
    exact = bool((parts.sum_horizontal() == rows["duration_ns"]).all())
    return exact and bool((parts.min_horizontal() >= 0).all())
