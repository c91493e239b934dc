"""An answer as people read it: a verdict, what it rests on, and tables; each writer of the kit takes one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Level = Literal["ok", "fail", "unknown"]
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


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that was judged, for the test tab of a CI."""

    name: str
    level: Level
    kind: str
    message: str
    text: str = ""
    properties: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a long answer: an anchor, a heading, and what stands below it, sentences before tables.

    A part `is_detail` if it is there to be looked up: where room is dear it is the first to go.
    """

    anchor: str
    heading: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]
    is_detail: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One answer.

    Attributes:
        document: what it is of: diff, budget, prediction or trend; a sticky comment is found by it.
        title: of a page.
        headline: the verdict as a sentence.
        verdict: the verdict in a word or a few.
        rest: what the headline says beyond it, empty if nothing.
        level: whether all is well, something is wrong, or nobody can tell; null for an answer that judges nothing.
        points: what to read beside the verdict, each with its name: the remedy, the sides.
        basis: what the verdict rests on.
        warnings: what may mislead.
        sources: the captures, a line each.
        tables: the most important first.
        cases: what was judged one by one, for a CI's test tab.
    """

    document: str
    title: str
    headline: str
    verdict: str
    rest: str = ""
    level: Level | None = None
    points: tuple[tuple[str, str], ...] = ()
    basis: str = ""
    warnings: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    cases: tuple[Case, ...] = ()
