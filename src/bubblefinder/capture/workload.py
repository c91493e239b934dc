"""The calibration workload: plays the recipes before, inside and after a profiler range and writes what each took.

Run as `python -m bubblefinder.capture.workload OUT.json`, alone or under `nsys profile -c cudaProfilerApi`. It needs
the NVIDIA driver and nothing else. Times on the GPU come from the GPU's own timer, read by `tick` kernels at both ends
of every chain, so they mean the same with and without a profiler; times on the host are the calls' own.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import json
import sys
import time
from ctypes import c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bubblefinder.capture import kernels
from bubblefinder.capture.cuda import Arguments, Driver
from bubblefinder.capture.recipes import Item, Recipe, eager_recipes, graph_recipes

if TYPE_CHECKING:
    from collections.abc import Callable

SCHEMA = "bubblefinder.measurements/1"
PHASES = ("before", "inside", "after")
_PLAYS = 6
_API_CALLS = 200
_SETTLE_S = 2
_LOG_SLOTS = 4096
_NODE_NS = 2_500
_MAX_SPIN_NS = 60_000_000
_HOPPER = 9


@dataclass(frozen=True, slots=True)
class Chain:
    """A recipe captured into a graph."""

    recipe: Recipe
    executable: c_void_p


class Bench:
    """The device, its kernels and buffers, and the ways of playing a chain on them."""

    def __init__(self) -> None:
        self.driver = Driver()
        self.gpu = self.driver.gpu()
        self.stream = self.driver.stream()
        self.dependent_launch = self.gpu.compute_capability[0] >= _HOPPER
        names = (*(f"busy{i}" for i in range(kernels.FUNCTIONS)), "stamped", "wide", "tick")
        self.functions = self.driver.load(kernels.plain_module(), names)
        if self.dependent_launch:
            self.functions |= self.driver.load(kernels.dependent_module(), ("dependent",))
        self.data = [self.driver.allocate(64 << 20) for _ in range(2)]
        self.log = self.driver.allocate(8 * (_LOG_SLOTS + 1))
        self.slots = self.driver.allocate(16 * _LOG_SLOTS)
        self.event = self.driver.event()
        self.pinned = self.driver.pinned(4096)

    def submit(self, item: Item, place: int, stream: c_void_p, branch: int = 0) -> None:
        """Submit one operation."""
        data = self.data[branch]
        if item.kind == "memset":
            self.driver.call("cuMemsetD32Async", data, c_uint(0), c_size_t(item.size // 4), stream)
        elif item.kind == "copy":
            target = c_uint64(data.value + (32 << 20))
            self.driver.call("cuMemcpyDtoDAsync_v2", target, data, c_size_t(item.size), stream)
        else:
            self._launch(item, place, stream, data)

    def _launch(self, item: Item, place: int, stream: c_void_p, data: c_uint64) -> None:
        cycles = int(item.micros * self.gpu.clock_khz / 1e3)
        values: list[Any] = [data, c_uint(cycles), c_uint(item.words)]
        if item.kind == "stamped":
            values.append(c_uint64(self.slots.value + 16 * place))
        elif item.kind == "wide":
            values.append((c_ubyte * kernels.PADDING_BYTES)())
        name = f"busy{item.function}" if item.kind == "kernel" else item.kind
        launch = self.driver.launch_dependent if item.kind == "dependent" else self.driver.launch
        launch(self.functions[name], item.grid, item.block, stream, Arguments(*values))

    def tick(self) -> None:
        """Log the GPU's time at this place of the stream."""
        self.driver.launch(self.functions["tick"], 1, 1, self.stream, Arguments(self.log, c_uint(_LOG_SLOTS)))

    def spin(self, span_ns: int) -> None:
        """Keep the GPU busy for about `span_ns`, so that what follows is queued before it may run."""
        self.submit(Item("kernel", min(span_ns, _MAX_SPIN_NS) / 1e3, 1), 0, self.stream)

    def submit_all(self, recipe: Recipe) -> None:
        """Submit a whole chain between two ticks."""
        streams = [self.stream, *(self.driver.stream() for _ in range(recipe.branches - 1))]
        self.tick()
        for side in streams[1:]:
            self._follow(side, self.stream)
        for place, item in enumerate(recipe.items):
            branch = place % recipe.branches
            self.submit(item, place, streams[branch], branch)
        for side in streams[1:]:
            self._follow(self.stream, side)
        self.tick()

    def _follow(self, later: c_void_p, earlier: c_void_p) -> None:
        event = self.driver.event()
        self.driver.call("cuEventRecord", event, earlier)
        self.driver.call("cuStreamWaitEvent", later, event, c_uint(0))

    def prepare(self, recipe: Recipe) -> Chain:
        """Capture `recipe` into a graph."""
        self.driver.begin_capture(self.stream)
        self.submit_all(recipe)
        return Chain(recipe, self.driver.end_capture(self.stream))

    def clear_log(self) -> None:
        """Forget all ticks and stamps."""
        self.driver.call("cuMemsetD8_v2", self.log, c_ubyte(0), c_size_t(8))
        for half, value in ((0, 255), (8, 0)):
            self.driver.call(
                "cuMemsetD2D8_v2",
                c_uint64(self.slots.value + half),
                c_size_t(16),
                c_ubyte(value),
                c_size_t(8),
                c_size_t(_LOG_SLOTS),
            )
        self.driver.synchronize(c_void_p())

    def ticks(self) -> list[int]:
        """Return the GPU times logged since the last clearing."""
        count = self.driver.read(self.log, 1)[0]
        return self.driver.read(self.log, count + 1)[1:]

    def stamps(self, count: int) -> list[tuple[int, int]]:
        """Return when each stamped kernel's first block began and its last ended."""
        flat = self.driver.read(self.slots, 2 * count)
        return list(zip(flat[::2], flat[1::2], strict=True))


