"""The ledger sections of a report: devices, step windows, per-step statistics, roles, bubble shares."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
import polars as pl

from bubblefinder.intervals import begin_and_end, covered_before, percentile
from bubblefinder.lookup import NOWHERE, kept, on_gpu, places, where
from bubblefinder.report.model import DeviceReport, InterGraph, Launches, Regime, Role, Stats, StepRow
from bubblefinder.steps.reasons import REGIME
from bubblefinder.timeline.ledger import COLUMNS, cover_of, device_ledger, window_ledger
from bubblefinder.timeline.missing import untold
from bubblefinder.timeline.model import INTER_CLASSES, STEP_CLASSES, Device, IdleClass, Timeline
from bubblefinder.timeline.shares import bubble_share
from bubblefinder.trace.model import pid_of

if TYPE_CHECKING:
    from bubblefinder.steps.model import Steps
    from bubblefinder.timeline.rank import Rank

_NS: Final = tuple(f"{name}_ns" for name in STEP_CLASSES)


def windows_with_ledger(timeline: Timeline, steps: Steps) -> pl.DataFrame:
    """Return the step windows with `window_index`, `decode`, duration_ns and one column a ledger class.

    A class is null where it isn't measured.
    """
    windows = steps.windows.with_row_index("window_index")
    lengths = (windows["end_ns"] - windows["start_ns"]).rename("duration_ns")
    windows = windows.hstack([lengths, steps.decode.rename("decode")])
    parts = []
    for rows in windows.partition_by("gpu", maintain_order=True):
        gpu = int(rows["gpu"][0])
        ledger = window_ledger(timeline, gpu, *begin_and_end(rows))
        parts.append(
            rows.hstack(ledger.with_columns(pl.lit(None, pl.Int64).alias(name) for name in unmeasured(timeline, gpu)))
        )
    return pl.concat(parts) if parts else windows.with_columns(pl.lit(None, pl.Int64).alias(name) for name in _NS[1:])


def unmeasured(timeline: Timeline, gpu: int) -> tuple[str, ...]:
    """Return the ledger columns that this capture can't tell for a GPU."""
    if untold(timeline):
        return COLUMNS
    inside = on_gpu(timeline.replays, gpu)["nodes"]
    return () if inside.count() else ("intra_graph_ns",)


def device_report(timeline: Timeline, device: Device) -> DeviceReport:
    """Return the ledger of one GPU over the analysed window."""
    measured = device_ledger(timeline, device)
    row: dict[str, int | None] = {**measured, **dict.fromkeys(unmeasured(timeline, device.gpu))}
    span = device.end_ns - device.start_ns
    set_aside = measured["profiler_ns"] + measured["unrecorded_ns"]
    return DeviceReport(
        gpu=device.gpu,
        pids=[pid_of(process) for process in device.processes],
        start_ns=device.start_ns,
        end_ns=device.end_ns,
        span_ns=span,
        busy_ns=device.busy_ns,
        idle_ns=None if row["host_late_ns"] is None else span - device.busy_ns - set_aside,
        replays=device.replays,
        intra_graph_ns=row["intra_graph_ns"],
        profiler_ns=row["profiler_ns"],
        unrecorded_ns=row["unrecorded_ns"],
        inter_graph=InterGraph(**{f"{name}_ns": row[f"{name}_ns"] for name in INTER_CLASSES}),
        launches=Launches(seen=device.launches_seen, recorded=device.launches_recorded),
        run_ahead_share=device.run_ahead_share,
    )


def decode_rows(windows: pl.DataFrame, rank: Rank) -> pl.DataFrame:
    """Return the decode steps of a rank."""
    return kept(windows, rank.is_of(windows) & windows["decode"])


def per_step(rows: pl.DataFrame) -> dict[str, Stats]:
    """Return the distribution of every class over the given steps."""
    return {name: stats(rows[f"{name}_ns"]) for name in STEP_CLASSES}


