"""A decode loop of three CUDA graphs a step, whose host does one thing on purpose.

usage: python -m workloads.decode VARIANT [--steps 40] [--result FILE]

Prints, and writes where asked, the untraced time of a step. The captured part is what cudaProfilerStart and Stop
enclose. No weights, no model: what matters is what the host does between the graphs.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import os
import statistics
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HIDDEN = 4096
LAYERS = {"draft": 2, "verify": 48, "extend": 1}
TOKENS = 4
HOST_WORK_S = 0.0003
"""Less than verify takes on the GPU, so that a host which waits for nothing is ahead."""
SLOW_S = 0.002
"""More than a step takes on two GPUs: a host that works less than that longer is still ahead, and nothing is seen."""
WARM_STEPS = 20
UNTRACED_STEPS = 200
GARBAGE = 200_000
LEAVING_S = 15
"""Giving NCCL's communicators back takes a second, or for ever where it waits for what never comes."""
mark = torch.cuda.nvtx.range


class Loop:
    """Weights, static buffers and a graph for each part of a step."""

    def __init__(self, *, graphs: bool, ranks: int) -> None:
        """Capture the graphs after a warm-up on a stream of its own, as PyTorch asks for."""
        self.ranks = ranks
        self.device = torch.device("cuda", torch.cuda.current_device())
        self.weights = {
            part: [torch.randn(HIDDEN, HIDDEN, device=self.device, dtype=torch.bfloat16) * 0.01 for _ in range(layers)]
            for part, layers in LAYERS.items()
        }
        self.state = torch.randn(TOKENS, HIDDEN, device=self.device, dtype=torch.bfloat16)
        self.lengths = torch.ones(1, device=self.device, dtype=torch.int64)
        self.pinned = torch.empty(1, dtype=torch.int64, pin_memory=True)
        self.done: torch.cuda.Event | None = None
        self.graphs = {part: self._captured(part) for part in LAYERS} if graphs else {}

    def layers(self, part: str) -> None:
        """Run the layers of a part, kernel by kernel."""
        for weight in self.weights[part]:
            hidden = torch.nn.functional.silu(self.state @ weight)
            if self.ranks > 1:
                dist.all_reduce(hidden)
            self.state.copy_(torch.nn.functional.rms_norm(self.state + hidden, (HIDDEN,)))
        self.lengths += 1

    def run(self, part: str, *, eager: bool = False) -> None:
        """Replay the graph of a part, or run it without."""
        with mark(part):
            if part in self.graphs and not eager:
                self.graphs[part].replay()
            else:
                self.layers(part)

    def _captured(self, part: str) -> torch.cuda.CUDAGraph:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.layers(part)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        # NCCL's watchdog asks for events from a thread of its own, which a capture of the whole process would forbid.
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self.layers(part)
        return graph

    def wait_for_previous(self) -> None:
        """Copy the lengths without blocking, and wait only for the copy of the step before."""
        if self.done is not None:
            self.done.synchronize()
        self.pinned.copy_(self.lengths, non_blocking=True)
        self.done = torch.cuda.Event()
        self.done.record()


def work(seconds: float) -> None:
    """Keep the host busy as bookkeeping does; sleeping would give the CPU away."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


def ahead(loop: Loop, _: int) -> None:
    """Let the host run ahead."""
    loop.run("verify")
    loop.wait_for_previous()


def read(loop: Loop, _: int) -> None:
    """Read the lengths back at once."""
    loop.run("verify")
    with mark("read_lengths"):
        loop.lengths.cpu()


def collect(loop: Loop, step: int) -> None:
    """Collect garbage every 8th step."""
    ahead(loop, step)
    if step % 8 == 0:
        with mark("collect"):
            kept = [[] for _ in range(GARBAGE)]
            for one in kept:
                one.append(one)
            del kept
            gc.collect()


def empty_cache(loop: Loop, step: int) -> None:
    """Give cached memory back every 4th step."""
    ahead(loop, step)
    if step % 4 == 0:
        scratch = torch.empty(64 << 20, device=loop.device, dtype=torch.uint8)
        del scratch
        torch.cuda.empty_cache()


def lazy(loop: Loop, step: int) -> None:
    """Sort for the first time at step 10, as the first sampled request does: CUDA loads the kernel's code then."""
    ahead(loop, step)
    if step == 10:
        loop.state.float().sort(dim=-1)


