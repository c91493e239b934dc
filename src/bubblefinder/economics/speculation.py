"""Whether speculation pays: step, TPOT and accept length tied together, and how deep to draft."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final

from bubblefinder.errors import UsageError
from bubblefinder.units import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

SCHEMA: Final = "bubblefinder.speculation/1"
SILENT: Final = 0.02
"""An accept length so near to 1 means that no draft token is taken: two decimals is what engines print."""
CANDIDATES: Final = (
    "draft and target share only a part of the LM head (seen with FP8 heads): drafts are wrong, nothing errors",
    "the figure counts accepted draft tokens without the verifier's own, so that 1.00 is really 2.00",
    "the draft layer's weights are random or of another checkpoint",
    "this workload can't be drafted, or too few tokens were measured",
)
"""What looks alike where no draft token is taken. None of it can be told from the length alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One measured run.

    Attributes:
        steps: draft passes; 0 without speculation.
        tokens: positions in a verify pass.
        accept: tokens committed a step, the verifier's own included.
        tpot_ms: mean time per output token.
    """

    steps: int
    tokens: int
    accept: float
    tpot_ms: float

    @property
    def step_ms(self) -> float:
        """Length of a step: TPOT times accept length."""
        return self.tpot_ms * self.accept

    @property
    def fell_back(self) -> bool:
        """Whether drafts are made and none is taken."""
        return self.steps > 0 and self.accept <= 1.0 + SILENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """All runs of one draft depth.

    Attributes:
        steps: draft passes.
        tokens: positions in a verify pass.
        accept: mean accept length of the runs.
        tpot_ms: their mean TPOT.
        runs: how many.
        spread_ms: largest less smallest TPOT; null with one run.
    """

    steps: int
    tokens: int
    accept: float
    tpot_ms: float
    runs: int
    spread_ms: float | None

    @property
    def step_ms(self) -> float:
        """Mean TPOT times mean accept length."""
        return self.tpot_ms * self.accept

    @property
    def name(self) -> str:
        """Draft passes and positions, as ``3/4``."""
        return f"{self.steps}/{self.tokens}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deeper:
    """What the next deeper draft costs and brings.

    Attributes:
        shallow: the depth before.
        deep: the depth after.
        cost: how much longer the step becomes, as a ratio.
        break_even: accept length at which the deeper draft is as fast as the shallower.
        sure: whether the difference is larger than the runs of either depth spread; null with one run each.
    """

    shallow: Depth
    deep: Depth
    cost: float
    break_even: float
    sure: bool | None

    @property
    def pays(self) -> bool:
        """Whether the accept length rises by more than the step."""
        return self.deep.accept > self.break_even


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """Runs of several depths, compared.

    Attributes:
        points: as given.
        depths: by depth, shallowest first.
        deeper: each depth against the one before.
        best: the depth with the least TPOT; null without a point.
    """

    points: tuple[Point, ...]
    depths: tuple[Depth, ...]
    deeper: tuple[Deeper, ...]
    best: Depth | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Speculation against plain decoding.

    Attributes:
        accept: tokens committed a step.
        cost: a round of draft and verify over a plain step; null where not known.
        predicted: accept over cost; null without a cost.
        measured: plain TPOT over speculative TPOT; null where not measured.
        fallback_ms: TPOT if no draft token were taken and every round still paid for; null without a cost.
    """

    accept: float
    cost: float | None
    predicted: float | None
    measured: float | None
    fallback_ms: float | None

    @property
    def unexplained(self) -> float | None:
        """What the measured speed-up has beyond the predicted one; nothing here says why."""
        return None if self.predicted is None or self.measured is None else self.measured - self.predicted