def _timed(call: Callable[[], object]) -> int:
    begin = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - begin


def _spans(ticks: list[int]) -> dict[str, list[int]]:
    first, last = ticks[::2], ticks[1::2]
    return {
        "span_ns": [end - begin for begin, end in zip(first, last, strict=True)],
        "between_ns": [begin - end for end, begin in zip(last, first[1:], strict=False)],
    }


def play_queued(bench: Bench, chain: Chain) -> dict[str, list[int]]:
    """Launch the graph several times behind a long kernel: the GPU never waits for the host."""
    bench.clear_log()
    bench.spin(len(chain.recipe.items) * _PLAYS * _NODE_NS)
    launch = bench.driver.function("cuGraphLaunch")
    calls = [_timed(lambda: launch(chain.executable, bench.stream)) for _ in range(_PLAYS)]
    bench.driver.synchronize(bench.stream)
    return {"call_ns": calls, **_spans(bench.ticks())}


def play_idle(bench: Bench, chain: Chain) -> dict[str, list[int]]:
    """Launch the graph several times, each onto an idle GPU and waited for."""
    bench.clear_log()
    launch, synchronize = bench.driver.function("cuGraphLaunch"), bench.driver.function("cuStreamSynchronize")
    calls, periods = [], []
    for _ in range(_PLAYS):
        begin = time.perf_counter_ns()
        calls.append(_timed(lambda: launch(chain.executable, bench.stream)))
        synchronize(bench.stream)
        periods.append(time.perf_counter_ns() - begin)
    return {"call_ns": calls, "period_ns": periods, **_spans(bench.ticks())}


