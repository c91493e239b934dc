"""What the colours of the timeline mean, in the words and the palette of the report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bubblefinder.report.sentences import KIND_LABELS
from bubblefinder.timeline.model import LEDGER_CLASSES

MIXED: Final = "mixed"
"""Idle time outside graph replays, drawn as a share: its kinds can't be told apart."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A colour of the palette, its words, and the kinds of events drawn in it."""

    colour: str
    words: str
    kinds: tuple[str, ...]


LEGEND: Final = (
    Entry("nvtx", KIND_LABELS["nvtx"], ("nvtx",)),
    Entry("host", KIND_LABELS["api"], ("call",)),
    Entry("busy", "kernel or whole graph", ("kernel", "graph")),
    Entry("operation", "copy or memset", ("copy", "memset")),
    *(Entry(name, KIND_LABELS[name], (name,)) for name in LEDGER_CLASSES if name != "busy"),
    Entry("ink", "idle outside graphs, too dense to tell why", (MIXED,)),
)
