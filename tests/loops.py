"""Decode loops written launch by launch: what a serving engine does step after step, and how it is disturbed."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from bubblefinder.trace.model import GRAPH, KERNEL, MEMCPY
from bubblefinder.trace.sketch import Sketch, process_key, thread_key

if TYPE_CHECKING:
    from collections.abc import Sequence

US = 1_000


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph as captured for one batch size."""

    id: int
    kernels: tuple[str, ...]
    node_us: float = 10

    def at(self, batch: int) -> Graph:
        """The same work for another batch size: another id, slower nodes, and a node more."""
        return Graph(self.id + 100 * batch, (*self.kernels, "pad"), self.node_us * (1 + 0.3 * batch))


DRAFT = Graph(5, ("embed", *("draft_attn", "draft_mlp") * 7))
VERIFY = Graph(6, ("attn", "mlp", "router", "moe") * 15)
EXTEND = Graph(7, ("extend_attn", "extend_mlp") * 3)
SPECULATIVE = (DRAFT, VERIFY, EXTEND)


@dataclass(slots=True)
class Loop:
    """One process that decodes on one GPU; its methods advance the host's clock and the GPU's queue.

    `firsts` holds the start of the first operation of every step: where each window has to begin.
    """

    sketch: Sketch = field(default_factory=Sketch)
    pid: int = 1001
    gpu: int = 0
    thread: int = 1
    now: int = 1_000 * US
    node_mode: bool = True
    jitter: float = 0.02
    seed: int = 1
    free: int = 0
    firsts: list[int] = field(default_factory=list)
    random: Random = field(init=False)
    process: int = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.process = process_key(self.pid)

    def key(self, thread: int | None = None) -> int:
        return thread_key(self.process, thread or self.thread)

    def spend(self, us: float) -> int:
        """Host time that varies; returns the new now."""
        self.now += round(us * US * (1 + self.jitter * self.random.uniform(-1, 1)))
        return self.now

    def run(self, kind: int, us: float, correlation: int, **values: object) -> int:
        """An operation at the end of the GPU's queue; returns its start."""
        start = max(self.free, self.now)
        self.free = start + max(1, round(us * US * (1 + self.jitter * self.random.uniform(-1, 1))))
        place = {"process": self.process, "gpu": self.gpu, "correlation": correlation}
        self.sketch.operation(kind, start, self.free, **place, **values)
        return start

    def call(self, api: str, us: float, thread: int | None = None) -> int:
        begin = self.now
        return self.sketch.call(api, begin, self.spend(us), self.key(thread))

    def replay(self, graph: Graph, *, thread: int | None = None, recorded: bool = True) -> int:
        """A graph launch and what it does; returns its first start, 0 if its record is lost."""
        correlation = self.call("cudaGraphLaunch_v10000", 10, thread)
        if not recorded:
            return 0
        if not self.node_mode:
            return self.run(GRAPH, graph.node_us * len(graph.kernels), correlation, graph=graph.id)
        first = 0
        for number, name in enumerate(graph.kernels, 1):
            start = self.run(KERNEL, graph.node_us, correlation, name=name, graph_node=graph.id << 32 | number)
            first = first or start
            self.free += US
        self.free -= US
        return first

    def kernel(self, name: str, us: float) -> int:
        return self.run(KERNEL, us, self.call("cudaLaunchKernel_v7000", 4), name=name)

    def upload(self, size: int = 1024) -> int:
        correlation = self.call("cudaMemcpyAsync_v3020", 5)
        return self.run(MEMCPY, 1, correlation, bytes=size, copy_kind=1, src_kind=1, dst_kind=2)

    def read(self, size: int = 8) -> None:
        """A blocking read: the host goes on when the copy is done."""
        begin = self.now
        start = max(self.free, begin + 2 * US)
        self.free = start + US
        self.now = self.free + 3 * US
        correlation = self.sketch.call("cudaMemcpyAsync_v3020", begin, self.now, self.key())
        place = {"process": self.process, "gpu": self.gpu, "correlation": correlation}
        sides = {"copy_kind": 2, "src_kind": 2, "dst_kind": 0}
        self.sketch.operation(MEMCPY, start, start + US, **place, **sides, bytes=size)

    def step(
        self,
        graphs: Sequence[Graph] = SPECULATIVE,
        *,
        mark: str | None = "decode_step",
        extend_thread: int = 1,
        lost: Graph | None = None,
    ) -> None:
        """Host work, an upload, the graphs, and the read that ends the step."""
        self.spend(400)
        begin = self.now
        self.firsts.append(self.upload())
        self.spend(50)
        for graph in graphs:
            thread = extend_thread if graph.id % 100 == EXTEND.id else None
            self.replay(graph, thread=thread, recorded=graph is not lost)
            self.spend(5)
        self.read()
        self.range(mark, begin)

    def range(self, text: str | None, begin: int) -> None:
        if text:
            self.sketch.add("nvtx", begin, self.now, process=self.process, thread=self.key(), text=text)

    def prefill(self, kernels: int = 200, us: float = 60) -> None:
        """Eager work far longer than a step."""
        self.upload(1 << 20)
        for number in range(kernels):
            self.kernel(f"prefill_{number % 7}", us)


def disturbed(seed: int) -> Loop:
    """A loop of some kind with launches missing or doubled, batch sizes that change, and prefills in between."""
    random = Random(seed)
    loop = Loop(node_mode=random.random() < 0.5, seed=seed, jitter=random.choice([0.02, 0.1, 0.3]))
    sample = Graph(12, ("sample",) * 3)
    kind = random.choice([SPECULATIVE, (VERIFY,), (DRAFT, DRAFT, VERIFY, EXTEND), (VERIFY, sample)])
    sizes = random.choice([[0], [0, 1], [0, 1, 2, 3]])
    missing, doubled, prefill = random.choice([0, 0.04]), random.choice([0, 0.04]), random.choice([0, 0, 0.05])
    for _ in range(random.randint(8, 40)):
        batch, graphs = random.choice(sizes), list[Graph]()
        for graph in kind:
            chance = 0.5 if len(kind) == 1 else random.random()
            times = 0 if chance < missing else 2 if chance > 1 - doubled else 1
            graphs += [graph.at(batch) if batch else graph] * times
        if random.random() < prefill:
            loop.prefill(150, 40)
        loop.step(graphs or kind[:1])
    return loop
