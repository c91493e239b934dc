"""Decode loops with one regression seeded in each: what a comparison with the healthy loop must name first.

The loops are simulated: hosts, streams and graphs by `tests.simulate`, launch shapes by the table below.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from bubblefinder.report.build import Options, analyze_trace
from bubblefinder.trace.model import KERNEL
from bubblefinder.trace.sketch import process_key
from tests.simulate import BETWEEN, US, Graph, Host, Machine, collective, nodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.report.model import Report
    from bubblefinder.trace.model import Trace

LAYERS = 12
SHAPES = {"moe_down": ("80x4", "128"), "moe_up": ("32x12", "128"), "gate": ("4", "256")}
DRAFT = Graph(5, (*nodes("embed"), *(nodes("draft_attn", "draft_mlp") * 3)))
LAYER = (("norm", 3.0), ("qkv", 9.0), ("gate", 4.0), ("moe_up", 14.0), ("moe_down", 12.0))
VERIFY = Graph(6, LAYER * LAYERS)
EXTEND = Graph(7, nodes("extend_attn", "extend_mlp") * 3)


@dataclass(frozen=True, slots=True)
class Seed:
    """What differs from the healthy loop; the defaults are that loop.

    Attributes:
        factor: how much longer `slower` takes.
        slower: a kernel's name.
        swapped: a kernel that runs in place of `gate`, and how long.
        added: a kernel put in after each `gate`.
        shape: grid and block of `moe_down`.
        pdl: whether nodes begin `early_us` before the one before them ends.
        early_us: by how much.
        later_ns: how much later the tracer lets nodes begin that don't.
        eager: the graph that runs kernel by kernel, by its id; 0 for none.
        read: whether a scalar is read back after verify.
        work_us: bookkeeping of the host a step.
        pause_us: how long the host stops in every `pause_every`-th step.
        alloc_us: how long `cudaHostAlloc` takes in those steps instead.
        cold: so many first steps whose kernels take twice as long.
        host_speed: times of host work and calls over those of the healthy loop.
        hold_us: for how long about another thread takes the core; every `hold_every_us` of work or so.
        gpu_speed: kernel times likewise.
    """

    factor: float = 1.0
    slower: str = ""
    swapped: tuple[str, float] | None = None
    added: str = ""
    shape: tuple[str, str] = SHAPES["moe_down"]
    pdl: bool = True
    early_us: float = 1.0
    later_ns: int = 0
    eager: int = 0
    read: bool = False
    work_us: float = 150
    pause_us: float = 0
    alloc_us: float = 0
    pause_every: int = 13
    cold: int = 0
    host_speed: float = 1.0
    hold_us: float = 0
    hold_every_us: float = 0
    gpu_speed: float = 1.0


HEALTHY = Seed()


@dataclass(slots=True)
class PacedHost(Host):
    """A host whose own time, in work and in calls, is longer by a factor, and that has to share its core."""

    seed: Seed = HEALTHY
    left_us: float = 0

    def work(self, us: float) -> None:
        Host.work(self, self._shared(us))

    def call(self, api: str, us: float = 2, *, until: int = 0, frames: Sequence[str] = (), **values: int) -> int:
        return Host.call(self, api, us if until else self._shared(us), until=until, frames=frames, **values)

    def _shared(self, us: float) -> float:
        """So much time of its own with what another thread takes in between."""
        seed, dice, lost = self.seed, self.machine.random, 0.0
        self.left_us -= us * seed.host_speed if seed.hold_us else 0
        while self.left_us < 0:
            lost += seed.hold_us * dice.uniform(0.5, 1.5)
            self.left_us += dice.expovariate(1 / seed.hold_every_us)
        return us * seed.host_speed + lost


def graph(seed: Seed, healthy: Graph, speed: float) -> Graph:
    """The graph with what was seeded."""
    made = list[tuple[str, float]]()
    for name, us in healthy.nodes:
        kernel = seed.swapped if seed.swapped and name == "gate" else (name, us)
        made.append((kernel[0], kernel[1] * speed * (seed.factor if name == seed.slower else 1.0)))
        if seed.added and name == "gate":
            made.append((seed.added, 3.0 * speed))
    return replace(healthy, nodes=tuple(made))


def replay(host: Host, made: Graph, seed: Seed) -> None:
    """Launch a graph; with PDL each node but the first begins before the one before it ends, and waits inside."""
    machine, begun = host.machine, host.now
    correlation = host.call("cudaGraphLaunch_v10000", 40)
    now = host._start(begun, None, 0) + 2 * US
    for number, (name, us) in enumerate(made.nodes, 1):
        end = now + machine.ns(us)
        early = machine.ns(seed.early_us) if seed.pdl and number > 1 else 0
        if machine.node_mode:
            begin = now - early
            host._run(KERNEL, begin, end, correlation, None, name=name, graph_node=made.id << 32 | number)
        now = end + (0 if seed.pdl else machine.ns(BETWEEN) + seed.later_ns * machine.node_mode)
    if not machine.node_mode:
        host._run(3, host._start(begun, None, 0) + 2 * US, now, correlation, None, graph=made.id)
    host.occupy(now)


def play(host: Host, made: Graph, seed: Seed) -> None:
    """Run a graph's work as one replay, or kernel by kernel where it fell back."""
    if made.id != seed.eager:
        replay(host, made, seed)
        return
    for name, us in made.nodes:
        host.kernel(name, us, call_us=6)
        host.work(9)


