"""The windows of a lane, and which of them are kept out of the statistics, with the reason."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import polars as pl

from bubblefinder.intervals import begin_and_end, distinct, last_before, median
from bubblefinder.lookup import NOWHERE, column_of, kept, nullable, numbered, order_of, where
from bubblefinder.steps import thresholds
from bubblefinder.steps.boundaries import launches_of, mark_boundaries
from bubblefinder.steps.content import content_of
from bubblefinder.steps.events import REPLAY
from bubblefinder.steps.interludes import Waiting, with_interludes
from bubblefinder.steps.model import WINDOWS
from bubblefinder.steps.reasons import CAPTURE_START, HEAD, PREFILL, REGIME, TAIL
from bubblefinder.steps.regimes import regimes_of
from bubblefinder.steps.request_blocks import UNTOLD
from bubblefinder.steps.requests import requests_of
from bubblefinder.timeline.ranges import own_name

if TYPE_CHECKING:
    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.events import Events
    from bubblefinder.steps.lane import RankWork
    from bubblefinder.steps.model import RequestsFrom
    from bubblefinder.timeline.model import Timeline

_PREFILL_TEXT: Final = r"(?i)prefill|execute_context_[1-9]\d*\("
_SLEEPS: Final = r"^(e?poll|p?select|recv|accept|pthread_cond|sem_|futex|nanosleep|clock_nanosleep|read)"
_LOADS: Final = re.compile(r"^(cuda|cu)(Module|Library)Load")
_FEWEST: Final = 2


class LaneWindows(NamedTuple):
    """The windows of a lane, as in `Steps.windows`, and what told their requests."""

    frame: pl.DataFrame
    requests_from: RequestsFrom | None


def lane_windows(
    timeline: Timeline, lane: RankWork, events: Events, boundaries: Ints, roles: pl.DataFrame
) -> LaneWindows:
    """Return the windows that tile the GPU's span.

    Args:
        timeline: the timeline.
        lane: the lane.
        events: its events.
        boundaries: starts of the steps; those of operations that take no time may lie outside the GPU's span.
        roles: replay_index, role and position of the lane's replays, in their order.
    """
    boundaries = distinct(np.clip(boundaries, lane.start_ns, lane.end_ns - 1))
    boundaries = _since_compute(events, boundaries)
    content = content_of(events, boundaries, np.append(boundaries[1:], lane.end_ns))
    pieces = with_interludes(events, content, partial(_waiting, timeline, lane), lane.start_ns)
    starts = np.array(pieces.starts, np.int64)
    ends = np.append(starts[1:], lane.end_ns)
    reasons = [*pieces.reasons]
    for number in np.flatnonzero(_prefill_by_nvtx(timeline, lane, events, starts)).tolist():
        reasons[number] = reasons[number] or PREFILL
    steady = np.array([number for number, reason in enumerate(reasons) if reason is None], np.int64)
    early = len(steady) > _FEWEST and reasons[: steady[0]] in ([], [HEAD])
    if early and _stands_out(lane, starts, ends, steady, roles):
        reasons[steady[0]] = CAPTURE_START
    steps = np.array([reason in (None, TAIL, CAPTURE_START) for reason in reasons])
    requests, told_by = requests_of(timeline, lane, events, starts)
    regime, way = regimes_of(events, (starts, ends), steps, requests.fill_null(UNTOLD).to_numpy())
    usual = np.bincount(way + 1)[1:].argmax() if steps.any() else 0
    for number in np.flatnonzero((way >= 0) & (way != usual)).tolist():
        reasons[number] = TAIL if reasons[number] == TAIL else REGIME
    frame = pl.DataFrame(
        {
            "index": np.arange(len(starts)),
            "gpu": np.full(len(starts), lane.gpu),
            "process": np.full(len(starts), lane.process),
            "start_ns": starts,
            "end_ns": ends,
            "excluded": reasons,
            "regime": nullable(regime),
            "requests": requests,
        },
        schema_overrides=WINDOWS,
    )
    return LaneWindows(frame, told_by)


def _since_compute(events: Events, boundaries: Ints) -> Ints:
    """Leave out the first boundaries behind which nothing is computed up to the next: weights arrive, or buffers."""
    computed = last_before(events.start_ns[events.what <= REPLAY], boundaries)
    inside = computed[computed >= 0]
    return boundaries[inside.min() :] if len(inside) else boundaries


def _stands_out(lane: RankWork, starts: Ints, ends: Ints, steady: Ints, roles: pl.DataFrame) -> bool:
    """Tell whether the first step is longer than the rest, as a whole or in the replays of one role."""
    lengths = [(ends - starts)[steady]]
    begun, ended = begin_and_end(lane.replays)
    place = np.full(len(starts) + 1, NOWHERE)
    place[steady] = np.arange(len(steady))
    step = place[np.searchsorted(starts, begun, side="right") - 1]
    named, role = numbered(roles[["role"]])
    for number in range(len(named)):
        mine = (role == number) & (step != NOWHERE)
        if np.bincount(step[mine], minlength=len(steady)).all():
            lengths.append(np.bincount(step[mine], (ended - begun)[mine]).astype(np.int64))
    return any(_above_the_rest(values) for values in lengths)


def _above_the_rest(values: Ints) -> bool:
    rest = values[1:]
    middle = median(rest)
    spread = thresholds.STANDS_OUT_MADS * median(np.abs(rest - middle))
    return bool(values[0] > thresholds.STANDS_OUT * middle + spread)


def _waiting(timeline: Timeline, lane: RankWork) -> Waiting:
    """Return the calls in which threads that launch the lane's work slept, and what they called."""
    calls = lane.operations["call_index"].drop_nulls()
    launched = column_of(timeline.calls, "thread")[calls].unique().to_numpy()
    slept = timeline.trace.os_calls
    if len(slept):
        mine = np.isin(slept["thread"].to_numpy(), launched)
        slept = kept(slept, mine).filter(pl.col("name").str.contains(_SLEEPS))
    called = pl.concat([timeline.calls_of.of(thread, "start_ns", "api") for thread in (None, *launched.tolist())])
    loading = [api for api in called["api"].unique() if api is not None and _LOADS.search(api)]
    loads = called["api"].is_in(loading).fill_null(value=False).to_numpy()
    order = order_of([called["start_ns"].to_numpy()])
    at = slice(None) if order is None else order
    return Waiting(*begin_and_end(slept), called["start_ns"].to_numpy()[at], loads[at])


def _prefill_by_nvtx(timeline: Timeline, lane: RankWork, events: Events, starts: Ints) -> Bools:
    marks = timeline.ranges.named(_PREFILL_TEXT).pipe(
        where, (pl.col("process") == lane.process) & own_name(pl.col("text")).str.contains(_PREFILL_TEXT)
    )
    hit = np.zeros(len(starts), np.bool_)
    if len(marks):
        boundaries = mark_boundaries(launches_of(events), marks)
        window = np.searchsorted(starts, boundaries, side="right") - 1
        hit[window[window >= 0]] = True
    return hit