def fallback(loop: Loop, step: int) -> None:
    """Run verify without its graph every 5th step."""
    loop.run("verify", eager=step % 5 == 0)
    loop.wait_for_previous()


def eager(loop: Loop, _: int) -> None:
    """Run verify without graphs and read one number."""
    loop.run("verify")
    loop.lengths.item()


def slow_rank(loop: Loop, step: int) -> None:
    """Keep rank 1 longer at work."""
    ahead(loop, step)
    if dist.get_rank() == 1:
        work(SLOW_S)


VARIANTS: dict[str, Callable[[Loop, int], None]] = {
    "ahead": ahead,
    "read": read,
    "gc": collect,
    "empty_cache": empty_cache,
    "lazy": lazy,
    "fallback": fallback,
    "eager": eager,
    "slow_rank": slow_rank,
}


def one_step(loop: Loop, variant: Callable[[Loop, int], None], step: int) -> None:
    """Run a step: the draft, what the variant does around verify, the extension, and the host's own work."""
    with mark("decode_step"):
        loop.run("draft")
        variant(loop, step)
        loop.run("extend")
        work(HOST_WORK_S)


def timed(loop: Loop, variant: Callable[[Loop, int], None], steps: int) -> list[float]:
    """Return the time of each step in ms, as the host sees them, the GPU waited for at both ends alone."""
    torch.cuda.synchronize()
    edges = [time.perf_counter()]
    for step in range(steps):
        one_step(loop, variant, step)
        edges.append(time.perf_counter())
    torch.cuda.synchronize()
    edges[-1] = time.perf_counter()
    return [1e3 * (end - start) for start, end in pairwise(edges)]


def measure(loop: Loop, act: Callable[[Loop, int], None], steps: int, untraced: Callable[[Loop, int], None]) -> float:
    """Return the untraced time of a step in ms, then run `steps` inside the profiler's range."""
    timed(loop, untraced, WARM_STEPS)
    took = statistics.fmean(timed(loop, untraced, UNTRACED_STEPS))
    torch.cuda.profiler.start()
    timed(loop, act, steps)
    torch.cuda.profiler.stop()
    return took


def arguments(choices: Iterable[str], about: str | None, *, steps: int = 40) -> argparse.Namespace:
    """Parse the command line that all workloads have."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("variant", choices=tuple(choices))
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--result", type=Path)
    return parser.parse_args()


def tell(asked: argparse.Namespace, step_ms: float, **others: float | list[float]) -> None:
    """Print the untraced time of a step, and what else was measured; add it to the file of the command line."""
    told = json.dumps({"variant": asked.variant, "untraced_step_ms": step_ms, **others})
    print(told, flush=True)
    if asked.result:
        with asked.result.open("a") as results:
            results.write(f"{told}\n")


def main() -> None:
    """Run the variant that the command line names."""
    asked = arguments(VARIANTS, __doc__)
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    if ranks > 1:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl")
    loop = Loop(graphs=asked.variant != "eager", ranks=ranks)
    act = VARIANTS[asked.variant]
    step_ms = measure(loop, act, asked.steps, ahead if asked.variant == "lazy" else act)
    if int(os.environ.get("RANK", "0")) == 0:
        tell(asked, step_ms)
    if ranks > 1:
        loop.graphs.clear()  # NCCL waits for every graph that holds its communicator
        torch.cuda.synchronize()
        faulthandler.dump_traceback_later(LEAVING_S, exit=True)
        dist.destroy_process_group()
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
