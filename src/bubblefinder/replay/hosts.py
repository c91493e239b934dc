"""The hosts on which a change is tried: the one that was recorded, and those that another run of the program may meet.

What a change gives is the same program without it less the same program with it, on one host. How fast the host is and
how long kernels take there is the same with and without the change, so both are replayed on each of these hosts: what
a change gives lies between the least and the most of the differences, and how far hosts differ from each other isn't
part of it. The step after the change lies between the shortest and the longest that any of these hosts takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.replay.changes import EditedGraph, HostSpeed, RemoveTracing
from bubblefinder.replay.model import EdgeKind, Host

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bubblefinder.replay.changes import Change
    from bubblefinder.replay.model import Model

HOST_NOISE: Final = 0.125
"""How far the host work of two captures of one program lies from the middle: five captures spread over a quarter."""
_MOST_NOISE: Final = 0.5
"""No host is taken to be faster or slower by more, however its work varies."""
KERNEL_DRIFT: Final = 0.02
"""How far the GPU's work of another process, or of this one without the profiler, lies from that recorded. On three
machines the processes of one program lay within 0.3 %, on a fourth their replays took 6.68 to 6.88 ms; of fourteen
steps that the GPU bound once a wait was gone, untraced ones were 2.7 % shorter to 2.9 % longer than predicted, eleven
of them within 1.5 %."""


RECORDED: Final = Host()


def _off_by(noise: float) -> tuple[Host, ...]:
    """Return the hosts whose work takes so much less or more, the GPU's drifting either way."""
    drifts = (1 - KERNEL_DRIFT, 1 + KERNEL_DRIFT)
    return tuple(Host(speed, kernels) for speed in (1 - noise, 1 + noise) for kernels in drifts)


_OTHERS: Final = _off_by(HOST_NOISE)


def hosts_of(model: Model, changes: Sequence[Change]) -> tuple[Host, ...]:
    """Return the hosts on which changes are tried, the recorded one first.

    Where what tracing cost can't be told, the others are those without the profiler, unless the changes take it away.
    """
    traced = not any(isinstance(change, RemoveTracing) for change in changes)
    return (RECORDED, *((model.untraced if traced else ()) or _others(model)))


def _others(model: Model) -> tuple[Host, ...]:
    """Return the hosts of other runs: what a change gives is most where a host just keeps up, so not the ends alone."""
    noise = host_noise(model)
    return _OTHERS if noise == HOST_NOISE else (*_OTHERS, *model.once(_others, lambda: _off_by(noise)))


def edited_on(host: Host, model: Model, changes: Sequence[Change]) -> EditedGraph:
    """Return a run with changes, on a host.

    A faster one is also one of which tracing took the most, where the changes take that away, and on it what only the
    order seen tells is dropped.
    """
    edited = EditedGraph.of(model)
    if host.lag is not None:
        edited.lag = host.lag.copy()
    for change in (_at_its_end(change, host) for change in changes):
        change.apply(edited)
    if host.speed != 1:
        HostSpeed(host.speed).apply(edited)
    if host.kernels != 1:
        work = model.of_kind[EdgeKind.WORK]
        edited.lag[work] = np.rint(edited.lag[work] * host.kernels).astype(np.int64)
    if host.speed > 1 and changes:
        edited.keep[model.of_kind[EdgeKind.SEEN]] = False
    return edited


def _at_its_end(change: Change, host: Host) -> Change:
    """Return a change with the profiler's costs at that end of their range which goes with a host's speed."""
    if isinstance(change, RemoveTracing) and change.ends and host.speed != 1:
        return change.ends[host.speed < 1]
    return change


def host_noise(model: Model) -> float:
    """Return how far the host's work may lie from the recorded one without the profiler.

    A host whose work varies from step to step shares its cores, with the profiler's own threads as well: beside 24 busy
    processes SGLang's step took 14.6 ms traced and 9.1 untraced, with a deviation of 21 %; alone it is 3 to 7 %.
    """
    return min(max(HOST_NOISE, 2 * model.host_spread), _MOST_NOISE)