def stats(values: pl.Series) -> Stats:
    """Return mean, numpy's linear p50 and p95, min and max; all null for no or unknown values."""
    if values.is_empty() or values.null_count():
        return Stats(mean=None, p50=None, p95=None, min=None, max=None)
    numbers = values.to_numpy()
    middle, high = (percentile(numbers, q) for q in (50, 95))
    return Stats(mean=float(numbers.mean()), p50=middle, p95=high, min=int(numbers.min()), max=int(numbers.max()))


def request_stats(rows: pl.DataFrame) -> Stats | None:
    """Return how many requests the steps serve of which it is known; null if of none."""
    known = rows["requests"].drop_nulls() if rows["requests"].count() else None
    return None if known is None else stats(known)


def request_steps(rows: pl.DataFrame) -> dict[str, int]:
    """Return how many of the steps serve each number of requests, fewest requests first."""
    counted = Counter(number for number in rows["requests"] if number is not None)
    return {str(number): steps for number, steps in sorted(counted.items())}


def step_rows(windows: pl.DataFrame) -> list[StepRow]:
    """Return every window of every device."""
    columns = windows[["index", "gpu", "start_ns", *_NS, "excluded", "requests"]]
    different = windows["process"].unique()
    pids = windows["process"].replace_strict(different, [pid_of(process) for process in different]).rename("pid")
    return msgspec.json.decode(columns.hstack([pids]).write_json(), type=list[StepRow])


def regimes(timeline: Timeline, steps: Steps, windows: pl.DataFrame, rank: Rank) -> list[Regime]:
    """Return the regimes of a rank's steps with their own figures, if there are several."""
    counted = pl.col("excluded").is_null() | (pl.col("excluded") == REGIME)
    mine = windows.pipe(where, rank.mine & pl.col("regime").is_not_null() & counted)
    parts = mine.partition_by("regime", maintain_order=True)
    replays = not on_gpu(timeline.replays, rank.gpu).is_empty()
    return [
        Regime(
            count=len(rows),
            headline=bool(rows["excluded"].is_null().any()),
            indexes=[int(rows["index"][0]), int(rows["index"][-1])],
            roles=roles(timeline, steps, rows, rank),
            per_step=per_step(rows),
            bubble_share=bubble_share(rows, has_replays=replays),
            requests=request_stats(rows),
        )
        for rows in parts
        if len(parts) > 1
    ]


def roles(timeline: Timeline, steps: Steps, rows: pl.DataFrame, rank: Rank) -> list[Role]:
    """Return the roles of a decode step in the order in which they come: how often, how long, how idle inside."""
    pieces = on_gpu(timeline.pieces, rank.gpu)[["start_ns", "end_ns", "idle_class"]]
    cover = cover_of(kept(pieces, pieces["idle_class"] == int(IdleClass.INTRA_GRAPH)))
    decode = np.zeros(len(steps.windows) + 1, np.bool_)
    decode[rows["window_index"].to_numpy()] = True
    inside = pl.Series(decode[places(steps.replays["window_index"])])
    mine = kept(timeline.replays.hstack(steps.replays), inside & pl.Series(steps.role_numbers != NOWHERE))
    idle = covered_before(mine["end_ns"].to_numpy(), cover) - covered_before(mine["start_ns"].to_numpy(), cover)
    grouped = (
        mine.with_columns(idle_ns=pl.when(pl.col("nodes").is_not_null()).then(pl.Series(idle)))
        .group_by("role", maintain_order=True)
        .agg(
            pl.len(),
            pl.col("position").median(),
            nodes=pl.col("nodes").median(),
            p50_ns=(pl.col("end_ns") - pl.col("start_ns")).median(),
            idle_ns=pl.col("idle_ns").median(),
        )
        .sort("position", nulls_last=True, maintain_order=True)
    )
    return [
        Role(
            role=row["role"],
            replays_per_step=row["len"] / len(rows),
            nodes=row["nodes"],
            p50_ns=round(row["p50_ns"]),
            intra_graph_p50_ns=None if row["idle_ns"] is None else round(row["idle_ns"]),
        )
        for row in grouped.iter_rows(named=True)
    ]
