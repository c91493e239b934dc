"""Parts and deltas from a few numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bubblefinder.compare.delta.model import Delta, Part, Speed
from bubblefinder.compare.delta.tracer import Delay

if TYPE_CHECKING:
    from bubblefinder.compare.delta.model import Kind


NO_DELAY = Delay((0.0,), (0.0,), tracers=True)


def a_part(kind: Kind, delta: int, name: str | None = None, **more: Any) -> Part:
    fields: dict[str, Any] = {
        "kind": kind, "role": None, "name": name, "head_name": None, "what": None, "nodes": None, "base_count": None,
        "head_count": None, "base_ns": 100, "head_ns": 100 + delta, "delta_ns": delta,
    }  # fmt: skip
    return Part(**(fields | more))


def a_delta(*parts: Part, rank: int = 0, residual: int = 0) -> Delta:
    total = sum(part.delta_ns for part in parts) + residual
    return Delta(
        rank=rank, base_ns=10_000, head_ns=10_000 + total, delta_ns=total, parts=list(parts), residual_ns=residual
    )


def a_speed(host: float | None = 1.0, gpu: float | None = 1.0, *, host_ns: float = 5_000) -> Speed:
    return Speed(host=host, calls=6, gpu=gpu, nodes=60, base_host_ns=host_ns, head_host_ns=host_ns * (host or 1))
