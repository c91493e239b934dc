"""The steps of a part of a capture: what the whole showed of them, laid down and taken up again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

import numpy as np
import polars as pl

from bubblefinder.errors import NotATraceError
from bubblefinder.lookup import kept, where
from bubblefinder.steps.events import lane_events
from bubblefinder.steps.lane import lanes
from bubblefinder.steps.model import CONFIDENCES, METHODS, WINDOWS, StepDetection, Steps, window_of_replays
from bubblefinder.steps.reasons import HEAD, REASONS, TAIL
from bubblefinder.steps.requests import requests_of
from bubblefinder.steps.signatures import replay_signatures
from bubblefinder.timeline.rank import Rank
from bubblefinder.trace.part import Part

if TYPE_CHECKING:
    from bubblefinder.steps.model import Confidence
    from bubblefinder.timeline.model import Device, Timeline

NOT_SELECTED: Final = "not_selected"
_RANK: Final = ("gpu", "process")
_REASONS: Final = (*REASONS, NOT_SELECTED)
_NOTHING: Final = "nothing"
_REQUESTS_FROM: Final = ("nvtx", "launch_shapes", _NOTHING)


def lay_down(timeline: Timeline, steps: Steps, selected: tuple[int, int]) -> Part:
    """Return what the whole capture shows of its steps, those with an index outside [start, end) not selected."""
    inside = pl.col("index").is_between(*selected, closed="left")
    excluded = pl.when(pl.col("excluded").is_null() & ~inside).then(pl.lit(NOT_SELECTED)).otherwise("excluded")
    told = [
        (*lane, one.method, one.confidence, one.mark, one.requests_from or _NOTHING)
        for lane, one in steps.detections.items()
    ]
    roles = timeline.replays[[*_RANK, "start_ns"]].hstack(steps.replays[["role", "position"]])
    return Part(
        mode=timeline.mode.value,
        origin_ns=timeline.trace.info.start_ns,
        ranks=pl.DataFrame(
            told,
            schema={
                "gpu": pl.Int32, "process": pl.Int64, "method": pl.String, "confidence": pl.String, "mark": pl.String,
                "requests_from": pl.String,
            },
            orient="row",
        ),
        steps=steps.windows.select(*_RANK, "index", "start_ns", excluded.alias("excluded"), "regime", "requests"),
        roles=roles.drop_nulls("role"),
    )  # fmt: skip


def take_up(timeline: Timeline, part: Part) -> Steps:
    """Return the steps of a part.

    Windows are where they were, clipped to the part: what precedes the first whole one is its head, and the last
    has no closing gap.

    Raises:
        NotATraceError: what the part says of its steps can't be.
    """
    _check(part)
    devices = {device.gpu: device for device in timeline.devices}
    ranks = [rank for rank in Rank.in_rows(part.ranks) if rank.gpu in devices]
    found = [_windows(rows, devices[rank.gpu]) for rank in ranks if len(rows := part.steps.pipe(where, rank.mine))]
    windows = pl.concat([pl.DataFrame(schema=WINDOWS), *(one[list(WINDOWS)] for one in found)])
    if part.ranks["requests_from"].null_count():
        windows, part = _with_requests(timeline, windows, part)
    told = {
        Rank(gpu, process): StepDetection(
            method, cast("Confidence", confidence), mark, None, None if said == _NOTHING else said
        )
        for gpu, process, method, confidence, mark, said in part.ranks.iter_rows()
        if gpu in devices
    }
    return Steps(told, windows, _replays(timeline, part, windows))


def _with_requests(timeline: Timeline, windows: pl.DataFrame, part: Part) -> tuple[pl.DataFrame, Part]:
    """Return the windows and the part of an older slice, which says of requests no more than ranges did."""
    if windows["requests"].count():
        return windows, replace(part, ranks=part.ranks.with_columns(requests_from=pl.lit("nvtx")))
    numbers, said = [], {}
    for lane in lanes(timeline):
        mine = kept(windows, lane.rank.is_of(windows))
        signatures = replay_signatures(timeline, lane) if len(lane.replays) else None
        events = lane_events(timeline, lane, signatures)
        told = requests_of(timeline, lane, events, mine["start_ns"].to_numpy())
        numbers.append(mine.with_columns(requests=told.numbers))
        said[lane.rank] = told.told_by or _NOTHING
    names = [said.get(Rank(gpu, process), _NOTHING) for gpu, process in part.ranks[[*_RANK]].iter_rows()]
    ranks = part.ranks.with_columns(requests_from=pl.Series(names, dtype=pl.String))
    return pl.concat(numbers), replace(part, ranks=ranks)


def _check(part: Part) -> None:
    reasons = set(part.steps["excluded"].drop_nulls().unique()) - set(_REASONS)
    confidences = set(part.ranks["confidence"].unique()) - set(CONFIDENCES)
    methods = set(part.ranks["method"].unique()) - set(METHODS)
    said = set(part.ranks["requests_from"].drop_nulls().unique()) - set(_REQUESTS_FROM)
    negative = part.steps.select(pl.any_horizontal(pl.col("regime", "requests") < 0).any()).item()
    if reasons or confidences or methods or said or negative or part.steps[[*_RANK, "index"]].is_duplicated().any():
        raise NotATraceError("the slice says of its steps what can't be", hint="slice the capture again")


def _windows(rows: pl.DataFrame, device: Device) -> pl.DataFrame:
    """Return the windows of one rank that reach into its GPU's span."""
    rows = rows.sort("start_ns")
    ends = np.append(rows["start_ns"].to_numpy()[1:], device.end_ns)
    whole = rows.with_columns(end_ns=pl.Series(ends).clip(upper_bound=device.end_ns))
    clipped = whole.with_columns_seq(
        excluded=pl.when(pl.col("start_ns") < device.start_ns).then(pl.lit(HEAD)).otherwise("excluded"),
        start_ns=pl.col("start_ns").clip(lower_bound=device.start_ns),
    ).pipe(where, pl.col("start_ns") < pl.col("end_ns"))
    last = pl.int_range(pl.len()) == pl.len() - 1
    return clipped.with_columns(excluded=pl.when(last).then(pl.lit(TAIL)).otherwise("excluded"))


def _replays(timeline: Timeline, part: Part, windows: pl.DataFrame) -> pl.DataFrame:
    """Return window_index, role and position of every replay, in the timeline's order."""
    moment = [*_RANK, "start_ns"]
    known = part.roles.unique(moment, keep="first", maintain_order=True)
    roles = timeline.replays[moment].join(known, on=moment, how="left", maintain_order="left")
    return roles.select_seq(window_of_replays(timeline, windows), "role", "position")
