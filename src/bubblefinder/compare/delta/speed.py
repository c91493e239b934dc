"""How fast the host and the GPU were on what both sides have in common: a slow machine is no slow program."""

from __future__ import annotations

from statistics import fmean
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from bubblefinder.causes.collective_names import is_collective
from bubblefinder.compare.delta.align import NOBODY, aligned, paired
from bubblefinder.compare.delta.front import held_back
from bubblefinder.compare.delta.model import Speed
from bubblefinder.report.account import HOST_WORK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bubblefinder.compare.delta.side import Nodes, Side
    from bubblefinder.compare.delta.tracer import Delay

OFTEN: Final = 0.5
"""Calls made so often a step tell the host's speed; rarer ones may be of another kind each time."""
FEWEST_CALLS: Final = 3
"""Kinds of calls that must be there: one or two may differ by what they do, such as a graph of more nodes."""
FEWEST_NAMES: Final = 4
"""Different kernels that must be there: one that became slower is no slower GPU."""
ONE_SPEED: Final = 0.6
"""The GPU's speed is another if at least this share of the kernels, by time and by name, changed alike."""
ALIKE: Final = 0.02
"""Kernels changed alike if their ratios lie this close to the middle one."""


class _Kernel(NamedTuple):
    """A kernel that both sides have: the ratio of its times, and its time a step on base."""

    name: str
    ratio: float
    weight: float


def speed_of(base: Side, head: Side, delay: Delay) -> Speed:
    """Return the speed of host and GPU on head relative to base: times over times, above 1 where head was slower.

    The host's is the median over kinds of calls that don't wait, each by its median length. The GPU's is the middle
    ratio of the kernels that kept their name and launch shape, weighted by time, where most of them changed alike.
    """
    kernels = list(_kernels(base, head))
    return Speed(
        host=host_pace(base, head),
        calls=len(list(_calls(base, head))),
        gpu=_gpu(kernels) if kernels else None,
        nodes=len(kernels),
        base_host_ns=host_ns(base),
        head_host_ns=host_ns(head),
        later_ns=delay.later_ns,
        held_back_ns=_held_back_ns(head, delay.head_ns) - _held_back_ns(base, delay.base_ns),
        base_held=_held(base),
        head_held=_held(head),
    )


def _held_back_ns(side: Side, times: Sequence[float]) -> float:
    return sum(held_back(side, fmean(times)).values())


def host_pace(base: Side, head: Side) -> float | None:
    """Return how many times as long the host's calls took on head; null where too few kinds are on both sides."""
    calls = list(_calls(base, head))
    return float(np.median(calls)) if len(calls) >= FEWEST_CALLS else None


def _held(side: Side) -> float:
    """Return how long the calls that don't wait take, over their number times their median: a thread held up shows."""
    calls = [call for (api, _, waits), call in side.calls.items() if not waits and api != HOST_WORK]
    usual = sum(call.count * call.p50_ns for call in calls)
    return sum(call.ns for call in calls) / usual if usual else 1.0


def host_ns(side: Side) -> float:
    """Return what the host itself takes of a step: no more than all of it, however many threads work side by side."""
    return min(sum(call.ns for (_, _, waits), call in side.calls.items() if not waits), side.mean_ns)


def _calls(base: Side, head: Side) -> Iterator[float]:
    for key, call in base.calls.items():
        api, _, waits = key
        other = None if waits or api == HOST_WORK else head.calls.get(key)
        if other and min(call.count, other.count) >= OFTEN and min(call.p50_ns, other.p50_ns) > 0:
            yield other.p50_ns / call.p50_ns


def _gpu(kernels: Sequence[_Kernel]) -> float | None:
    """Return the middle ratio if most of the time and most of the names changed alike, else null."""
    values, heavy = np.array([one.ratio for one in kernels]), np.array([one.weight for one in kernels])
    order = np.argsort(values)
    reached = np.cumsum(heavy[order])
    middle = float(values[order][np.searchsorted(reached, reached[-1] / 2)])
    alike = np.abs(values / middle - 1) <= ALIKE
    names = {one.name for one in kernels}
    same = {one.name for one, like in zip(kernels, alike, strict=True) if like}
    enough = len(names) >= FEWEST_NAMES and len(same) >= ONE_SPEED * len(names)
    return middle if enough and heavy[alike].sum() >= ONE_SPEED * heavy.sum() else None


def _kernels(base: Side, head: Side) -> Iterator[_Kernel]:
    for role, other in paired(base.roles, head.roles):
        yield from _nodes(base.roles[role], head.roles[other])
    for name, work in base.eager.items():
        same = head.eager.get(name)
        if same and same.shape == work.shape and min(work.count, same.count, work.ran_ns, same.ran_ns) > 0:
            yield _Kernel(name, same.ran_ns / same.count * work.count / work.ran_ns, work.ran_ns)


def _nodes(base: Nodes, head: Nodes) -> Iterator[_Kernel]:
    """Yield each kernel of a role that is the same on both sides."""
    if len(base.names) == 1:
        return
    for k, j in aligned(base.names, head.names):
        if NOBODY in {k, j} or base.names[k] != head.names[j] or is_collective(base.names[k]):
            continue
        before, after = _work_ns(base, k), _work_ns(head, j)
        if before > 0 and after > 0 and (base.early_ns[k] > 0) == (head.early_ns[j] > 0):
            yield _Kernel(base.names[k], after / before, before * base.count[k])


def _work_ns(nodes: Nodes, k: int) -> float:
    """Return how long a node works each time; one that begins early waits inside, so only what it adds counts."""
    ran = nodes.cost_ns[k] if nodes.early_ns[k] > 0 else nodes.ran_ns[k]
    return float(ran / nodes.count[k]) if nodes.count[k] else 0.0
