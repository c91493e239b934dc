"""How well the steps inside one capture pin down their own percentile: a circular block bootstrap."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

RESAMPLES: Final = 1000
LEVEL: Final = 0.95
_SEED: Final = 20261129


def interval(samples: Sequence[int], quantile: float) -> tuple[float, float] | None:
    """Return the 95 % interval of a percentile of consecutive steps, or null with fewer than two.

    Neighbouring steps resemble each other, so whole blocks of about the cube root of n are drawn, and
    wrap around at the end. The seed is fixed: the same steps always give the same interval.
    """
    import numpy as np

    count = len(samples)
    if count < 2:  # noqa: PLR2004 - one step has no spread
        return None
    length = max(1, round(count ** (1 / 3)))
    blocks = math.ceil(count / length)
    starts = np.random.default_rng(_SEED).integers(0, count, size=(RESAMPLES, blocks, 1))
    drawn = ((starts + np.arange(length)) % count).reshape(RESAMPLES, -1)[:, :count]
    values = np.quantile(np.asarray(samples)[drawn], quantile, axis=1)
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
