"""The sentences of a comparison, the same in every format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.compare.delta.tracer import WORTH
from bubblefinder.compare.metrics import METRICS
from bubblefinder.compare.model import LENGTHS, Capture, Change, Diff, Noise, SiteChange, SiteSide, Verdict
from bubblefinder.report.prediction_sentences import in_words
from bubblefinder.report.sentences import plain
from bubblefinder.units import UNKNOWN, count, duration, plural, share, signed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.compare.delta.cause import Cause
    from bubblefinder.compare.delta.model import Suspect

REGIMES: Final = {"gpu": "bound by the GPU", "host": "bound by the host"}
_VERDICTS: Final[Mapping[str, str]] = {
    "regression": "Regression",
    "improvement": "Improvement",
    "no change": "No change",
    "mixed": "Mixed",
    "can't tell": "Can't tell",
    "incomparable": "Can't be compared",
}
MARKS: Final = {"better": "✓", "worse": "✗", "changed": "≠", "new": "+", "gone": "-"}
"""A sign beside each word, since nothing is told by colour alone."""
MOST_TOLD: Final = 3
CAPTURE_AGAIN: Final = "Capture both again on one machine, three a side."
_CALLS: Final = frozenset({"new wait", "gone wait", "new call", "gone call"})
"""Suspects that name the call that came or went."""
_TAIL: Final = "step.duration.p95"
MANY_CAPTURES: Final = 3


def headline(
    verdict: Verdict, gated: Sequence[Change], noise: Noise, findings: Sequence[SiteChange], cause: Cause
) -> str:
    """Return the verdict, led by the first gated metric that moved, and the first suspect, else what came or went."""
    if cause.excuse:
        return f"{_VERDICTS[verdict]}: {cause.excuse} {CAPTURE_AGAIN}"
    named = "Mainly" if verdict == "improvement" else "First suspect"
    told = [f"{named} ({of_cause(one)}): {one.sentence}." for one in cause.suspects[:1]]
    came = [_came_or_went(f, verdict) for f in findings if f.structural]
    explains = any(one.explained for one in gated) and not any(one.kind in _CALLS for one in cause.suspects[:1])
    told = [*told, *came[: 1 if told else None]] if explains or not told else told
    return " ".join([_verdict(verdict, gated, noise), *told][:MOST_TOLD])


def of_cause(suspect: Suspect) -> str:
    """Return how sure a suspect is; the verdict has a confidence of its own."""
    return f"{suspect.confidence} confidence in this cause"


def _verdict(verdict: Verdict, gated: Sequence[Change], noise: Noise) -> str:
    told = [c for c in gated if c.status in {"better", "worse", "changed"}] or list(gated)
    if not told:
        return f"{_VERDICTS[verdict]}."
    first = min(told, key=_precedence)
    also = _tail_alone(first, gated) or _agreeing(first, told)
    if verdict == "mixed":
        better = sum(c.status == "better" for c in told)
        also = f" Of the gated metrics, {better} got better and {sum(c.status == 'worse' for c in told)} worse."
    also += _tail_against(first, gated)
    moved = (difference(first) or "unchanged") + _tracers(first)
    values = f"{value(first.base.value, first.unit)} before and {value(first.head.value, first.unit)} after ({moved})"
    return f"{_VERDICTS[verdict]}: {_subject(first)} {values}, {_relation(first, noise)}.{also}"


def _tracers(change: Change) -> str:
    """Say how much of a difference is the tracer's, if that is worth a word."""
    much = abs(change.tracer) > WORTH * (change.base.value or 0.0)
    return f", {signed(change.tracer)} of it the tracer's" if much and change.unit == "ns" else ""


def _tail_alone(first: Change, gated: Sequence[Change]) -> str:
    """Say that few steps moved the mean, if the median stayed."""
    middle = next((c for c in gated if c.metric == LENGTHS[1] and c.where == first.where), None)
    if first.metric != LENGTHS[0] or not first.moved or middle is None or middle.status != "same":
        return ""
    shown = value(middle.head.value, middle.unit)
    return f" The median stays at {shown}: few steps {'stall' if first.status == 'worse' else 'no longer stall'}."


def _tail_against(first: Change, gated: Sequence[Change]) -> str:
    """Say that the tail moved the other way by more than the step did, though too little to be judged."""
    tail = next((c for c in gated if c.metric == _TAIL and c.where == first.where), None)
    if first.metric not in LENGTHS or not first.moved or tail is None or tail.status != "same":
        return ""
    moved, other = first.delta or 0.0, tail.delta or 0.0
    if moved * other >= 0 or abs(other) <= abs(moved):
        return ""
    before, after = (value(side.value, tail.unit) for side in (tail.base, tail.head))
    return (
        f" The tail moved the other way: p95 is {before} before and {after} after, which these captures don't settle."
    )


def _agreeing(first: Change, told: Sequence[Change]) -> str:
    """Say how many other gated metrics moved alike; those of one step's length count once."""
    alike = {_subject_of(c) for c in told if c.status == first.status} - {_subject_of(first)}
    return f" {plural(len(alike), 'other gated metric')} {'agrees' if len(alike) == 1 else 'agree'}." if alike else ""


def _subject_of(change: Change) -> tuple[str, str]:
    name = "step.duration" if change.metric.startswith("step.duration.") else change.metric
    return name, str(change.where)


