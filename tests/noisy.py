"""Another decode loop with one regression seeded in each, on a host whose every call and piece of work scatters.

It drafts three times a step, its kernels are others and its host differs from capture to capture by some per cent, as
real hosts do. What is seeded goes beyond `tests.seeded`: more drafts, waits for the whole device, calls in every step.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from bubblefinder.trace.sketch import process_key
from tests.seeded import SHAPES, PacedHost, Seed, graph, play, with_shapes
from tests.simulate import US, Graph, Machine, nodes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from bubblefinder.trace.model import Trace

SCATTER = 0.06
"""Of each call and piece of work, log-normal. Median steps of real loops bound by their host scatter by 1 to 8 %."""
PACE = 0.03
"""Between captures, likewise."""
LAYER = (("norm", 2.4), ("qkv", 7.0), ("attn_decode", 11.0), ("gate", 3.0), ("moe_up", 9.0), ("moe_down", 8.0))
DRAFT = Graph(15, (*nodes("embed", us=5), *(nodes("draft_attn", "draft_mlp", us=6) * 2)))
VERIFY = Graph(16, LAYER * 20)
EXTEND = Graph(17, nodes("extend_attn", "extend_mlp", "lm_head", us=7) * 2)


@dataclass(slots=True)
class NoisyHost(PacedHost):
    """A host whose times scatter."""

    def work(self, us: float) -> None:
        PacedHost.work(self, self._scattered(us))

    def call(self, api: str, us: float = 2, *, until: int = 0, frames: Sequence[str] = (), **values: int) -> int:
        return PacedHost.call(self, api, us if until else self._scattered(us), until=until, frames=frames, **values)

    def _scattered(self, us: float) -> float:
        return us * math.exp(self.machine.random.gauss(0, SCATTER))


@dataclass(frozen=True, slots=True)
class Loop:
    """What differs from the healthy loop.

    Attributes:
        seed: what is seeded, as in the other loop.
        times: kernels that take another time, in microseconds.
        shapes: launch shapes of kernels.
        drafts: how often the draft is replayed.
        sync: a call that waits before verify.
        calls: the host makes in each step, with their microseconds.
        marks: whether the program marks its ranges.
    """

    seed: Seed = Seed(work_us=220, pdl=False)  # noqa: RUF009 - a frozen value
    times: dict[str, float] = field(default_factory=dict)
    shapes: dict[str, tuple[str, str]] = field(default_factory=dict)
    drafts: int = 3
    sync: str = ""
    calls: tuple[tuple[str, float], ...] = ()
    marks: bool = True

    def timed(self, made: Graph) -> Graph:
        """The graph with the kernels' own times."""
        return replace(made, nodes=tuple((name, self.times.get(name, us)) for name, us in made.nodes))


def trace(loop: Loop, *, number: int = 1, steps: int = 40, node_mode: bool = True) -> Trace:
    """The capture of a loop; `number` seeds its noise."""
    machine = Machine(seed=number, node_mode=node_mode)
    host = NoisyHost(machine, process_key(1001), 0, 1, 1_000 * US, seed=loop.seed)
    pace = math.exp(machine.random.gauss(0, PACE))
    before: tuple[int, int] | None = None
    for k in range(steps):
        with _marked(loop, host, "decode_step"):
            event = _step(loop, host, k, pace)
        if before:
            host.wait_for(before)
        before = event
    return with_shapes(machine.trace(f"noisy_{number}"), {**SHAPES, "moe_down": loop.seed.shape, **loop.shapes})


def _step(loop: Loop, host: NoisyHost, number: int, pace: float) -> tuple[int, int]:
    seed = loop.seed
    speed = seed.gpu_speed * (2.0 if number < seed.cold else 1.0)
    with _marked(loop, host, "prepare_batch"):
        host.work(seed.work_us * pace)
        if number % seed.pause_every == 3:
            host.work(seed.pause_us)
        for api, us in loop.calls:
            host.call(api, us)
    host.upload()
    for _ in range(loop.drafts):
        play(host, graph(seed, loop.timed(DRAFT), speed), seed)
    if loop.sync:
        host.synchronize(loop.sync)
    play(host, graph(seed, loop.timed(VERIFY), speed), seed)
    if seed.read:
        with _marked(loop, host, "sample"):
            host.read(8)
            host.work(60)
    play(host, graph(seed, loop.timed(EXTEND), speed), seed)
    host.download()
    return host.record(number % 2)


def _marked(loop: Loop, host: NoisyHost, name: str) -> AbstractContextManager[None]:
    return host.range(name) if loop.marks else nullcontext()
