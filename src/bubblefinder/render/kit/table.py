"""A table of words, the same in every format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

CLASS_COLUMNS: Final = ("ms a step", "class")
"""Headers of columns that hold ledger classes."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a header.

    Attributes:
        title: what it shows.
        header: the names of the columns; one may be empty.
        rows: as many cells each.
        note: what was left out, or what to keep in mind.
        spare: so many of the last columns may be left out where there is no room.
        left: the names of the columns besides the first that hold words; all others hold numbers, counts or times.
    """

    title: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    note: str = ""
    spare: int = 0
    left: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[bool, ...]:
        """Which columns hold words: these begin at the left, numbers end at the right."""
        return tuple(number == 0 or name in self.left for number, name in enumerate(self.header))

    def narrow(self) -> Table:
        """Return the table without the columns it can spare."""
        kept = len(self.header) - self.spare
        return replace(self, header=self.header[:kept], rows=[row[:kept] for row in self.rows], spare=0)
