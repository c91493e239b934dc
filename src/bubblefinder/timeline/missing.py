"""Captures that lack GPU work, nobody knows where: busy time is a lower bound, and no idle time can be told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from bubblefinder.timeline.model import CaptureMode
from bubblefinder.trace.model import EVENTS_UNREAD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bubblefinder.timeline.model import Timeline
    from bubblefinder.trace.model import QualityNote


class Missing(NamedTuple):
    """What a capture lacks, as the words after "because", and what to do about it."""

    why: str
    hint: str


_UNSEEN: Final = Missing(
    "the export lacks the GPU work of its CUDA graph launches",
    "export the .nsys-rep again with Nsight Systems 2024.2 or newer, or capture with --cuda-graph-trace=node",
)
_UNREAD: Final = Missing(
    "Nsight Systems failed to read part of its own recording",
    "capture again, and without NVTX (--trace=cuda) if it fails once more",
)


def missing_work(mode: str, notes: Iterable[QualityNote]) -> Missing | None:
    """Return what a capture of some mode and with some notes lacks; null if nothing shows that it lacks anything."""
    if any(note.code == EVENTS_UNREAD for note in notes):
        return _UNREAD
    return _UNSEEN if mode == CaptureMode.UNSEEN else None


def untold(timeline: Timeline) -> bool:
    """Tell whether GPU work is missing from a timeline, so that no idle time of it can be told."""
    return missing_work(timeline.mode, timeline.trace.notes) is not None
