"""A rank: one process on one GPU, which is what has steps, causes and a ledger of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

import polars as pl

from bubblefinder.lookup import column_of
from bubblefinder.trace.model import pid_of

if TYPE_CHECKING:
    from bubblefinder.timeline.model import Timeline


class Rank(NamedTuple):
    """One process on one GPU.

    Attributes:
        gpu: physical GPU.
        process: process key, see `trace.model`.
    """

    gpu: int
    process: int

    @property
    def pid(self) -> int:
        """The operating system's process id."""
        return pid_of(self.process)

    @property
    def mine(self) -> pl.Expr:
        """What holds for the rank's rows of a frame with columns gpu and process."""
        return (pl.col("gpu") == self.gpu) & (pl.col("process") == self.process)

    def is_of(self, rows: pl.DataFrame) -> pl.Series:
        """Tell the rank's rows of such a frame."""
        return (column_of(rows, "gpu") == self.gpu) & (column_of(rows, "process") == self.process)

    @classmethod
    def in_rows(cls, rows: pl.DataFrame) -> list[Self]:
        """Return the ranks of a frame with columns gpu and process, lowest first."""
        return sorted(cls(gpu, process) for gpu, process in rows[["gpu", "process"]].unique().iter_rows())


def ranks_of(timeline: Timeline) -> list[Rank]:
    """Return every rank with operations, lowest GPU first."""
    return [Rank(device.gpu, process) for device in timeline.devices for process in device.processes]