def _relation(change: Change, noise: Noise) -> str:
    line = value(change.threshold, change.unit)
    if change.explained:
        return f"within the noise of steps {REGIMES[noise.regime]}, but explained by the calls that came or went"
    if change.stalls and change.status != "same":
        return (
            f"by {plural(change.stalls, 'step')} longer than all of {'base' if (change.delta or 0) > 0 else 'head'}'s"
        )
    if change.status != "same":
        return f"beyond the noise of {line} for steps {_bound(noise)}"
    if abs((change.delta or 0.0) - change.tracer) > (change.threshold or 0.0):
        return f"beyond the noise of {line}, but the steps in these captures scatter as much: more steps would tell"
    return f"within the noise of {line} for steps {_bound(noise)}"


def _bound(noise: Noise) -> str:
    """Say who sets the pace; of a GPU that the host barely keeps fed, that."""
    barely = noise.regime == "gpu" and noise.floor > noise.least
    return "whose host barely keeps up" if barely else REGIMES[noise.regime]


def _came_or_went(change: SiteChange, verdict: Verdict) -> str:
    side = change.head if change.status == "new" else change.base
    title = plain(side.title, 120).rstrip(".")
    if side.recoverable_ns is None and verdict == "no change":
        return f"{change.status.title()}: {title}."  # its idle time may have been there before, under another cause
    return f"{change.status.title()}: {title}, {_worth(side)}."


def _worth(side: SiteSide) -> str:
    if side.recoverable_ns == 0:
        return "worth nothing by itself"
    worth = in_words(side.recoverable_ns, side.recoverable_range_ns)
    return f"worth {worth} a step" if worth else f"{duration(side.bubble_ns)} of idle a step"


def refusal(reasons: Sequence[str]) -> str:
    """Return why there is no verdict."""
    return f"{_VERDICTS['incomparable']}. {' '.join(reasons)}"


def title_and_rest(diff: Diff) -> tuple[str, str]:
    """Return the headline as the verdict alone and what follows it."""
    verdict = _VERDICTS[diff.verdict]
    return verdict, diff.headline.removeprefix(verdict).lstrip(":. ")


def rests_on(diff: Diff) -> str:
    """Return how many captures and steps the verdict rests on, and how much it should be believed."""
    sides = " against ".join(
        f"{plural(len(side), 'capture')} ({count(sum(c.steps for c in side))} steps)" for side in (diff.base, diff.head)
    )
    sentence = f"It rests on {sides}; confidence in the verdict: {diff.confidence}."
    if diff.noise is None:
        return f"{sides[0].upper()}{sides[1:]}."
    if diff.noise.history:
        return f"{sentence} The spread between captures comes from the history as well."
    if diff.noise.degrees:
        return sentence
    floor = share(diff.noise.floor, 0)
    return (
        f"{sentence} One capture a side shows no spread between captures, so a stated floor of {floor} of the step "
        f"stands in; {MANY_CAPTURES} captures a side would measure it."
    )


def place(where: Mapping[str, str | int]) -> str:
    """Return the rank, role or severity that a metric is about, in brackets."""
    of = ", ".join(f"{key} {plain(str(one), 60)}" for key, one in where.items())
    return f" ({of})" if of else ""


def metric_name(change: Change) -> str:
    """Return what a row is about: the class or the role, with its rank where there are several."""
    if change.metric.startswith("step."):
        return metric_label(change.metric)
    of = ", ".join(f"rank {v}" if key == "rank" else plain(str(v), 60) for key, v in change.where.items())
    name = metric_label(change.metric)
    return f"{of}: {name}" if "role" in change.where else f"{name} ({of})" if of else name


def metric_label(metric: str) -> str:
    """Return what a metric is called; an unknown one keeps its id."""
    return METRICS[metric].label if metric in METRICS else metric


def value(number: float | None, unit: str) -> str:
    """Return a metric's value with its unit."""
    if unit == "ns":
        return duration(number)
    if number is None:
        return UNKNOWN
    return share(number) if unit == "ratio" else f"{number:,.2f}".rstrip("0").rstrip(".")


def difference(change: Change) -> str:
    """Return the change with its sign: relative for times, absolute for shares and counts."""
    if change.delta is None:
        return UNKNOWN
    if not change.delta:
        return ""
    if change.unit == "ratio":
        return f"{100 * change.delta:+z.1f} points"
    if change.unit == "count":
        return f"{change.delta:+,.2f}".rstrip("0").rstrip(".")
    if change.ratio is None or change.ratio <= 0 or (change.base.value or 0) <= 0:
        return signed(change.delta)
    return f"{100 * (change.ratio - 1):+z.1f} %"


def capture_name(capture: Capture) -> str:
    """Return a capture's name with its label and commit."""
    return " ".join(plain(text, 80) for text in (capture.name, capture.label, capture.commit) if text)


def _precedence(change: Change) -> tuple[int, float]:
    """Order what moved: the mean step, which is what a user pays, its median, then what moved furthest."""
    place = LENGTHS.index(change.metric) if change.metric in LENGTHS else len(LENGTHS)
    return place, -abs(change.delta or 0) / change.threshold if change.threshold else 0.0


def _subject(change: Change) -> str:
    if change.metric in LENGTHS:
        rank = change.where["rank"]
        which = "the mean step" if change.metric == LENGTHS[0] else "a step"
        return f"{which} of rank {rank} takes" if rank else f"{which} takes"
    where = "".join(f" of {key} {plain(str(v), 60)}" for key, v in change.where.items() if (key, v) != ("rank", 0))
    kind, _, *quantile = change.metric.split(".")
    if kind == "step" and quantile:
        return f"{metric_label(change.metric)} time a step ({quantile[0]}){where} is"
    return f"{metric_label(change.metric)}{where} is"
