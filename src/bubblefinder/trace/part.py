"""What a whole capture showed of a part that was cut from it, and the tables in which a slice carries that.

A few steps don't show by themselves that they recur, nor a few operations how graphs were recorded; so
the part of a capture keeps what was found in the whole of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import polars as pl

from bubblefinder.errors import NotATraceError
from bubblefinder.trace.schema import Column, Table

if TYPE_CHECKING:
    from bubblefinder.trace.schema import Source

MODES: Final = ("node", "graph", "mixed", "none", "unseen")
"""See `timeline.model.CaptureMode`."""

PART: Final = Table(
    "BUBBLEFINDER_PART",
    (Column("captureMode", "mode", pl.String), Column("originNs", "origin_ns"), Column("leftOutNs", "left_out_ns")),
)
PART_RANKS: Final = Table(
    "BUBBLEFINDER_RANKS",
    (
        Column("gpu", "gpu", pl.Int32), Column("process", "process"), Column("method", "method", pl.String),
        Column("confidence", "confidence", pl.String), Column("mark", "mark", pl.String),
        Column("requestsFrom", "requests_from", pl.String),
    ),
)  # fmt: skip
PART_STEPS: Final = Table(
    "BUBBLEFINDER_STEPS",
    (
        Column("gpu", "gpu", pl.Int32), Column("process", "process"), Column("stepIndex", "index"),
        Column("start", "start_ns"), Column("excluded", "excluded", pl.String), Column("regime", "regime"),
        Column("requests", "requests"),
    ),
)  # fmt: skip
PART_ROLES: Final = Table(
    "BUBBLEFINDER_ROLES",
    (
        Column("gpu", "gpu", pl.Int32), Column("process", "process"), Column("start", "start_ns"),
        Column("role", "role", pl.String), Column("position", "position"),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """What the whole capture showed of a part of it.

    Attributes:
        mode: its capture mode, see `timeline.model.CaptureMode`.
        origin_ns: when it began, on its own clock.
        left_out_ns: when the last launch call began that precedes those of the part; null if none does.
        ranks: how the steps of each rank were found: gpu, process, method, confidence, mark, requests_from (null in
            older slices); empty where the part is to be cut into steps by itself.
        steps: where the windows of each rank begin: gpu, process, index, start_ns, excluded, regime, requests.
        roles: what part the replays play: gpu, process, start_ns, role, position.
    """

    mode: str
    origin_ns: int
    left_out_ns: int | None = None
    ranks: pl.DataFrame = field(default_factory=lambda: PART_RANKS.empty().drop("row"))
    steps: pl.DataFrame = field(default_factory=lambda: PART_STEPS.empty().drop("row"))
    roles: pl.DataFrame = field(default_factory=lambda: PART_ROLES.empty().drop("row"))


def read_part(source: Source) -> Part | None:
    """Return what a slice says of the capture that it was cut from; null for a whole capture.

    Raises:
        NotATraceError: it names a capture mode that there isn't.
    """
    said = source.read(PART).frame.drop_nulls(["mode", "origin_ns"])
    if said.is_empty():
        return None
    ranks = source.read(PART_RANKS).frame.drop("row").drop_nulls(["gpu", "process", "method", "confidence"])
    steps = source.read(PART_STEPS).frame.drop("row").drop_nulls(["gpu", "process", "index", "start_ns"])
    roles = source.read(PART_ROLES).frame.drop("row").drop_nulls(["gpu", "process", "start_ns"])
    mode, origin_ns, left_out_ns = said[["mode", "origin_ns", "left_out_ns"]].row(0)
    if mode not in MODES:
        raise NotATraceError("the slice names no capture mode that there is", hint="slice the capture again")
    return Part(mode, origin_ns, left_out_ns, ranks, steps, roles)
