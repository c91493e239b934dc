"""A simulator of host threads and GPU streams that writes what a profiler would have recorded: the answer is known.

A `Machine` keeps the capture and, for each stream, the moment at which it falls free. A `Host` is a thread with a
clock of its own; each of its methods is a call that takes host time and leaves GPU work behind. Times are
microseconds, and vary by `jitter`. A decode loop whose host reads a token back after each step:

    machine = Machine(seed=3)
    host = machine.host()
    graph = Graph(3, nodes("attn", "mlp") * 12)
    for _ in range(30):
        host.work(250)                       # bookkeeping
        with host.range("decode_step"):      # NVTX, if it is wanted
            host.upload(64)
            host.replay(graph)
            host.read(8)                     # blocks until the GPU is done
    trace = machine.trace()

Two threads hand over to each other by time: `other.not_before(host.now)`. Streams wait for events:
`host.stream_wait(host.record(), stream=13)`. Ranks are hosts of other processes and GPUs on one machine; a collective
of several ranks starts for all when the last arrives (`collective`). Nothing here knows how the analysis works.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from bubblefinder.trace.model import GRAPH, KERNEL, MEMCPY, MEMSET
from bubblefinder.trace.sketch import Sketch, process_key, thread_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.trace.model import Trace

US = 1_000
STREAM = 7
PAGEABLE, PINNED, DEVICE = 0, 1, 2
TO_DEVICE, TO_HOST, ON_DEVICE = 1, 2, 8
LAUNCH_LATENCY, BETWEEN, COPY, RETURN = 3.0, 0.8, 1.2, 2.0

Node = tuple[str, float]
"""A kernel's name and its time in microseconds."""


def nodes(*names: str, us: float = 8) -> tuple[Node, ...]:
    """Kernels of one length."""
    return tuple((name, us) for name in names)


@dataclass(frozen=True, slots=True)
class Graph:
    """A captured graph. `passes`: how often a WHILE node runs its body in one launch."""

    id: int
    nodes: tuple[Node, ...]
    passes: int = 1

    def scaled(self, factor: float, graph_id: int) -> Graph:
        """The same work captured for another batch size: another id, longer or shorter nodes."""
        return Graph(graph_id, tuple((name, us * factor) for name, us in self.nodes), self.passes)


@dataclass(slots=True)
class Machine:
    """The capture, and when each stream falls free. `node_mode`: whether the nodes of graphs are recorded."""

    seed: int = 1
    jitter: float = 0.01
    node_mode: bool = True
    sketch: Sketch = field(default_factory=Sketch)
    free: dict[tuple[int, int, int], int] = field(default_factory=dict)
    random: Random = field(init=False)

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def host(self, pid: int = 1001, *, gpu: int = 0, thread: int = 1, at_us: float = 1_000) -> Host:
        """A launching thread of a process on a GPU, whose clock starts at `at_us`."""
        return Host(self, process_key(pid), gpu, thread, round(at_us * US))

    def ns(self, us: float) -> int:
        """A time that varies, at least 1 ns unless it is 0."""
        return max(1, round(us * US * (1 + self.random.uniform(-self.jitter, self.jitter)))) if us else 0

    def trace(self, name: str = "simulated") -> Trace:
        """What was recorded."""
        return self.sketch.trace(name)


