"""The kernels of the decode steps: the costliest names, and the runs of small ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from bubblefinder.intervals import begin_and_end
from bubblefinder.lookup import NOWHERE, changes, kept, on_gpu, places, previous
from bubblefinder.report.charts import KernelRow, KernelRun
from bubblefinder.report.detail.windows import inside
from bubblefinder.report.sentences import plain
from bubblefinder.trace.model import KERNEL

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.model import Timeline
    from bubblefinder.timeline.rank import Rank

MAX_KERNELS: Final = 40
MAX_RUNS: Final = 12
SMALL_NS: Final = 6_000
"""Kernels up to this long cost about as much to launch as they work."""
MIN_RUN: Final = 3
NAME_LENGTH: Final = 400


def decode_operations(timeline: Timeline, steps: Steps, decode: pl.DataFrame, rank: Rank) -> pl.DataFrame:
    """Return the operations of the decode steps with `role` and `window_index`, by start."""
    told = ("kind", "start_ns", "end_ns", "stream", "name", "call_index", "replay_index")
    within = inside(on_gpu(timeline.operations[["gpu", "process", *told]], rank.gpu), decode)
    mine = kept(within, within["process"] == rank.process)
    return mine.hstack([steps.roles[mine["replay_index"]]])


def kernel_rows(
    work: pl.DataFrame, steps: int, names: Mapping[int, str], category: Callable[[str], str | None]
) -> list[KernelRow]:
    """Return the kernel names that run longest in a step, of equals the first; overlapping times count twice."""
    length = pl.col("end_ns") - pl.col("start_ns")
    grouped = (
        kept(work, work["kind"] == KERNEL)
        .group_by("role", "name", maintain_order=True)
        .agg(count=pl.len(), total=length.sum(), p50_ns=length.median())
        .sort("total", descending=True, maintain_order=True)
        .head(MAX_KERNELS)
    )
    return [
        KernelRow(
            role=row["role"],
            name=kernel_name(row["name"], names),
            category=category(names.get(row["name"], "")),
            per_step_count=row["count"] / steps,
            per_step_ns=row["total"] / steps,
            p50_ns=row["p50_ns"],
        )
        for row in grouped.to_dicts()
    ]


def kernel_runs(work: pl.DataFrame, steps: int, names: Mapping[int, str]) -> list[KernelRun]:
    """Return the runs of three or more consecutive small kernels of one replay, the costliest, then the first."""
    rows = work[["kind", "start_ns", "end_ns", "name", "replay_index", "role"]]
    rows = kept(rows, (rows["kind"].to_numpy() == KERNEL) & (places(rows["replay_index"]) != NOWHERE))
    rows = rows.sort("replay_index", maintain_order=True)
    starts, ends = begin_and_end(rows)
    small, replay = ends - starts <= SMALL_NS, rows["replay_index"].to_numpy()
    first = np.flatnonzero(changes(small, replay))
    count = np.diff(np.append(first, len(rows)))
    if not len(first):
        return []
    span = np.maximum.reduceat(ends, first) - np.minimum.reduceat(starts, first)
    busy = np.add.reduceat(ends - starts, first)
    chosen = small[first] & (count >= MIN_RUN)
    runs = pl.DataFrame(
        {
            "role": rows["role"][first[chosen]],
            "first": rows["name"][first[chosen]],
            "last": rows["name"][(first + count - 1)[chosen]],
            "kernels": count[chosen],
            "busy": busy[chosen],
            "span": span[chosen],
        }
    )
    grouped = (
        runs.group_by("role", "first", "last", "kernels", maintain_order=True)
        .agg(count=pl.len(), busy=pl.col("busy").sum(), span=pl.col("span").sum())
        .sort("span", descending=True, maintain_order=True)
        .head(MAX_RUNS)
    )
    return [
        KernelRun(
            role=row["role"],
            first=kernel_name(row["first"], names),
            last=kernel_name(row["last"], names),
            kernels=row["kernels"],
            per_step_count=row["count"] / steps,
            per_step_busy_ns=row["busy"] / steps,
            per_step_gap_ns=max(row["span"] - row["busy"], 0) / steps,
        )
        for row in grouped.to_dicts()
    ]


def overlap_share(work: pl.DataFrame) -> float | None:
    """Return the share of kernels inside replays that began before the one before them in their stream ended.

    On one stream only programmatic dependent launch allows that. Null without two kernels to compare.
    """
    rows = work[["kind", "start_ns", "end_ns", "replay_index", "stream"]]
    known = (places(rows["replay_index"]) != NOWHERE) & (places(rows["stream"]) != NOWHERE)
    rows = kept(rows, (rows["kind"].to_numpy() == KERNEL) & known)
    starts, ends = begin_and_end(rows)
    before = previous(rows["stream"].to_numpy())
    replay = rows["replay_index"].to_numpy()
    together = (before != NOWHERE) & (replay[before] == replay)
    return float(np.mean((starts < ends[before])[together])) if together.any() else None


def kernel_name(name: int | None, names: Mapping[int, str]) -> str:
    """Return a kernel's name, printable and cut to a length that no page suffers from."""
    return plain(names.get(name, "") if name is not None else "", NAME_LENGTH) or "unnamed"
