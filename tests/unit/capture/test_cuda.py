from __future__ import annotations

import ctypes
from typing import Any

import pytest

from bubblefinder.capture import cuda


class Library:
    """A driver library whose calls note their name and return a status."""

    def __init__(self, **statuses: int) -> None:
        self.statuses, self.called = statuses, list[str]()

    def __getattr__(self, name: str) -> Any:
        def call(*_: object) -> int:
            self.called.append(name)
            return self.statuses.get(name, 0)

        return call


def driver(monkeypatch: pytest.MonkeyPatch, **statuses: int) -> tuple[cuda.Driver, Library]:
    library = Library(**statuses)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: library)
    return cuda.Driver(), library


def test_no_driver_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(cuda.CudaError, match="no NVIDIA driver"):
        cuda.Driver()


def test_a_failing_call_is_named_with_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(cuda.CudaError, match="cuInit failed with CUDA error 100"):
        driver(monkeypatch, cuInit=100)


def test_the_primary_context_is_made_current(monkeypatch: pytest.MonkeyPatch) -> None:
    _, library = driver(monkeypatch)
    assert library.called == ["cuInit", "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"]


def test_a_graph_is_captured_and_instantiated(monkeypatch: pytest.MonkeyPatch) -> None:
    made, library = driver(monkeypatch)
    stream = made.stream()
    made.begin_capture(stream)
    made.launch(ctypes.c_void_p(1), 2, 32, stream, cuda.Arguments(ctypes.c_uint(5)))
    made.launch_dependent(ctypes.c_void_p(1), 2, 32, stream, cuda.Arguments(ctypes.c_uint(5)))
    made.end_capture(stream)
    assert library.called[-5:] == [
        "cuStreamBeginCapture_v2",
        "cuLaunchKernel",
        "cuLaunchKernelEx",
        "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags",
    ]


def test_arguments_point_at_their_values() -> None:
    arguments = cuda.Arguments(ctypes.c_uint(7), ctypes.c_uint64(1 << 40))
    first, second = (ctypes.c_void_p(pointer) for pointer in arguments.pointers)
    assert ctypes.cast(first, ctypes.POINTER(ctypes.c_uint))[0] == 7
    assert ctypes.cast(second, ctypes.POINTER(ctypes.c_uint64))[0] == 1 << 40
