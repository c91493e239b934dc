"""A CUDA driver made of Python: a graph is a list of launches, an operation a microsecond of its own clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bubblefinder.capture.cuda import Gpu

if TYPE_CHECKING:
    from collections.abc import Callable

OPERATION_NS = 1_000


class FakeDriver:
    """Stands in for `Driver`: keeps what was submitted, and what the tick kernels would have logged."""

    def __init__(self, capability: tuple[int, int] = (9, 0)) -> None:
        self.capability = capability
        self.clock = 0
        self.ticks: list[int] = []
        self.capturing: list[str] | None = None
        self.profiled: list[bool] = []
        self.launches = 0
        self.pointers = 1 << 32

    def gpu(self) -> Gpu:
        return Gpu("Imaginary GPU", 4, 1_000_000, self.capability, 13_000)

    def load(self, ptx: str, names: tuple[str, ...]) -> dict[str, str]:
        assert all(f".entry {name}(" in ptx for name in names)
        return {name: name for name in names}

    def allocate(self, size: int) -> Any:
        from ctypes import c_uint64

        self.pointers += size
        return c_uint64(self.pointers)

    def pinned(self, size: int) -> int:
        return size

    def stream(self) -> str:
        return "stream"

    def event(self) -> str:
        return "event"

    def synchronize(self, stream: object) -> None:
        pass

    def submit(self, name: str) -> None:
        if self.capturing is not None:
            self.capturing.append(name)
            return
        self.clock += OPERATION_NS
        if name == "tick":
            self.ticks.append(self.clock)

    def launch(self, function: str, *_: object) -> None:
        self.submit(function)

    def launch_dependent(self, function: str, *_: object) -> None:
        assert function == "dependent"
        self.submit(function)

    def call(self, name: str, *arguments: Any) -> None:
        if name == "cuMemsetD8_v2":
            self.ticks.clear()
        elif name == "cuGraphLaunch":
            self.play(arguments[0])
        elif name.startswith("cuMem") and name != "cuMemsetD2D8_v2":
            self.submit(name)

    def play(self, graph: list[str]) -> None:
        self.launches += 1
        for name in graph:
            self.submit(name)

    def function(self, name: str) -> Callable[..., int]:
        def called(*arguments: Any) -> int:
            if name == "cuGraphLaunch":
                self.play(arguments[0])
            return 0

        return called

    def begin_capture(self, _: object) -> None:
        self.capturing = []

    def end_capture(self, _: object) -> list[str]:
        graph, self.capturing = self.capturing, None
        assert graph is not None
        return graph

    def read(self, _: object, count: int) -> list[int]:
        if count == 1:
            return [len(self.ticks)]
        if count == len(self.ticks) + 1:
            return [len(self.ticks), *self.ticks]
        return [moment * OPERATION_NS for moment in range(count)]

    def profiler(self, *, on: bool) -> None:
        self.profiled.append(on)
