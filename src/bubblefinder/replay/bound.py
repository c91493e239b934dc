"""What bounds a step."""

from __future__ import annotations

from enum import StrEnum


class Bound(StrEnum):
    """What the time of the steps is made of, on the chain of nodes that decides it."""

    GPU = "GPU"
    """Work of the GPU, back to back: the host is ahead."""
    HOST = "host"
    """Work of the host: the GPU waits for it."""
    WAIT = "wait"
    """Both in turn, since the host waits for the GPU in every step."""
