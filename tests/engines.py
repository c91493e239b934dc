"""Serving engines made up at random, whose steps are known: what step finding is measured against.

`engine(seed)` draws a plan (what a step is made of, how its result gets to the host, what disturbs it, what NVTX says)
and plays it on the simulator. The answer comes from the player alone: `Engine.steps` holds, for every decode step, the
moment at which the compute of what came before it ended and the one at which its own began. Shares no code with the
analysis.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from tests.simulate import US, Graph, Host, Machine, Node

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bubblefinder.trace.model import Trace

Kind = Literal["graph", "pieces", "one_piece", "eager", "speculative", "assisted", "while", "megakernel"]
Result = Literal["read", "event", "synchronize", "none"]

KINDS: Final[tuple[Kind, ...]] = (
    "graph", "graph", "graph", "pieces", "pieces", "one_piece", "eager", "eager", "eager", "speculative", "speculative",
    "assisted", "while", "megakernel",
)  # fmt: skip
LAYER: Final = ("norm", "qkv", "rope", "attention", "out", "norm_2", "router", "up", "act", "down", "combine")
EAGER_LAYER_US: Final = 4
PASSES: Final = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """What an engine does.

    Attributes:
        kind: what a step is made of.
        result: how the token gets to the host: a blocking read, a pinned copy whose event the host waits for one step
            later, a synchronise, or not at all.
        layers, kernels, us: how many layers, kernels in each, and the usual time of a kernel.
        host_us: host work before a step.
        sampling: eager kernels behind the forward pass.
        head: the pass begins with an embedding and ends with a head of their own.
        shared_names: the head's kernels are called as the layers' are.
        uploads: copies to the GPU before a step.
        layer_reads: blocking reads in every layer.
        drafts: least and most drafts of a step.
        batches: batch sizes, in the order in which they come; None: at random.
        steps: how many decode steps.
        prefill_every: steps between prefills, 0 for none; by graph or eager.
        idle_us: time without load before each prefill.
        setup: weights, warm-up and graph captures before the first step.
        fallback: the second half runs without graphs.
        slow: how many steps a pause of the host, or a slow kernel, makes slow.
        every: one more kernel in every so many steps, 0 for none.
        lost: share of launches that left no record.
        marks: NVTX names: of steps, of layers.
        node_mode: whether the nodes of graphs are recorded.
        between_us: host work before each launch.
        layer_us: host work behind each read of a layer.
    """

    kind: Kind
    result: Result
    layers: int
    kernels: int
    us: float
    host_us: float
    sampling: int
    head: bool
    shared_names: bool
    uploads: int
    layer_reads: int
    drafts: tuple[int, int]
    batches: tuple[int, ...] | None
    steps: int
    prefill_every: int
    prefill_by_graph: bool
    idle_us: float
    setup: bool
    fallback: bool
    slow: int
    every: int
    lost: float
    marks: tuple[str | None, str | None]
    node_mode: bool
    jitter: float
    between_us: float
    layer_us: float


def draw(seed: int) -> Plan:
    """Draw a plan."""
    random = Random(seed)
    kind = random.choice(KINDS)
    graphs = kind not in {"eager", "megakernel"}
    loads = random.choice(["none"] * 4 + ["prefill", "requests"])
    batches: tuple[int, ...] | None = random.choice([(1,), (1,), (1,), (1, 2), (1, 4, 2), (2, 1, 1, 4), None])
    return Plan(
        kind=kind,
        result=random.choice(["read", "read", "read", "event", "event", "synchronize", "none"]),
        layers=random.choice([4, 8, 12, 24, 32]),
        kernels=random.randint(3, len(LAYER)),
        us=random.choice([2.5, 5, 10]),
        host_us=random.choice([40, 120, 300, 800]),
        sampling=random.choice([0, 1, 3, 8]),
        head=random.random() < 0.8 or kind in {"eager", "one_piece"},
        shared_names=random.random() < 0.15,
        uploads=random.choice([0, 1, 1, 3]),
        layer_reads=random.choice([0, 0, 0, 1, 3]) if kind in {"pieces", "eager"} else 0,
        drafts=random.choice([(1, 1), (3, 3), (1, 4), (2, 5)]),
        batches=batches if kind not in {"assisted", "while", "megakernel"} else (1,),
        steps=random.choice([8, 20, 40]),
        prefill_every=random.choice([5, 7, 13]) if loads != "none" else 0,
        prefill_by_graph=graphs and random.random() < 0.2,
        idle_us=random.choice([30_000, 400_000]) if loads == "requests" else 0,
        setup=random.random() < 0.15,
        fallback=kind in {"graph", "pieces", "speculative"} and random.random() < 0.08,
        slow=random.choice([0, 0, 0, 1, 3]),
        every=random.choice([0, 0, 0, 0, 4, 10]),
        lost=random.choice([0, 0, 0, 0, 0.002]) if kind != "while" else 0,
        marks=random.choice(
            [(None, None)] * 4
            + [("decode_step", None), ("decode_step", "layer"), (None, "layer")]
            + [("run_batch", None), ("token", "layer")]
        ),
        node_mode=random.random() < 0.7,
        jitter=random.choice([0.01, 0.05, 0.2]),
        between_us=random.choice([0, 2, 6, 20]),
        layer_us=random.choice([10, 30, 220]),
    )  # fmt: skip


@dataclass(slots=True)
class Engine:
    """A plan at play.

    `steps`: of every decode step, the end of the compute before and the begin of its own, ns, and whether it comes
    right behind a prefill.
    """

    plan: Plan
    seed: int
    machine: Machine = field(init=False)
    host: Host = field(init=False)
    random: Random = field(init=False)
    steps: list[tuple[int, int, bool]] = field(default_factory=list)
    awaited: list[tuple[int, int]] = field(default_factory=list)
    eager: bool = False
    computed: int = 0
    begun: int | None = None
    prefilled: bool = False

    def __post_init__(self) -> None:
        self.machine = Machine(self.seed, self.plan.jitter, node_mode=self.plan.node_mode)
        self.host = self.machine.host()
        self.random = Random(self.seed)

    @property
    def trace(self) -> Trace:
        """What was recorded."""
        return self.machine.trace(f"engine {self.seed}")

    # Compute, whose begin and end make the answer

    def _computes(self, launch: Callable[[], int]) -> None:
        self.host.work(self.plan.between_us)
        start = launch()
        self.begun = start if self.begun is None else self.begun
        self.computed = self.host.queued_until()

    def kernel(self, name: str, us: float) -> None:
        self._computes(lambda: self.host.kernel(name, us, call_us=EAGER_LAYER_US))

    def replay(self, graph: Graph) -> None:
        """Launch a graph, or its nodes one by one."""
        if self.eager:
            for name, us in graph.nodes:
                self.kernel(name, us)
            return
        recorded = self.random.random() >= self.plan.lost
        self._computes(lambda: self.host.replay(graph, recorded=recorded, call_us=10 + len(graph.nodes) / 10))

    # What a step is made of

    def layer(self, prefix: str = "", factor: float = 1) -> tuple[Node, ...]:
        """The kernels of a layer."""
        names = LAYER[: self.plan.kernels]
        return tuple((prefix + name, self.plan.us * factor * (0.5 + number % 3)) for number, name in enumerate(names))

    def ends(self, batch: int = 1) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """The kernels before the first layer and behind the last."""
        if not self.plan.head:
            return (), ()
        names = ("rope", "norm", "qkv") if self.plan.shared_names else ("embed", "final_norm", "lm_head")
        first, *last = names
        us = self.plan.us * (1 + batch / 8)
        return ((first, us),), ((last[0], us), (last[1], 6 * us))

    def whole(self, graph_id: int, batch: int, passes: int = 1, prefix: str = "", layers: int = 0) -> Graph:
        """A graph of the whole pass."""
        first, last = self.ends(batch)
        body = self.layer(prefix, 1 + batch / 8) * (layers or self.plan.layers)
        return Graph(graph_id + 1000 * batch, (*first, *body, *last), passes)

    def forward(self, batch: int) -> None:
        """One forward pass, and whatever else the step computes."""
        plan = self.plan
        if plan.kind in {"graph", "while"}:
            self.replay(self.whole(3, batch, PASSES if plan.kind == "while" else 1))
        elif plan.kind == "megakernel":
            self.kernel("megakernel", 100 * plan.us)
        elif plan.kind == "speculative":
            for _ in range(self.random.randint(*plan.drafts)):
                self.replay(self.whole(5, batch, prefix="draft_", layers=1))
            self.replay(self.whole(6, batch))
            self.replay(self.whole(7, batch, prefix="extend_", layers=1))
        elif plan.kind == "assisted":
            self.assisted()
        else:
            self.by_layer(batch)

    def assisted(self) -> None:
        """A draft model by turns with its target, each of whose results the host reads."""
        for _ in range(self.random.randint(*self.plan.drafts)):
            self.replay(self.whole(11, 1, prefix="small_", layers=2))
            self.host.read()
            self.host.work(self.plan.host_us / 4)
        self.replay(self.whole(12, 1))

    def by_layer(self, batch: int) -> None:
        """Layers as graphs of their own, as one graph again and again, or kernel by kernel."""
        first, last = self.ends(batch)
        for node in first:
            self.kernel(*node)
        for number in range(self.plan.layers):
            with self.host.range(self.plan.marks[1]):
                self.one_layer(number, batch)
        if self.plan.kind == "one_piece":
            self.replay(Graph(2 + 1000 * batch, last))
            return
        for node in last:
            self.kernel(*node)

    def one_layer(self, number: int, batch: int) -> None:
        layer = self.layer(factor=1 + batch / 8)
        if self.plan.kind == "one_piece":
            self.replay(Graph(1 + 1000 * batch, layer))
        elif self.plan.kind == "pieces":
            self.replay(Graph(20 + 2 * number + 1000 * batch, layer[:2]))
            self.kernel("attention", self.plan.us * 2)
            self.replay(Graph(21 + 2 * number + 1000 * batch, layer[2:] or layer[:1]))
        else:
            for name, us in layer:
                self.kernel(name if batch == 1 or "gemm" not in name else f"{name}_{batch}", us)
        for _ in range(self.plan.layer_reads):
            self.kernel("nonzero", 2.5)
            self.host.read(16)
            self.host.work(self.plan.layer_us)

    def result(self) -> None:
        """Give the token to the host."""
        if self.plan.result == "read":
            self.host.read()
        elif self.plan.result == "synchronize":
            self.host.synchronize()
        elif self.plan.result == "event":
            self.host.download()
            self.awaited.append(self.host.record(len(self.steps) % 2 + 1))
            if len(self.awaited) > 1:
                self.host.wait_for(self.awaited[-2])

    def step(self, number: int) -> None:
        """One decode step."""
        plan, before = self.plan, self.computed
        batches = plan.batches or (self.random.choice((1, 2, 4)),)
        batch = batches[number % len(batches)]
        self.host.work(plan.host_us)
        self.begun = None
        with self.host.range(plan.marks[0]):
            for _ in range(plan.uploads):
                self.host.upload(64 * batch)
            self.forward(batch)
            if plan.every and number % plan.every == plan.every - 1:
                self.kernel("rebalance", 2 * plan.us)
            for place in range(plan.sampling):
                self.kernel(f"sample_{place}", 3)
            self.result()
        self.note(before, PASSES if plan.kind == "while" and plan.node_mode else 1)

    def note(self, before: int, passes: int) -> None:
        """Note where the step began, or each pass of it."""
        begun = self.computed if self.begun is None else self.begun
        starts = [begun] if passes == 1 else self._pass_starts(passes)
        length = (self.computed - begun) // passes
        for turn, start in enumerate(starts):
            self.steps.append((start - length // 20 if turn else before, start, self.prefilled and not turn))
        self.prefilled = False

    def _pass_starts(self, passes: int) -> list[int]:
        """When the first node of each pass of the last launch ran."""
        nodes = [row for row in self.machine.sketch.rows["operations"] if row.get("graph_node")]
        first = [
            row["start_ns"] for row in nodes if isinstance(row["graph_node"], int) and row["graph_node"] % 2**32 == 1
        ]
        return [start for start in first[-passes:] if isinstance(start, int)]

    # What disturbs the steps

    def slowly(self, number: int) -> None:
        """Make some steps slow."""
        places = {(2 * place + 1) * self.plan.steps // (2 * self.plan.slow) for place in range(self.plan.slow)}
        if number in places:
            self.host.work(20 * self.plan.host_us)

    def prefill(self) -> None:
        """A prompt: longer kernels of other names."""
        if self.plan.idle_us:
            self.host.work(self.plan.idle_us)
        self.host.work(self.plan.host_us)
        self.host.upload(1 << 16)
        body = self.layer("prefill_", 12) * self.plan.layers
        if self.plan.prefill_by_graph and not self.eager:
            self.host.replay(Graph(90, body))
        else:
            for name, us in body:
                self.host.kernel(name, us)
        self.host.read()
        self.prefilled = True

    def set_up(self) -> None:
        """Weights, warm-up and graph captures, as before the first request."""
        for _ in range(12):
            self.host.work(3_000)
            self.host.upload(200_000_000, memory=0, us=4_000)
        graph = self.whole(3, 1)
        for name, us in graph.nodes * 2:
            self.host.kernel(name, us, call_us=20)
        self.host.synchronize("cudaDeviceSynchronize_v3020")
        for number in range(6):
            self.host.capture(Graph(100 + number, graph.nodes))
            self.host.replay(Graph(100 + number, graph.nodes))
            self.host.synchronize("cudaDeviceSynchronize_v3020")
        self.host.work(100_000)
        self.computed = self.host.queued_until()

    def play(self) -> None:
        """Everything, in order."""
        plan = self.plan
        self.eager = plan.kind == "assisted" and self.seed % 2 == 0
        if plan.setup:
            self.set_up()
            self.prefill()
        for number in range(plan.steps):
            if plan.prefill_every and number % plan.prefill_every == plan.prefill_every // 2:
                self.prefill()
            if plan.fallback and number == plan.steps // 2:
                self.eager = True
            self.slowly(number)
            self.step(number)


def engine(seed: int, plan: Plan | None = None) -> Engine:
    """Play a plan, or the one that the seed draws."""
    played = Engine(plan or draw(seed), seed)
    played.play()
    return played


def right(found: Sequence[int], steps: Sequence[tuple[int, int, bool]], share: float = 0.9) -> bool:
    """Tell whether the begins of windows found are those of the steps: nearly each once, and hardly another.

    A begin is right between the end of the compute before and a tenth of the step behind its own. A step right behind
    a prefill may be part of the window that holds the prefill.
    """
    begins = np.sort(np.array(found, np.int64))
    before, begun, optional = (np.array(column, np.int64) for column in zip(*steps, strict=True))
    length = int(np.median(np.diff(begun))) if len(begun) > 1 else 0
    low, high = np.searchsorted(begins, before - US), np.searchsorted(begins, begun + length // 10, side="right")
    hit = high > low
    needed = optional == 0
    return bool(hit[needed].sum() >= share * needed.sum() and hit.sum() >= share * len(begins))
