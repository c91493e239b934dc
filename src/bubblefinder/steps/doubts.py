"""What the windows of a lane tell against the steps that they were cut by."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.intervals import different, last_before, median
from bubblefinder.lookup import place_among
from bubblefinder.steps import thresholds
from bubblefinder.steps.events import REPLAY, largest_uploads
from bubblefinder.steps.reasons import NO_LOAD, PREFILL, REGIME, SET_UP

if TYPE_CHECKING:
    import polars as pl

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.detect import Detected
    from bubblefinder.steps.events import Events


def less_sure(steps: Detected, windows: pl.DataFrame) -> Detected:
    """Doubt steps beside which much is left out for no good reason, and those some of which are several, or parts.

    Most of all where prefills are among them, more than can be told from the steps.
    """
    reasons = windows["excluded"].to_list()
    length = (windows["end_ns"] - windows["start_ns"]).to_numpy()
    counted = np.array([reason not in (SET_UP, NO_LOAD, PREFILL, REGIME) for reason in reasons], np.bool_)
    closed = np.array([reason is None for reason in reasons], np.bool_)
    starts, computes = windows["start_ns"].to_numpy(), steps.events.what <= REPLAY
    window = last_before(steps.events.start_ns[computes], starts)
    if not closed.any() or _with_prompts(steps.events, starts, window, closed):
        return replace(steps, confidence="low")
    excess = np.maximum(length[counted & ~closed] - median(length[closed]), 0.0)
    left_out = float(excess.sum()) > thresholds.LEFT_OUT * float(length[counted].sum())
    sure = steps.confidence == "high"
    if left_out or (sure and _odd(steps.events.alike[computes], window, closed)):
        return replace(steps, confidence="medium" if sure else "low")
    return steps


def _with_prompts(events: Events, starts: Ints, window: Ints, steps: Bools) -> bool:
    """Tell whether more than a few steps upload a prompt and compute longer than those that don't.

    A short prompt is little more than a larger batch's ids, but takes far longer than any batch.
    """
    lengths = (events.end_ns - events.start_ns)[events.what <= REPLAY]
    size, took = largest_uploads(events, starts)[steps], np.bincount(window + 1, lengths, len(starts) + 1)[1:][steps]
    usual = max(float(np.quantile(size, thresholds.RARE, method="lower")), thresholds.TOKEN_BYTES)
    more = size >= thresholds.LENGTH_RATIO * usual
    ratio = took / max(float(np.median(took[~more])), 1)
    short = more & (ratio > thresholds.FAR_MORE)
    long = (size >= thresholds.PROMPT * usual) & (ratio > thresholds.LENGTH_RATIO)
    return bool(np.mean(short | long) > thresholds.LEFT_OUT)


def _odd(alike: Ints, window: Ints, steps: Bools) -> bool:
    """Tell whether more than a few steps have twice, or not at all, nearly all of what comes once in a step.

    So do steps between which a record was lost, and the parts of one that was cut. Chores and batch sizes change less,
    and a step that lacks the only such thing may have given that graph up.

    Args:
        alike: what each event that computes is like.
        window: that it runs in.
        steps: which windows are steps.
    """
    inside = (window >= 0) & steps[window]
    window, alike = window[inside], alike[inside]
    kinds = different(alike, int(alike.max(initial=0)) + 1)
    keys = window * len(kinds) + place_among(kinds, alike)
    of_step = np.bincount(keys, minlength=len(steps) * len(kinds)).reshape(len(steps), len(kinds))[steps]
    once = np.mean(of_step == 1, axis=0) >= thresholds.USUAL
    if not once.any():
        return False
    several = once.sum() >= thresholds.FEWEST
    doubled, lacking = (np.mean(told[:, once], axis=1) >= thresholds.FILLED for told in (of_step > 1, of_step < 1))
    return bool(np.mean(doubled | (lacking & several)) > thresholds.LEFT_OUT)
