"""Kernels inside each role that take another time a step: what explains a change of the busy time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.compare.model import KernelChange, KernelSide

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.compare.model import Status
    from bubblefinder.compare.noise import Setting
    from bubblefinder.report.model import Report

# A kernel counts from this share of the step on; below it, a difference is jitter of a handful of launches.
SMALLEST_SHARE: Final = 0.001

_Key = tuple[str | None, str]


def kernel_changes(base: Sequence[Report], head: Sequence[Report], setting: Setting) -> list[KernelChange]:
    """Return the kernels that changed, largest change of time first.

    New and vanished ones are always listed; others if their time a step moved by more than the GPU's noise, or
    if they run another number of times.
    """
    before, after = _side(base), _side(head)
    changes = [_change(key, before.get(key), after.get(key), setting) for key in before.keys() | after.keys()]
    told = [change for change in changes if change.status != "same"]
    return sorted(told, key=lambda c: (-abs(c.delta_ns), c.role or "", c.name))


def _side(side: Sequence[Report]) -> Mapping[_Key, KernelSide]:
    totals: dict[_Key, list[float]] = {}
    for report in side:
        for row in report.detail.kernels:
            sums = totals.setdefault((row.role, row.name), [0.0, 0.0])
            sums[0] += row.per_step_count
            sums[1] += row.per_step_ns
    return {
        key: KernelSide(per_step_count=count / len(side), per_step_ns=ns / len(side))
        for key, (count, ns) in totals.items()
    }


def _change(key: _Key, base: KernelSide | None, head: KernelSide | None, setting: Setting) -> KernelChange:
    delta = (head.per_step_ns if head else 0.0) - (base.per_step_ns if base else 0.0)
    return KernelChange(
        role=key[0], name=key[1], base=base, head=head, delta_ns=delta, status=_status(base, head, delta, setting)
    )


def _status(base: KernelSide | None, head: KernelSide | None, delta: float, setting: Setting) -> Status:
    from bubblefinder.compare.metrics import NoiseSource

    if base is None:
        return "new"
    if head is None:
        return "gone"
    size = max(base.per_step_ns, head.per_step_ns)
    floor = max(setting.floor(NoiseSource.GPU, size), SMALLEST_SHARE * setting.step_ns)
    if abs(delta) > floor:
        return "worse" if delta > 0 else "better"
    counts = (base.per_step_count, head.per_step_count)
    return "changed" if abs(counts[1] - counts[0]) > setting.floor(NoiseSource.COUNT, max(counts)) else "same"
