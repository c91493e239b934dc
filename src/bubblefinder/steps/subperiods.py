"""Whether a cycle is one step: it may hold several alike ones, or only ids may tell where it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.steps.signatures import TO_HOST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bubblefinder.intervals import Bools, Ints
    from bubblefinder.steps.signatures import Signatures

_MOSTLY: Final = 0.5
_APART: Final = 2
_FAR_APART: Final = 4
_GROWN_ALONE: Final = 2
_GROWN_ALIKE: Final = 4


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
        if period % shorter == 0 and (reads[::shorter] > _MOSTLY).all():
            alike = (kinds == np.resize(kinds[:shorter], period)).all()
            several = shorter > 1 or not signatures.counted
            if alike or (several and _grown_alike(sizes.reshape(-1, shorter), signatures.ratio)):
                return period // shorter
    return 1


def _grown_alike(sizes: NDArray[np.float64], ratio: float) -> bool:
    """Tell whether every row is the first one times a factor: all graphs of a step take longer for a larger batch."""
    growth = sizes / np.maximum(sizes[0], 1)
    most = _GROWN_ALONE if sizes.shape[1] == 1 else _GROWN_ALIKE
    even = (growth.max(axis=1) <= ratio * growth.min(axis=1)).all()
    return bool(even and growth.max() <= most and growth.min() >= 1 / most)


def begins_apart(signatures: Signatures, phases: Ints, period: int) -> bool:
    """Tell whether the first replay of a cycle alone comes after a read, or after far more host work than the rest."""
    first = phases == 0
    rest = (phases > 0) & (phases < period)
    if not first.any() or not rest.any():
        return True
    read = (signatures.seams & TO_HOST) > 0
    by_read = np.mean(read[first]) > _MOSTLY and not np.mean(read[rest])
    known = signatures.host_work >= 0
    return bool(by_read) or _works_more(signatures.host_work, first & known, rest & known)


def may_hold_several(signatures: Signatures, phases: Ints, period: int) -> bool:
    """Tell whether graphs of one kind come after a read at several places of the cycle: each may begin a step."""
    read = (signatures.seams & TO_HOST) > 0
    of_place = [phases == place for place in range(period)]
    begun = [
        np.bincount(signatures.kinds[mine]).argmax()
        for mine in of_place
        if mine.any() and np.mean(read[mine]) > _MOSTLY
    ]
    return len(set(begun)) < len(begun)


def _works_more(host_work: Ints, first: Bools, rest: Bools) -> bool:
    if not first.any() or not rest.any():
        return False
    return bool(np.median(host_work[first]) > _APART * np.quantile(host_work[rest], 0.9))


def begun_by_reads(signatures: Signatures) -> Ints:
    """Return the positions of replays before which results were read and the host worked far longer than otherwise.

    These begin the steps of loops too irregular for a cadence; empty where reads and work don't go together.
    """
    read = (signatures.seams & TO_HOST) > 0
    known = signatures.host_work >= 0
    first, rest = read & known, ~read & known
    if not first.any() or not rest.any():
        return np.empty(0, np.int64)
    apart = np.quantile(signatures.host_work[first], 0.1) > _FAR_APART * np.quantile(signatures.host_work[rest], 0.9)
    return np.flatnonzero(read) if apart else np.empty(0, np.int64)
