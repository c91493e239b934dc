"""Where the step of the launching thread goes: an addition to report/1 that readers may ignore."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from bubblefinder.causes.host_record import HostTime

if TYPE_CHECKING:
    from bubblefinder.causes.facts import Facts
    from bubblefinder.replay.doubt import Doubt
    from bubblefinder.replay.host_parts import Shortening
    from bubblefinder.replay.recoverable import Recoverable
    from bubblefinder.timeline.rank import Rank


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPart:
    """A part of the host's own work, and the median step that less of it would give, by the what-if replay.

    Attributes:
        kind: `phase` (from the launch of one role to that of the next), `range` (an NVTX range's own time) or `call`
            (all calls of one API).
        name: the two roles, the range, or the API.
        taken: the share of the work that is taken away.
        work_ns: what the host spends on it in a step, without waiting: the medians of `phases`, `ranges` and `calls`;
            the mean of a part that they don't list.
        recoverable_ns: what the median step loses; null where the profiler's part of that can't be told.
        step_after_ns: the step then; null there too.
        bound_after: what bounds it then: `gpu`, `host` or `wait`; null there too.
        recoverable_range_ns: the least and the most that the median step loses.
    """

    kind: str
    name: str
    taken: float
    work_ns: float
    recoverable_ns: int | None
    step_after_ns: int | None
    bound_after: str | None
    recoverable_range_ns: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport(HostTime):
    """The step of the thread that launches most of a rank's work, from its first launch to that of the next step.

    `waiting_p50_ns` is time inside calls that wait for the GPU, `calls_p50_ns` inside other CUDA calls and
    `between_p50_ns` between them. `phases`, `calls` and `ranges` each take the same step apart; `shorten` is empty
    unless the GPU idles for a host that is late.
    """

    gpu: int
    pid: int
    shorten: list[HostPart] = field(default_factory=list)


def host_report(facts: Facts, cured: Recoverable, rank: Rank | None) -> HostReport | None:
    """Return the host's step of a rank; None where no thread's step can be told."""
    mine = next((step for step in facts.steps if step.rank == rank), None)
    if rank is None or mine is None or mine.host is None:
        return None
    shorten = [_part(part, cured.doubt(rank)) for part in cured.shorter.get(rank, ())]
    known = {one.name: getattr(mine.host, one.name) for one in fields(mine.host)}
    return HostReport(gpu=rank.gpu, pid=rank.pid, shorten=shorten, **known)


def _part(part: Shortening, doubt: Doubt) -> HostPart:
    return HostPart(
        kind=part.kind,
        name=part.name,
        taken=part.taken,
        work_ns=part.work_ns,
        recoverable_ns=part.then.recoverable_ns if doubt.told else None,
        step_after_ns=part.then.step_ns if doubt.told else None,
        bound_after=part.then.bound.value if doubt.told else None,
        recoverable_range_ns=list(doubt.gains(part.then)),
    )
