"""Which NVTX ranges were open on a thread at a moment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

from bubblefinder.intervals import NEVER, distinct, last_before, places_of
from bubblefinder.lookup import ByThread, nullable, places, where

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints

TOOL_DOMAINS: Final = frozenset(
    {
        "GIL Trace",
        "Python Backtrace",
        "NCCL",
        "cuBLAS",
        "cuBLASLt",
        "cuDNN",
        "cuSPARSE",
        "cuSOLVER",
        "CCCL",
        "CUB",
        "Thrust",
        "libcudf",
        "MPI",
        "UCX",
        "NVSHMEM",
        "Python Functions Trace",
    }
)
_COUNTED: Final = r", (?:seq|op_id) = \d+.*$"
"""What PyTorch's emit_nvtx appends to the name of an operation: numbers that no other call of it has."""


def user_ranges(nvtx: pl.DataFrame) -> pl.DataFrame:
    """Return the named ranges that the program or its framework opened, not those of tools and libraries."""
    return (
        nvtx.pipe(
            where,
            ~pl.col("domain").is_in(TOOL_DOMAINS).fill_null(value=False) & (pl.col("text") != ""),
        )
        .with_columns(pl.col("end_ns").fill_null(NEVER), pl.col("text").str.replace(_COUNTED, ""))
        .pipe(where, pl.col("end_ns") > pl.col("start_ns"))
    )


def function_edges(nvtx: pl.DataFrame) -> pl.DataFrame:
    """Return thread and time_ns, by time, of the begin and the end of each range around a Python function.

    They are told by their names: ``module.Class.method`` has at least three parts and nothing else.
    """
    ranges = nvtx.pipe(where, pl.col("text").str.contains(r"^\w+(?:\.\w+){2,}$")).drop_nulls("end_ns")
    sides = [ranges.select_seq("thread", time_ns=side) for side in ("start_ns", "end_ns")]
    return pl.concat(sides).sort("time_ns")


def own_name(text: pl.Expr) -> pl.Expr:
    """Return the last part of a function's dotted name: a module or a class may be named after anything.

    FlashInfer's wrappers for prefill serve a verify of several tokens as well. Other texts stay as they are.
    """
    return text.str.replace(r"^(?:\w+\.){2,}(\w+)$", "$1")


class _Level(NamedTuple):
    """The ranges of one thread that lie equally deep, by start: their positions, and when they begin and end."""

    positions: Ints
    starts: Ints
    ends: Ints


@dataclass(frozen=True, eq=False)
class Ranges:
    """Ranges to be asked which of them were open; those of a thread are nested when it is first asked about.

    Attributes:
        rows: thread, start_ns, end_ns and text, in any order; `user_ranges` has those of the program.
    """

    rows: pl.DataFrame

    @cached_property
    def by_thread(self) -> ByThread:
        """The ranges of each thread."""
        return ByThread(self.rows)

    @cached_property
    def _levels_of(self) -> dict[int, list[_Level]]:
        return {}

    def named(self, pattern: str) -> pl.DataFrame:
        """Return the rows whose text a regular expression is found in."""
        hits = self._texts.filter(self._texts.str.contains(pattern))
        return self.rows.pipe(where, pl.col("text").is_in(hits.implode())) if len(hits) else self.rows.clear()

    @cached_property
    def names(self) -> pl.Series:
        """The text of each row as one of the different texts, mostly far fewer than ranges."""
        return self.rows["text"].cast(pl.Categorical)

    @cached_property
    def _texts(self) -> pl.Series:
        """The different texts."""
        return self.names.unique().cast(pl.String)

    def innermost(self, threads: Ints, times: Ints) -> Ints:
        """Return the position of the innermost range open on each thread at each time; -1 for none."""
        found = np.full(len(times), -1, np.int64)
        for level in self.open_at(threads, times):
            found = np.where(level >= 0, level, found)
        return found

    def texts_at(self, threads: Ints, times: Ints) -> pl.Series:
        """Return the text of that range; null for none."""
        return self.rows["text"][nullable(self.innermost(threads, times))]

    def open_at(self, threads: Ints, times: Ints) -> list[Ints]:
        """Return, from the outermost nesting level inwards, the position of the range open at each time (-1: none)."""
        found: list[Ints] = []
        for thread in self.by_thread.positions.keys() & set(distinct(threads).tolist()):
            mine = np.flatnonzero(threads == thread)
            for depth, level in enumerate(self._levels(thread)):
                if depth == len(found):
                    found.append(np.full(len(times), -1, np.int64))
                last = last_before(times[mine], level.starts)
                inside = (last >= 0) & (times[mine] < level.ends[last])
                found[depth][mine[inside]] = level.positions[last[inside]]
        return found

    def steady(self, thread: int, lows: Ints, highs: Ints) -> Bools:
        """Tell in which stretches of time, both ends included, none of a thread's ranges opens or closes."""
        still = np.ones(len(lows), np.bool_)
        for level in self._levels(thread) if thread in self.by_thread.positions else ():
            last = last_before(lows, level.starts)
            ends = np.append(level.ends, NEVER)[last]
            still &= last_before(highs, level.starts) == last
            still &= (last < 0) | (ends <= lows) | (ends > highs)
        return still

    def _levels(self, thread: int) -> list[_Level]:
        if thread not in self._levels_of:
            positions = places(self.by_thread.positions[thread])
            starts, ends = (self.rows[name].to_numpy()[positions] for name in ("start_ns", "end_ns"))
            order = np.lexsort((-ends, starts))
            positions, starts, ends = positions[order], starts[order], ends[order]
            depth = np.arange(1, len(starts) + 1) - np.searchsorted(np.sort(ends), starts, side="right")
            self._levels_of[thread] = [_Level(positions[at], starts[at], ends[at]) for at in places_of(depth)]
        return self._levels_of[thread]