@dataclass(slots=True)
class Host:
    """A host thread. `now` is its clock in ns; `work_starts` the start of every operation it has launched, in order.

    `chain` is the call chain of its calls, innermost first, unless one is given.
    """

    machine: Machine
    process: int
    gpu: int
    number: int
    now: int
    stream: int = STREAM
    work_starts: list[int] = field(default_factory=list)
    chain: Sequence[str] = ()

    @property
    def key(self) -> int:
        """The thread's key in the capture."""
        return thread_key(self.process, self.number)

    def thread(self, number: int) -> Host:
        """Another thread of the same process on the same GPU; its clock starts now."""
        return Host(self.machine, self.process, self.gpu, number, self.now, self.stream)

    # The host alone

    def work(self, us: float) -> None:
        """Work that calls nothing."""
        self.now += self.machine.ns(us)

    def not_before(self, ns: int) -> None:
        """Go on at this moment at the earliest, as a thread does that waits for another."""
        self.now = max(self.now, ns)

    def call(self, api: str, us: float = 2, *, until: int = 0, frames: Sequence[str] = (), **values: int) -> int:
        """A CUDA call that lasts `us`, or until a moment; returns its correlation id.

        `values`: its return_value, stream and event.
        """
        begin, self.now = self.now, max(self.now + self.machine.ns(us), until)
        return self.machine.sketch.call(api, begin, self.now, self.key, frames or self.chain, **values)

    def os_call(self, name: str, us: float) -> None:
        """A call of the operating system in which the thread sleeps or works."""
        begin = self.now
        self.work(us)
        self.machine.sketch.add("os_calls", begin, self.now, thread=self.key, name=name)

    @contextmanager
    def range(self, text: str | None) -> Iterator[None]:
        """An NVTX range around what the thread does; none if the text is None."""
        begin = self.now
        yield
        if text is not None:
            self.machine.sketch.add("nvtx", begin, self.now, process=self.process, thread=self.key, text=text)

    # The GPU

    def queued_until(self, stream: int | None = None) -> int:
        """When the stream falls free, or with stream=-1 the whole device."""
        mine = {key[2]: free for key, free in self.machine.free.items() if key[:2] == (self.gpu, self.process)}
        return max(mine.values(), default=0) if stream == -1 else mine.get(self._stream(stream), 0)

    def occupy(self, until: int, stream: int | None = None) -> None:
        """Keep a stream from starting anything before a moment."""
        place = self.gpu, self.process, self._stream(stream)
        self.machine.free[place] = max(until, self.machine.free.get(place, 0))

    def kernel(
        self,
        name: str,
        us: float,
        *,
        call_us: float = 4,
        stream: int | None = None,
        after: int = 0,
        grid: tuple[int, int] | None = None,
    ) -> int:
        """Launch a kernel; returns when it starts."""
        begun = self.now
        correlation = self.call("cudaLaunchKernel_v7000", call_us)
        start = self._start(begun, stream, after)
        return self._run(KERNEL, start, start + self.machine.ns(us), correlation, stream, name=name, grid=grid)

    def replay(self, graph: Graph, *, call_us: float = 40, stream: int | None = None, recorded: bool = True) -> int:
        """Launch a graph; returns when its first node starts."""
        begun = self.now
        correlation = self.call("cudaGraphLaunch_v10000", call_us)
        first = now = self._start(begun, stream, 0) + 2 * US
        for _ in range(graph.passes):
            for number, (name, us) in enumerate(graph.nodes, 1):
                end = now + self.machine.ns(us)
                if self.machine.node_mode and recorded:
                    self._run(KERNEL, now, end, correlation, stream, name=name, graph_node=graph.id << 32 | number)
                now = end + self.machine.ns(BETWEEN)
        if not self.machine.node_mode and recorded:
            self._run(GRAPH, first, now, correlation, stream, graph=graph.id)
        self.occupy(now, stream)
        return first

    def upload(self, size: int = 64, *, memory: int = PINNED, us: float = COPY, stream: int | None = None) -> int:
        """Copy to the GPU without waiting; returns when the copy starts."""
        begun = self.now
        correlation = self.call("cudaMemcpyAsync_v3020", 5)
        start = self._start(begun, stream, 0)
        sides = {"bytes": size, "copy_kind": TO_DEVICE, "src_kind": memory, "dst_kind": DEVICE}
        return self._run(MEMCPY, start, start + self.machine.ns(us), correlation, stream, **sides)

    def read(self, size: int = 8, *, us: float = COPY, stream: int | None = None) -> int:
        """Copy to pageable memory: the call returns behind the copy. Returns when the copy starts."""
        start = self._start(self.now + 4 * US, stream, 0)
        end = start + self.machine.ns(us)
        correlation = self.call("cudaMemcpyAsync_v3020", 6, until=end + round(RETURN * US))
        sides = {"bytes": size, "copy_kind": TO_HOST, "src_kind": DEVICE, "dst_kind": PAGEABLE}
        return self._run(MEMCPY, start, end, correlation, stream, **sides)

    def download(self, size: int = 8, *, us: float = COPY, stream: int | None = None) -> int:
        """Copy to pinned memory without waiting; returns when the copy ends."""
        begun = self.now
        correlation = self.call("cudaMemcpyAsync_v3020", 5)
        start = self._start(begun, stream, 0)
        end = start + self.machine.ns(us)
        sides = {"bytes": size, "copy_kind": TO_HOST, "src_kind": DEVICE, "dst_kind": PINNED}
        self._run(MEMCPY, start, end, correlation, stream, **sides)
        return end

    def memset(self, size: int = 64, *, us: float = COPY, stream: int | None = None) -> int:
        """Set memory on the GPU; returns when it starts."""
        begun = self.now
        correlation = self.call("cudaMemsetAsync_v3020", 4)
        start = self._start(begun, stream, 0)
        return self._run(MEMSET, start, start + self.machine.ns(us), correlation, stream, bytes=size, dst_kind=DEVICE)

    # Waits

    def synchronize(self, api: str = "cudaStreamSynchronize_v3020", *, stream: int | None = None) -> None:
        """Wait until the stream has run dry, or with a device or context call all of the device."""
        whole = any(word in api for word in ("Device", "Ctx"))
        done = self.queued_until(-1 if whole else stream)
        self.call(api, 2, until=done + round(RETURN * US) if done > self.now else 0, stream=self._stream(stream))

    def record(self, event: int = 1, *, stream: int | None = None) -> tuple[int, int]:
        """Record an event; returns (event, when the GPU passes it)."""
        self.call("cudaEventRecord_v3020", 1.5, event=event, stream=self._stream(stream))
        return event, self.queued_until(stream)

    def wait_for(self, event: tuple[int, int]) -> None:
        """Wait on the host for a recorded event."""
        number, done = event
        until = done + round(RETURN * US) if done > self.now else 0
        self.call("cudaEventSynchronize_v3020", 2, until=until, event=number)

    def stream_wait(self, event: tuple[int, int], *, stream: int | None = None) -> None:
        """Let a stream wait for an event; the host goes on."""
        self.call("cudaStreamWaitEvent_v3020", 1.5, event=event[0], stream=self._stream(stream))
        self.occupy(event[1], stream)

    def capture(self, graph: Graph, *, us: float = 3) -> None:
        """Record a graph by stream capture and instantiate it: calls that leave no GPU work."""
        self.call("cudaStreamBeginCapture_v10000", 5)
        for _ in graph.nodes:
            self.call("cudaLaunchKernel_v7000", us)
        self.call("cudaStreamEndCapture_v10000", 60)
        self.call("cudaGraphInstantiate_v12000", 20 * len(graph.nodes))

    def _stream(self, stream: int | None) -> int:
        return self.stream if stream is None else stream

    def _start(self, launched: int, stream: int | None, after: int) -> int:
        latency, between = self.machine.ns(LAUNCH_LATENCY), self.machine.ns(BETWEEN)
        return max(launched + latency, self.queued_until(self._stream(stream)) + between, after)

    def _run(self, kind: int, start: int, end: int, correlation: int, stream: int | None, **values: object) -> int:
        place = {"process": self.process, "gpu": self.gpu, "stream": self._stream(stream), "correlation": correlation}
        self.machine.sketch.operation(kind, start, end, **place, **values)
        self.occupy(end, stream)
        self.work_starts.append(start)
        return start


def collective(hosts: Sequence[Host], name: str, us: float) -> None:
    """Launch one collective on every rank: each starts as its rank arrives, all end together."""
    arrived = []
    for host in hosts:
        begun = host.now
        correlation = host.call("cudaLaunchKernelExC_v11060", 5)
        arrived.append((host, correlation, host._start(begun, None, 0)))
    done = max(start for _, _, start in arrived) + hosts[0].machine.ns(us)
    for host, correlation, start in arrived:
        host._run(KERNEL, start, done, correlation, None, name=name)
