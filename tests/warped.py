"""Real captures with one change made in them: kernels that take longer, with all that follows put off by as much.

Time is stretched wherever a chosen kernel runs, for the GPU and the host alike, so the capture stays one that could
have been: the real graph of 1,690 nodes and the real host, with a known regression in it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from bubblefinder.trace.model import KERNEL

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from bubblefinder.trace.model import Trace

_TIMES = ("start_ns", "end_ns", "timestamp_ns")
_FRAMES = ("operations", "calls", "nvtx", "overheads", "graph_nodes", "syncs", "events", "os_calls", "off_cpu")


def chosen(trace: Trace, kernel: str) -> pl.Series:
    """Which operations run a kernel whose name holds this text."""
    names = [number for number, text in trace.names.items() if kernel in text]
    return trace.operations.select((pl.col("kind") == KERNEL) & pl.col("name").is_in(names)).to_series()


def longer(trace: Trace, kernel: str, factor: float) -> Trace:
    """The capture with a kernel that takes `factor` times as long wherever it runs."""
    slow = trace.operations.filter(chosen(trace, kernel)).sort("start_ns")
    starts, ends = slow["start_ns"].to_numpy(), slow["end_ns"].to_numpy()
    more = np.concatenate(([0], np.cumsum(np.rint((ends - starts) * (factor - 1)).astype(np.int64))))

    def moved(times: NDArray[np.int64]) -> NDArray[np.int64]:
        before = np.searchsorted(ends, times, side="right")
        inside = np.append(starts, np.iinfo(np.int64).max)[before]
        within = np.rint(np.maximum(times - inside, 0) * (factor - 1)).astype(np.int64)
        put_off: NDArray[np.int64] = times + more[before] + within
        return put_off

    return _put_off(trace, moved)


def paused(trace: Trace, inside: str, us: float, *, every: int = 1, first: int = 0) -> Trace:
    """The capture with a stop of the host, and of all else, in the middle of some of the NVTX ranges of a name."""
    ranges = trace.nvtx.filter(pl.col("text") == inside).sort("start_ns")[first::every]
    moments = ((ranges["start_ns"] + ranges["end_ns"]) // 2).to_numpy()

    def moved(times: NDArray[np.int64]) -> NDArray[np.int64]:
        return times + np.searchsorted(moments, times, side="left") * round(us * 1_000)

    return _put_off(trace, moved)


def renamed(trace: Trace, kernel: str, name: str) -> Trace:
    """The capture with another kernel in the place of one."""
    new = max(trace.names) + 1
    operations = trace.operations.with_columns(
        name=pl.when(chosen(trace, kernel)).then(pl.lit(new, pl.Int32)).otherwise("name")
    )
    return replace(trace, operations=operations, names={**trace.names, new: name})


def reshaped(trace: Trace, kernel: str, grid: str) -> Trace:
    """The capture with a kernel launched on another grid."""
    rows = trace.operations.filter(chosen(trace, kernel))["row"]
    assert trace.launch_shapes is not None
    shapes = trace.launch_shapes().with_columns(
        grid=pl.when(pl.col("row").is_in(rows.implode())).then(pl.lit(grid)).otherwise("grid")
    )
    return replace(trace, launch_shapes=lambda: shapes)


def _put_off(trace: Trace, moved: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> Trace:
    frames: dict[str, Any] = {name: _warped(getattr(trace, name), moved) for name in _FRAMES}
    return replace(trace, **frames)


def _warped(frame: pl.DataFrame, moved: Callable[[NDArray[np.int64]], NDArray[np.int64]]) -> pl.DataFrame:
    columns = [name for name in _TIMES if name in frame.columns]
    if frame.is_empty():
        return frame
    return frame.with_columns(
        pl.when(pl.col(name).is_not_null())
        .then(pl.Series(name, moved(frame[name].fill_null(0).to_numpy())))
        .alias(name)
        for name in columns
    )
