"""How far two captures of one thing may differ: the regime of a step, its floor, and the measured spread.

Steps of one capture say nothing about the next capture: loops bound by the GPU agree within 0.04 % between
captures, loops bound by the host differ by up to 25 % although each looks steady inside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Final

from bubblefinder.compare.metrics import NoiseSource, decode_rows, ranks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.compare.model import Regime
    from bubblefinder.report.model import Report, StepRow

HOST_BOUND_SHARE: Final = 0.05
WHOLLY_HOST_BOUND_SHARE: Final = 0.15
PRIOR_DEGREES: Final = 3
COUNT_FLOOR: Final = 0.05
QUEUE_FLOOR: Final = 0.25
SMALLEST_ROLE_SHARE: Final = 0.002
# Student's t at 99.5 %, by degrees of freedom from 1.
_T_995: Final = (
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947,
    2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779, 2.771, 2.763, 2.756, 2.750,
)  # fmt: skip
_Z_995: Final = 2.576


@dataclass(frozen=True, slots=True)
class Floors:
    """The relative difference that means nothing between one capture and one other, by regime."""

    gpu: float = 0.01
    host: float = 0.10

    def at(self, waiting: float) -> float:
        """Return the floor for steps that wait for the host for this share of their time.

        The host's noise is in the waiting, so the floor grows with it from one regime's to the other's.
        """
        past = (waiting - HOST_BOUND_SHARE) / (WHOLLY_HOST_BOUND_SHARE - HOST_BOUND_SHARE)
        return self.gpu + (self.host - self.gpu) * min(max(past, 0.0), 1.0)


@dataclass(frozen=True, slots=True)
class Setting:
    """What the noise of one comparison depends on.

    Attributes:
        waiting: the largest share of a typical step that any rank of any capture waits for the host.
        step_ns: the length of a step, of the side where it is shorter.
        ranks: how many ranks wait for each other.
        floors: what one capture a side must exceed.
        reach: by which share the host's noise alone may lengthen a step for which the GPU hardly waits.
    """

    waiting: float
    step_ns: float
    ranks: int
    floors: Floors = Floors()
    reach: float = 0.0

    @property
    def regime(self) -> Regime:
        """Who sets the pace."""
        return regime(self.waiting)

    @property
    def share(self) -> float:
        """The difference of the step that one capture a side must exceed, relative to the step."""
        return max(self.floors.at(self.waiting), min(self.floors.gpu + self.reach, self.floors.host))

    @property
    def stall_ns(self) -> float:
        """What a single step must be longer by where the host's noise is in every one; 0 where it has time."""
        return self.floors.host * self.step_ns if self.share > self.floors.gpu else 0.0

    def floor(self, noise: NoiseSource, size: float) -> float:
        """Return the absolute difference that one capture a side can't be told from noise, for a value of this size."""
        # Ranks that wait for each other do so inside busy kernels: then the host's noise is in there as well.
        own = self.share if self.ranks > 1 else self.floors.gpu
        floors = {
            NoiseSource.STEP: self.share * self.step_ns,
            NoiseSource.GPU: max(own * size, SMALLEST_ROLE_SHARE * self.step_ns),
            NoiseSource.HOST: self.floors.host * self.step_ns,
            NoiseSource.QUEUE: QUEUE_FLOOR * self.step_ns,
            NoiseSource.SHARE: self.share,
            NoiseSource.HOST_SHARE: self.floors.host,
            NoiseSource.COUNT: max(COUNT_FLOOR, self.floors.gpu * size),
        }
        return floors[noise]

    def least(self, noise: NoiseSource, size: float) -> float:
        """Return the smallest difference ever called one, however well the spread is known."""
        steady = Setting(0.0, self.step_ns, self.ranks, Floors(self.floors.gpu, self.floors.gpu))
        return steady.floor(noise, size)


@dataclass(frozen=True, slots=True)
class Spread:
    """Squared deviations between captures of one thing, and the degrees of freedom behind them."""

    squares: float = 0.0
    degrees: int = 0

    def __add__(self, other: Spread) -> Spread:
        """Pool two independent estimates."""
        return Spread(self.squares + other.squares, self.degrees + other.degrees)


def waiting_of(report: Report) -> float:
    """Return the share of a typical step that the GPU waits for launches, on the rank where it waits longest."""
    return max((_waiting(decode_rows(report, rank)) for rank in ranks(report)), default=0.0)


def regime(waiting: float) -> Regime:
    """Return who sets the pace: the host if the GPU waits for launches for more than 5 % of a typical step."""
    return "host" if waiting > HOST_BOUND_SHARE else "gpu"


def spread_of(values: Sequence[float]) -> Spread:
    """Return how far captures of one side lie apart."""
    if len(values) < 2:  # noqa: PLR2004 - one value has no spread
        return Spread()
    mean = math.fsum(values) / len(values)
    return Spread(math.fsum((v - mean) ** 2 for v in values), len(values) - 1)


def line_between(
    noise: NoiseSource, base: Sequence[float], head: Sequence[float], setting: Setting, known: Spread | None = None
) -> float:
    """Return the difference between the means of two sides, one value a capture, beyond which it isn't noise.

    `known` is the spread between captures of the same thing from elsewhere.
    """
    size = max(abs(math.fsum(side) / len(side)) for side in (base, head))
    spread = spread_of(base) + spread_of(head) + (known or Spread())
    floor, least = setting.floor(noise, size), setting.least(noise, size)
    return threshold(floor, spread, (len(base), len(head)), least)


def threshold(floor: float, spread: Spread, captures: tuple[int, int], least: float) -> float:
    """Return the difference between two sides' means beyond which it isn't noise.

    A t-test at 99 % whose variance is pooled from two sources: the captures, and the stated floor, which stands for
    `PRIOR_DEGREES` degrees of freedom and is what one capture a side must exceed. The degrees of freedom of the sum are
    Welch and Satterthwaite's, so whichever source dominates also says how well the sum is known.
    """
    stated = PRIOR_DEGREES * (floor / (quantile_t(PRIOR_DEGREES) * math.sqrt(2))) ** 2
    total = stated + spread.squares
    if total <= 0:
        return least
    measured = spread.squares**2 / spread.degrees if spread.degrees else 0.0
    degrees = total**2 / (stated**2 / PRIOR_DEGREES + measured)
    deviation = math.sqrt(total / (PRIOR_DEGREES + spread.degrees))
    return max(least, quantile_t(degrees) * deviation * math.sqrt(1 / captures[0] + 1 / captures[1]))


def quantile_t(degrees: float) -> float:
    """Return Student's t at 99.5 % (99 % two-sided) for at least one degree of freedom."""
    whole = max(int(degrees), 1)
    if whole >= len(_T_995):
        return _Z_995 + (_T_995[-1] - _Z_995) * len(_T_995) / degrees
    low, high = _T_995[whole - 1], _T_995[whole]
    part = (1 / whole - 1 / max(degrees, 1.0)) / (1 / whole - 1 / (whole + 1))
    return low + (high - low) * part


def _waiting(rows: Sequence[StepRow]) -> float:
    shares = [((row.host_late_ns or 0) + (row.launching_ns or 0)) / row.duration_ns for row in rows if row.duration_ns]
    return median(shares) if shares else 0.0
