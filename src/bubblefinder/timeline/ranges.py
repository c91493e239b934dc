"""Which NVTX ranges were open on a thread at a moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bubblefinder.intervals import Ints

NEVER_CLOSED: Final = np.iinfo(np.int64).max
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
        nvtx.filter(
            ~pl.col("domain").is_in(TOOL_DOMAINS).fill_null(value=False) & (pl.col("text") != ""),
        )
        .with_columns(pl.col("end_ns").fill_null(NEVER_CLOSED), pl.col("text").str.replace(_COUNTED, ""))
        .filter(pl.col("end_ns") > pl.col("start_ns"))
    )


def function_edges(nvtx: pl.DataFrame) -> pl.DataFrame:
    """Return thread and time_ns, by time, of the begin and the end of each range around a Python function.

    They are told by their names: ``module.Class.method`` has at least three parts and nothing else.
    """
    ranges = nvtx.filter(pl.col("text").str.contains(r"^\w+(?:\.\w+){2,}$")).drop_nulls("end_ns")
    sides = [ranges.select("thread", time_ns=side) for side in ("start_ns", "end_ns")]
    return pl.concat(sides).sort("time_ns")


def own_name(text: pl.Expr) -> pl.Expr:
    """Return the last part of a function's dotted name: a module or a class may be named after anything.

    FlashInfer's wrappers for prefill serve a verify of several tokens as well. Other texts stay as they are.
    """
    return text.str.replace(r"^(?:\w+\.){2,}(\w+)$", "$1")


def innermost(ranges: pl.DataFrame, threads: Ints, times: Ints) -> Ints:
    """Return the position in `ranges` of the innermost range open on each thread at each time; -1 for none."""
    found = np.full(len(times), -1, np.int64)
    for level in open_ranges(ranges, threads, times):
        found = np.where(level >= 0, level, found)
    return found


def open_ranges(ranges: pl.DataFrame, threads: Ints, times: Ints) -> Iterator[Ints]:
    """Yield, from the outermost nesting level inwards, the position of the range open at each time (-1: none)."""
    if ranges.is_empty() or not len(times):
        return
    levels = (
        ranges.select("thread", "start_ns", "end_ns").with_columns(level=_nesting(ranges)).with_row_index("position")
    )
    points = pl.DataFrame({"thread": threads, "time": times}).with_row_index("point").sort("time")
    for level in levels.sort("level", "start_ns").partition_by("level", maintain_order=True):
        hits = points.join_asof(level, left_on="time", right_on="start_ns", by="thread", check_sortedness=False)
        inside = hits.filter(pl.col("time") < pl.col("end_ns"))
        found = np.full(len(times), -1, np.int64)
        found[inside["point"].to_numpy()] = inside["position"].to_numpy()
        yield found


def _nesting(ranges: pl.DataFrame) -> pl.Series:
    """Return how many ranges of its thread are open when each range begins."""
    edges = pl.concat(
        [
            ranges.select("thread", time="start_ns", length=-pl.col("end_ns"), step=pl.lit(1)).with_row_index(
                "position"
            ),
            ranges.select("thread", time="end_ns", length=-pl.col("end_ns"), step=pl.lit(-1)).with_row_index(
                "position"
            ),
        ]
    ).sort("thread", "time", "step", "length")
    depth = edges.with_columns(level=pl.col("step").cum_sum().over("thread")).filter(pl.col("step") == 1)
    return depth.sort("position")["level"]