def step(host: Host, seed: Seed, number: int, steps: int) -> tuple[int, int]:
    """One decode step of the run-ahead loop; returns the event behind it."""
    speed = seed.gpu_speed * (2.0 if number < seed.cold else 1.0)
    with host.range("prepare_batch"):
        host.work(seed.work_us)
        if number % seed.pause_every == 3 and steps:
            host.work(seed.pause_us)
            if seed.alloc_us:
                host.call("cudaHostAlloc_v3020", seed.alloc_us)
    host.upload()
    for healthy in (DRAFT, VERIFY, EXTEND):
        play(host, graph(seed, healthy, speed), seed)
        if seed.read and healthy is VERIFY:
            with host.range("sample"):
                host.read(8)
                host.work(60)
    host.download()
    return host.record(number % 2)


def trace(seed: Seed = HEALTHY, *, steps: int = 40, number: int = 1, node_mode: bool = True) -> Trace:
    """The capture of a loop; `number` seeds its jitter."""
    machine = Machine(seed=number, node_mode=node_mode)
    host = PacedHost(machine, process_key(1001), 0, 1, 1_000 * US, seed=seed)
    before: tuple[int, int] | None = None
    for k in range(steps):
        with host.range("decode_step"):
            event = step(host, seed, k, steps)
        if before:
            host.wait_for(before)
        before = event
    return with_shapes(machine.trace(f"seeded_{number}"), {**SHAPES, "moe_down": seed.shape})


def ranks(
    seed: Seed = HEALTHY, *, late_us: float = 0, late: int = 1, count: int = 2, steps: int = 30, number: int = 1
) -> Trace:
    """Ranks that meet in an all-reduce behind verify; the rank `late` works `late_us` longer before it."""
    machine = Machine(seed=number)
    hosts = [machine.host(1001 + rank, gpu=rank) for rank in range(count)]
    for _ in range(steps):
        for rank, host in enumerate(hosts):
            with host.range("prepare_batch"):
                host.work(seed.work_us + (late_us if rank == late else 0))
            host.upload()
            replay(host, graph(seed, VERIFY, 1.0), seed)
        collective(hosts, "ncclDevKernel_AllReduce_Sum", 20)
        for host in hosts:
            host.read(8)
    return with_shapes(machine.trace(f"ranks_{number}"), SHAPES)


def with_shapes(made: Trace, shapes: dict[str, tuple[str, str]]) -> Trace:
    """The capture with launch shapes for the kernels that the table names, and one for all others."""
    kernels = made.operations.filter(pl.col("kind") == KERNEL)
    names = [made.names[name] for name in kernels["name"]]
    told = [shapes.get(name, ("64", "128")) for name in names]
    frame = pl.DataFrame(
        {
            "row": kernels["row"],
            "grid": [grid for grid, _ in told],
            "block": [block for _, block in told],
            "registers": pl.Series([32] * len(told), dtype=pl.Int64),
            "shared_bytes": pl.Series([0] * len(told), dtype=pl.Int64),
            "local_bytes": pl.Series([0] * len(told), dtype=pl.Int64),
        },
        schema_overrides={"grid": pl.String, "block": pl.String},
    )
    return replace(made, launch_shapes=lambda: frame)


def report(made: Trace) -> Report:
    """What is said of a capture, launch shapes included."""
    return analyze_trace(made, Options(launch_shapes=True))
