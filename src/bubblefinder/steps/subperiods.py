"""Whether a cycle is one step: it may hold several alike ones, or only ids may tell where it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bubblefinder.steps import thresholds
from bubblefinder.steps.signatures import TO_HOST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.intervals import Ints
    from bubblefinder.steps.signatures import Signatures


def steps_in_cycle(signatures: Signatures, phases: Ints, period: int) -> int:
    """Return how many alike steps a cycle holds, each after a read of results: 1 if it is one.

    Batch sizes that alternate, or a prefill every few steps, recur only with several steps.
    """
    of_place = [phases == place for place in range(period)]
    if not all(mine.any() for mine in of_place):
        return 1
    reads = np.array([np.mean((signatures.seams[mine] & TO_HOST) > 0) for mine in of_place])
    kinds = np.array([np.bincount(signatures.kinds[mine]).argmax() for mine in of_place])
    sizes = np.array([np.median(signatures.sizes[mine]) for mine in of_place])
    for shorter in range(1, period // 2 + 1):
        if period % shorter == 0 and (reads[::shorter] > thresholds.READ_MOSTLY).all():
            alike = (kinds == np.resize(kinds[:shorter], period)).all()
            several = shorter > 1 or not signatures.counted
            if alike or (several and _grown_alike(sizes.reshape(-1, shorter), signatures.ratio)):
                return period // shorter
    return 1


def _grown_alike(sizes: NDArray[np.float64], ratio: float) -> bool:
    """Tell whether every row is the first one times a factor: all graphs of a step take longer for a larger batch."""
    growth = sizes / np.maximum(sizes[0], 1)
    most = thresholds.GROWN_ALONE if sizes.shape[1] == 1 else thresholds.GROWN_ALIKE
    even = (growth.max(axis=1) <= ratio * growth.min(axis=1)).all()
    return bool(even and growth.max() <= most and growth.min() >= 1 / most)
