"""Kernels inside each role that take another time a step: what explains a change of the busy time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bubblefinder.compare.delta.side import account_of
from bubblefinder.compare.metrics import NoiseSource, ranks
from bubblefinder.compare.model import KernelChange, KernelSide, Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bubblefinder.compare.noise import Setting
    from bubblefinder.report.account import Account
    from bubblefinder.report.model import Report

# A kernel counts from this share of the step on; below it, a difference is jitter of a handful of launches.
SMALLEST_SHARE: Final = 0.001

_Key = tuple[str | None, str]


def kernel_changes(base: Sequence[Report], head: Sequence[Report], setting: Setting) -> list[KernelChange]:
    """Return the kernels that changed, largest change of time first.

    A kernel launched early waits inside for the one before it, so its own time says nothing: what it adds to the busy
    time is held against what it added. New and vanished ones are always listed; others if that moved by more than the
    GPU's noise, or if they run another number of times.
    """
    before, after = _side(base), _side(head)
    changes = [_change(key, before.get(key), after.get(key), setting) for key in before.keys() | after.keys()]
    told = [change for change in changes if change.status != "same"]
    return sorted(told, key=lambda c: (-abs(c.delta_ns), c.role or "", c.name))


def _side(side: Sequence[Report]) -> Mapping[_Key, KernelSide]:
    totals: dict[_Key, list[float]] = {}
    adds: dict[_Key, float | None] = {}
    for report in side:
        added = _added(account_of(report, 0)) if ranks(report) else {}
        for row in report.detail.kernels:
            key = row.role, row.name
            sums = totals.setdefault(key, [0.0, 0.0])
            sums[0] += row.per_step_count / len(side)
            sums[1] += row.per_step_ns / len(side)
            so_far, more = adds.setdefault(key, 0.0), added.get(key)
            adds[key] = None if so_far is None or more is None else so_far + more / len(side)
    return {
        key: KernelSide(per_step_count=count, per_step_ns=ns, adds_ns=adds[key]) for key, (count, ns) in totals.items()
    }


def _added(account: Account | None) -> dict[_Key, float]:
    """Return the busy time that each kernel adds to a step, by role and name; nothing without an account."""
    added: dict[_Key, float] = {}
    if account is None:
        return added
    for role in account.roles:
        for name, own in zip(role.names, role.own_ns, strict=True):
            key = (role.role, account.names[name])
            added[key] = added.get(key, 0.0) + own / account.steps
    for row in account.eager:
        key = (None, account.names[row.name])
        added[key] = added.get(key, 0.0) + row.own_ns / account.steps
    return added


def _change(key: _Key, base: KernelSide | None, head: KernelSide | None, setting: Setting) -> KernelChange:
    sides = [side for side in (base, head) if side]
    known = all(side.adds_ns is not None for side in sides)
    before, after = ((side.adds_ns if known else side.per_step_ns) if side else 0.0 for side in (base, head))
    delta = (after or 0.0) - (before or 0.0)
    status = _status(base, head, delta, setting)
    return KernelChange(role=key[0], name=key[1], base=base, head=head, delta_ns=delta, status=status)


def _status(base: KernelSide | None, head: KernelSide | None, delta: float, setting: Setting) -> Status:
    if base is None:
        return "new"
    if head is None:
        return "gone"
    size = max(base.adds_ns or base.per_step_ns, head.adds_ns or head.per_step_ns)
    floor = max(setting.floor(NoiseSource.GPU, size), SMALLEST_SHARE * setting.step_ns)
    if abs(delta) > floor:
        return "worse" if delta > 0 else "better"
    counts = (base.per_step_count, head.per_step_count)
    return "changed" if abs(counts[1] - counts[0]) > setting.floor(NoiseSource.COUNT, max(counts)) else "same"
