"""The CUDA driver calls of the calibration workload, through ctypes: it needs the NVIDIA driver and nothing else."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p
from dataclasses import dataclass
from typing import Any

_NON_BLOCKING_STREAM = 1
_EVENT_WITHOUT_TIMING = 2
_CAPTURE_RELAXED = 2
_PROGRAMMATIC_STREAM_SERIALIZATION = 6
_ATTRIBUTES = {"multiprocessors": 16, "clock_khz": 13, "major": 75, "minor": 76}


class CudaError(RuntimeError):
    """A driver call failed, or the driver library isn't there."""


class _LaunchAttribute(ctypes.Structure):
    _fields_ = [("id", c_int), ("pad", c_int), ("value", c_int * 16)]


class _LaunchConfig(ctypes.Structure):
    _fields_ = [
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("stream", c_void_p),
        ("attributes", POINTER(_LaunchAttribute)),
        ("attribute_count", c_uint),
    ]


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPU a workload runs on."""

    name: str
    multiprocessors: int
    clock_khz: int
    compute_capability: tuple[int, int]
    cuda_driver: int


class Arguments:
    """Kernel arguments, kept alive for as long as launches may read them."""

    def __init__(self, *values: Any) -> None:  # noqa: ANN401 - any ctypes value
        self._values = values
        self.pointers = (c_void_p * len(values))(*[ctypes.cast(byref(value), c_void_p) for value in values])


class Driver:
    """One device's primary context and the calls made in it. Every call raises `CudaError` on failure."""

    def __init__(self, ordinal: int = 0) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise CudaError("libcuda.so.1 can't be loaded: no NVIDIA driver here") from error
        self._device, context = c_int(), c_void_p()
        self.call("cuInit", c_uint(0))
        self.call("cuDeviceGet", byref(self._device), c_int(ordinal))
        self.call("cuDevicePrimaryCtxRetain", byref(context), self._device)
        self.call("cuCtxSetCurrent", context)

    def function(self, name: str) -> Any:  # noqa: ANN401 - ctypes types no foreign function
        """Return the raw entry point `name`, for callers that time it."""
        return getattr(self._library, name)

    def call(self, name: str, *arguments: object) -> None:
        """Call `name` and raise `CudaError` unless it returns 0."""
        status = self.function(name)(*arguments)
        if status:
            raise CudaError(f"{name} failed with CUDA error {status}")

    def gpu(self) -> Gpu:
        """Describe the device."""
        name, version = ctypes.create_string_buffer(256), c_int()
        self.call("cuDeviceGetName", name, c_int(256), self._device)
        self.call("cuDriverGetVersion", byref(version))
        values = {key: self._attribute(number) for key, number in _ATTRIBUTES.items()}
        capability = (values["major"], values["minor"])
        return Gpu(name.value.decode(), values["multiprocessors"], values["clock_khz"], capability, version.value)

    def _attribute(self, number: int) -> int:
        value = c_int()
        self.call("cuDeviceGetAttribute", byref(value), c_int(number), self._device)
        return value.value

    def load(self, ptx: str, names: tuple[str, ...]) -> dict[str, c_void_p]:
        """Compile `ptx` for the device and return its entry points."""
        module, functions = c_void_p(), {name: c_void_p() for name in names}
        self.call("cuModuleLoadData", byref(module), c_char_p(ptx.encode()))
        for name, function in functions.items():
            self.call("cuModuleGetFunction", byref(function), module, c_char_p(name.encode()))
        return functions

    def allocate(self, size: int) -> c_uint64:
        """Return `size` zeroed bytes of device memory."""
        pointer = c_uint64()
        self.call("cuMemAlloc_v2", byref(pointer), c_size_t(size))
        self.call("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0), c_size_t(size))
        return pointer

    def pinned(self, size: int) -> c_void_p:
        """Return `size` bytes of page-locked host memory."""
        pointer = c_void_p()
        self.call("cuMemHostAlloc", byref(pointer), c_size_t(size), c_uint(0))
        return pointer

    def read(self, source: c_uint64, count: int) -> list[int]:
        """Copy `count` unsigned 64-bit integers from the device."""
        buffer = (c_uint64 * count)()
        self.call("cuMemcpyDtoH_v2", buffer, source, c_size_t(8 * count))
        return list(buffer)

    def stream(self) -> c_void_p:
        """Create a stream that doesn't wait for the legacy one."""
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), c_uint(_NON_BLOCKING_STREAM))
        return stream

    def event(self) -> c_void_p:
        """Create an event that takes no times."""
        event = c_void_p()
        self.call("cuEventCreate", byref(event), c_uint(_EVENT_WITHOUT_TIMING))
        return event

    def synchronize(self, stream: c_void_p) -> None:
        """Wait for `stream`."""
        self.call("cuStreamSynchronize", stream)

    def launch(self, function: c_void_p, grid: int, block: int, stream: c_void_p, arguments: Arguments) -> None:
        """Launch `function` on a line of `grid` blocks of `block` threads."""
        shape = [c_uint(value) for value in (grid, 1, 1, block, 1, 1, 0)]
        self.call("cuLaunchKernel", function, *shape, stream, arguments.pointers, None)

    def launch_dependent(
        self, function: c_void_p, grid: int, block: int, stream: c_void_p, arguments: Arguments
    ) -> None:
        """Launch `function` so that it may begin before its predecessor ends (programmatic dependent launch)."""
        attribute = _LaunchAttribute(_PROGRAMMATIC_STREAM_SERIALIZATION, 0, (c_int * 16)(1))
        config = _LaunchConfig(
            (c_uint * 3)(grid, 1, 1), (c_uint * 3)(block, 1, 1), 0, stream, ctypes.pointer(attribute), 1
        )
        self.call("cuLaunchKernelEx", byref(config), function, arguments.pointers, None)

    def begin_capture(self, stream: c_void_p) -> None:
        """Start capturing `stream` into a graph."""
        self.call("cuStreamBeginCapture_v2", stream, c_int(_CAPTURE_RELAXED))

    def end_capture(self, stream: c_void_p) -> c_void_p:
        """End the capture and return the graph, ready to launch."""
        graph, executable = c_void_p(), c_void_p()
        self.call("cuStreamEndCapture", stream, byref(graph))
        self.call("cuGraphInstantiateWithFlags", byref(executable), graph, c_uint64(0))
        return executable

    def profiler(self, *, on: bool) -> None:
        """Open or close the range that `nsys profile -c cudaProfilerApi` records."""
        self.call("cuProfilerStart" if on else "cuProfilerStop")