def parse_point(text: str) -> Point:
    """Return the run that ``STEPS:TOKENS:ACCEPT:TPOT_MS`` states.

    Raises:
        UsageError: the text is none, or can't be true.
    """
    hint = "for example --point 3:4:3.11:1.51, an accept length that counts the verifier's own token"
    try:
        steps, tokens, accept, tpot = text.split(":")
        point = Point(steps=int(steps), tokens=int(tokens), accept=float(accept), tpot_ms=float(tpot))
    except ValueError as error:
        raise UsageError(f"--point {text!r} is not STEPS:TOKENS:ACCEPT:TPOT_MS", hint=hint) from error
    if why := impossible(point):
        raise UsageError(f"--point {text!r}: {why}", hint=hint)
    return point


def impossible(point: Point) -> str:
    """Return why no run can be such; empty where one can."""
    if point.steps < 0 or point.tokens < 1:
        return "there are no fewer than 0 draft steps and 1 position in a verify pass"
    if not 1.0 <= point.accept <= point.tokens:
        return f"an accept length lies between 1 and the {plural(point.tokens, 'position')} of a verify pass"
    return "" if point.tpot_ms > 0 else "a TPOT lies above 0"


def sweep(points: Sequence[Point]) -> Sweep:
    """Return the depths compared: mean TPOT times mean accept length, since peaks over a fixed second wobble by 5 %."""

    def key(point: Point) -> tuple[int, int]:
        return point.steps, point.tokens

    depths = tuple(_depth(list(runs)) for _, runs in groupby(sorted(points, key=key), key=key))
    best = min(depths, key=lambda depth: depth.tpot_ms, default=None)
    return Sweep(
        points=tuple(points),
        depths=depths,
        deeper=tuple(_deeper(shallow, deep) for shallow, deep in pairwise(depths)),
        best=best,
    )


def _depth(runs: Sequence[Point]) -> Depth:
    times = [run.tpot_ms for run in runs]
    return Depth(
        steps=runs[0].steps,
        tokens=runs[0].tokens,
        accept=statistics.fmean(run.accept for run in runs),
        tpot_ms=statistics.fmean(times),
        runs=len(runs),
        spread_ms=max(times) - min(times) if len(times) > 1 else None,
    )


def _deeper(shallow: Depth, deep: Depth) -> Deeper:
    ratio = deep.step_ms / shallow.step_ms
    spreads = [depth.spread_ms for depth in (shallow, deep) if depth.spread_ms is not None]
    sure = abs(deep.tpot_ms - shallow.tpot_ms) > max(spreads) if spreads else None
    return Deeper(shallow=shallow, deep=deep, cost=ratio - 1.0, break_even=shallow.accept * ratio, sure=sure)


def verdict(accept: float, tpot_ms: float | None, plain_ms: float | None, cost: float | None) -> Verdict:
    """Return speculation against plain decoding: S = a / c, beside what was measured.

    Args:
        accept: tokens committed a step.
        tpot_ms: TPOT with speculation.
        plain_ms: TPOT, and so step, without.
        cost: a round of draft and verify over a plain step; null: not known.
    """
    return Verdict(
        accept=accept,
        cost=cost,
        predicted=accept / cost if cost else None,
        measured=plain_ms / tpot_ms if plain_ms and tpot_ms else None,
        fallback_ms=cost * plain_ms if cost and plain_ms else None,
    )


def as_document(found: Sweep, against: Verdict | None) -> dict[str, Any]:
    """Return the sweep as plain values for JSON."""
    return {
        "schema": SCHEMA,
        "points": [
            {
                "draft_steps": point.steps, "draft_tokens": point.tokens, "accept_length": point.accept,
                "tpot_ms": point.tpot_ms, "step_ms": point.step_ms,
                "silent_fallback": point.fell_back,
            }
            for point in found.points
        ],
        "break_even": [
            {
                "from": one.shallow.name, "to": one.deep.name, "step_cost": one.cost,
                "accept_length": one.deep.accept, "break_even": one.break_even, "pays": one.pays, "sure": one.sure,
            }
            for one in found.deeper
        ],
        "best": found.best.name if found.best else None,
        "speedup": {
            "accept_length": against.accept, "cost": against.cost, "predicted": against.predicted,
            "measured": against.measured, "unexplained": against.unexplained, "fallback_ms": against.fallback_ms,
        } if against else None,
    }  # fmt: skip