def play_eager(bench: Bench, recipe: Recipe) -> dict[str, list[int]]:
    """Launch the chain's operations one by one behind a long kernel."""
    bench.clear_log()
    periods = []
    for _ in range(_PLAYS // 2):
        bench.spin(len(recipe.items) * 30_000)
        periods.append(_timed(lambda: bench.submit_all(recipe)))
        bench.driver.synchronize(bench.stream)
    return {"period_ns": periods, **_spans(bench.ticks())}


def play_stamped(bench: Bench, chain: Chain) -> dict[str, list[int]]:
    """Play a graph of stamped kernels once, already warm: their lengths and the gaps, by the GPU's timer."""
    bench.clear_log()
    bench.driver.call("cuGraphLaunch", chain.executable, bench.stream)
    bench.driver.synchronize(bench.stream)
    stamps = bench.stamps(len(chain.recipe.items))
    inside = [end - begin for begin, end in stamps]
    between = [following[0] - previous[1] for previous, following in itertools.pairwise(stamps)]
    return {"inside_ns": inside, "between_ns": between}


def api_calls(bench: Bench) -> dict[str, Callable[[], object]]:
    """Return the host calls to time, each bound to its arguments."""
    function, data, stream = bench.driver.function, bench.data[0], bench.stream
    arguments = Arguments(data, c_uint(0), c_uint(1))
    shape = [c_uint(value) for value in (1, 1, 1, 32, 1, 1, 0)]
    busy, version = bench.functions["busy0"], ctypes.c_int()
    size = c_size_t(64)
    bound: dict[str, tuple[Any, ...]] = {
        "cuLaunchKernel": (busy, *shape, stream, arguments.pointers, None),
        "cuMemsetD32Async": (data, c_uint(0), c_size_t(16), stream),
        "cuMemcpyDtoDAsync_v2": (c_uint64(data.value + 4096), data, size, stream),
        "cuMemcpyHtoDAsync_v2": (data, bench.pinned, size, stream),
        "cuMemcpyDtoHAsync_v2": (bench.pinned, data, size, stream),
        "cuEventRecord": (bench.event, stream),
        "cuEventQuery": (bench.event,),
        "cuStreamQuery": (stream,),
        "cuStreamSynchronize": (stream,),
        "cuDriverGetVersion": (ctypes.byref(version),),
    }
    return {name: _Call(function(name), bound_arguments, arguments) for name, bound_arguments in bound.items()}


class _Call:
    def __init__(self, function: Callable[..., object], arguments: tuple[Any, ...], keep: object) -> None:
        self._function, self._arguments, self._keep = function, arguments, keep

    def __call__(self) -> object:
        return self._function(*self._arguments)


def play_api(bench: Bench, call: Callable[[], object]) -> dict[str, list[int]]:
    """Make one call many times on a GPU with nothing else to do."""
    bench.driver.synchronize(bench.stream)
    begin = time.perf_counter_ns()
    calls = [_timed(call) for _ in range(_API_CALLS)]
    period = time.perf_counter_ns() - begin
    bench.driver.synchronize(bench.stream)
    return {"call_ns": calls, "loop_ns": [period]}


def _play_all(bench: Bench, chains: list[Chain]) -> dict[str, dict[str, Any]]:
    results: dict[str, dict[str, Any]] = {
        "api": {name: play_api(bench, call) for name, call in api_calls(bench).items()}
    }
    results["graphs"] = {
        chain.recipe.name: {"queued": play_queued(bench, chain), "idle": play_idle(bench, chain)} for chain in chains
    }
    results["eager"] = {recipe.name: play_eager(bench, recipe) for recipe in eager_recipes()}
    results["stamped"] = {
        chain.recipe.name: play_stamped(bench, chain) for chain in chains if chain.recipe.items[0].kind == "stamped"
    }
    return results


def measure() -> dict[str, Any]:
    """Play everything before, inside and after the profiler range and return the measurements."""
    bench = Bench()
    chains = [bench.prepare(recipe) for recipe in graph_recipes(dependent_launch=bench.dependent_launch)]
    gc.collect()
    gc.disable()
    _play_all(bench, chains)
    phases: dict[str, Any] = {}
    for phase in PHASES:
        if phase == "inside":
            bench.driver.profiler(on=True)
        phases[phase] = _play_all(bench, chains)
        if phase == "inside":
            bench.driver.profiler(on=False)
            time.sleep(_SETTLE_S)
    recipes = {recipe.name: recipe.counts() for recipe in [*(chain.recipe for chain in chains), *eager_recipes()]}
    return {"schema": SCHEMA, "gpu": asdict(bench.gpu), "recipes": recipes, "phases": phases}


def main() -> None:
    """Write the measurements to the path given on the command line."""
    Path(sys.argv[1]).write_text(json.dumps(measure()), encoding="utf-8")


if __name__ == "__main__":
    main()
