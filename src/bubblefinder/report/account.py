"""The account of the decode steps: what every nanosecond of them went to, which is what a comparison takes apart.

Additions to report/1 that readers may ignore. All times are sums over the decode steps of one rank, in integers. The
sum of all `own_ns`, `gap_ns` and idle `ns` is that of the steps' durations: nothing is counted twice or left out.
Beyond 128 steps nodes and other work are looked at in so many, evenly spread, and scaled up; one row has what differs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

REPLAY: Final = "replay"
OTHERS: Final = "other work"
UNSEEN: Final = "steps that were not looked into"
FOREIGN: Final = "work of another process"
HOST_WORK: Final = "host work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """How the kernels of some nodes are launched, a column each; read only where it is asked for."""

    grid: list[str]
    block: list[str]
    registers: list[int | None]
    shared_bytes: list[int | None]
    local_bytes: list[int | None]
    """Local memory a thread: what the compiler spilled, and arrays it couldn't keep in registers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleAccount:
    """The nodes of the replays of one role, in the order in which they run; the columns are as long as `names`.

    A replay recorded as one row has a single node. `names` are positions in `Account.names`, `counts` how often the
    node ran, `own_ns` the busy time that it added to what had run before, `gap_ns` the idle time inside the replay
    that it ended, `ran_ns` how long it ran itself, `early_ns` how long it ran beside the node before it in its stream,
    which only programmatic dependent launch allows.
    """

    role: str | None
    replays: int
    names: list[int]
    counts: list[int]
    own_ns: list[int]
    gap_ns: list[int]
    ran_ns: list[int]
    early_ns: list[int]
    shapes: Shapes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EagerAccount:
    """Operations outside replays that share a name; columns as in `RoleAccount`."""

    name: int
    count: int
    own_ns: int
    gap_ns: int
    ran_ns: int
    shape: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleAccount:
    """Idle time outside replays that shares its class, its cause and what the host did meanwhile.

    Attributes:
        gap_class: the ledger's class.
        wait: the wait that is charged with it, in words; null where none is.
        during: the call that the launching thread sat in, `host work` between calls, or null where that says nothing.
        place: the innermost NVTX range on that thread, without the numbers in its name.
        before: the role, or the kind of operation, whose launch ended the gap.
        ns: the sum over the steps.
        steps: in how many steps it occurs.
        p50_ns: the median over all steps of its time in a step.
        half_steps: the fewest steps that hold half of what exceeds the median; 0 where nothing does.
    """

    gap_class: str
    wait: str | None
    during: str | None
    place: str | None
    before: str | None
    ns: int
    steps: int
    p50_ns: float
    half_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAccount:
    """Calls of the threads that launch, by what they do: `on` is the role launched, the direction copied, or null.

    Their work between calls is told alike: `api` is then `host work`, `on` the innermost NVTX range, and `count` the
    number of its pieces.
    """

    api: str
    on: str | None
    waits: bool
    count: int
    ns: int
    p50_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The account of one rank: its parts sum to `duration_ns`, the sum of `steps` decode steps, exactly."""

    gpu: int
    pid: int
    steps: int
    duration_ns: int
    names: list[str]
    roles: list[RoleAccount] = field(default_factory=list)
    eager: list[EagerAccount] = field(default_factory=list)
    idle: list[IdleAccount] = field(default_factory=list)
    calls: list[CallAccount] = field(default_factory=list)
