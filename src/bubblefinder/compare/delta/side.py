"""One side of a comparison as the account of one rank: the mean over its captures of what a step goes to."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

import numpy as np

from bubblefinder.compare.metrics import ranks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from bubblefinder.report.account import Account, IdleAccount, RoleAccount, Shapes
    from bubblefinder.report.model import Report


@dataclass(frozen=True, slots=True)
class Nodes:
    """The nodes of one role in the order of the graph; arrays are counts or times a step, `gap_ns` within `cost_ns`."""

    names: tuple[str, ...]
    replays: float
    count: NDArray[np.float64]
    cost_ns: NDArray[np.float64]
    gap_ns: NDArray[np.float64]
    early_ns: NDArray[np.float64]
    ran_ns: NDArray[np.float64]
    shapes: Shapes | None = None

    @property
    def total_ns(self) -> float:
        """What the role adds to a step, busy and idle inside."""
        return float(self.cost_ns.sum())


COLUMNS: Final = ("count", "cost_ns", "gap_ns", "early_ns", "ran_ns")
"""Those of `Nodes`, in its order."""


@dataclass(frozen=True, slots=True)
class Work:
    """Operations outside replays that share a name, a step."""

    count: float = 0.0
    cost_ns: float = 0.0
    ran_ns: float = 0.0
    shape: str | None = None


@dataclass(frozen=True, slots=True)
class Idle:
    """Idle time outside replays of one cause, a step; `half` is the share of the steps that hold half of it."""

    ns: float = 0.0
    p50_ns: float = 0.0
    half: float = 0.0


IdleKey = tuple[str, str | None, str | None, str | None, str | None]
CallKey = tuple[str, str | None, bool]


@dataclass(frozen=True, slots=True)
class Call:
    """Calls of one kind, or host work in one place: how many a step, what they take, and the median of one."""

    count: float
    ns: float
    p50_ns: float


@dataclass(frozen=True, slots=True)
class Side:
    """What a step of one rank goes to on one side.

    Attributes:
        mean_ns: the mean step over all its captures.
        roles: nodes by role.
        eager: work outside replays by name.
        idle: idle time outside replays.
        calls: the calls of the launching threads.
    """

    mean_ns: float
    roles: dict[str | None, Nodes]
    eager: dict[str, Work]
    idle: dict[IdleKey, Idle]
    calls: dict[CallKey, Call]


def account_of(report: Report, rank: int) -> Account | None:
    """Return the account of a rank's decode steps; null where the report has none."""
    mine = ranks(report)[rank]
    found = (a for a in report.detail.accounts if (a.gpu, a.pid) == (mine.gpu, mine.pid) and a.steps == mine.count)
    return next(found, None)


def shared_accounts(reports: Sequence[Report]) -> Iterator[list[Account]]:
    """Yield the accounts of every rank that all reports have one of, in the order of the reports."""
    for rank in range(min((len(ranks(report)) for report in reports), default=0)):
        known = [account for report in reports if (account := account_of(report, rank))]
        if len(known) == len(reports):
            yield known


def side_of(accounts: Sequence[Account]) -> Side:
    """Return the mean of some captures' accounts of one rank.

    Captures that replay other graphs than most are left out of everything but the mean step: the residual has them.
    """
    graphs = [
        tuple((one.role, tuple(account.names[n] for n in one.names)) for one in account.roles) for account in accounts
    ]
    usual, _ = Counter(graphs).most_common(1)[0]
    alike = [account for account, mine in zip(accounts, graphs, strict=True) if mine == usual]
    return Side(
        mean_ns=fmean(account.duration_ns / account.steps for account in accounts),
        roles={role.role: _nodes(alike, number) for number, role in enumerate(alike[0].roles)},
        eager=_eager(alike),
        idle=_idle(alike),
        calls=_calls(alike),
    )


def _nodes(accounts: Sequence[Account], number: int) -> Nodes:
    roles = [(account.roles[number], account.steps) for account in accounts]
    first = accounts[0].roles[number]
    return Nodes(
        names=tuple(accounts[0].names[n] for n in first.names),
        replays=fmean(role.replays / steps for role, steps in roles),
        count=_mean(roles, "counts"),
        cost_ns=_mean(roles, "own_ns") + _mean(roles, "gap_ns"),
        gap_ns=_mean(roles, "gap_ns"),
        early_ns=_mean(roles, "early_ns"),
        ran_ns=_mean(roles, "ran_ns"),
        shapes=first.shapes,
    )


def _mean(roles: Sequence[tuple[RoleAccount, int]], column: str) -> NDArray[np.float64]:
    values: NDArray[np.float64] = np.mean([np.array(getattr(role, column)) / steps for role, steps in roles], axis=0)
    return values


def _eager(accounts: Sequence[Account]) -> dict[str, Work]:
    sums: dict[str, list[float]] = {}
    shapes: dict[str, str | None] = {}
    for account in accounts:
        for row in account.eager:
            total = sums.setdefault(account.names[row.name], [0.0, 0.0, 0.0])
            total[0] += row.count / account.steps / len(accounts)
            total[1] += (row.own_ns + row.gap_ns) / account.steps / len(accounts)
            total[2] += row.ran_ns / account.steps / len(accounts)
            shapes.setdefault(account.names[row.name], row.shape)
    return {name: Work(count, cost, ran, shapes[name]) for name, (count, cost, ran) in sums.items()}


def _idle(accounts: Sequence[Account]) -> dict[IdleKey, Idle]:
    found: dict[IdleKey, list[tuple[IdleAccount, int]]] = {}
    for account in accounts:
        for row in account.idle:
            key = (row.gap_class, row.wait, row.during, row.place, row.before)
            found.setdefault(key, []).append((row, account.steps))
    return {
        key: Idle(
            ns=sum(row.ns / steps for row, steps in rows) / len(accounts),
            p50_ns=sum(row.p50_ns for row, _ in rows) / len(accounts),
            half=fmean(row.half_steps / steps for row, steps in rows),
        )
        for key, rows in found.items()
    }


def _calls(accounts: Sequence[Account]) -> dict[CallKey, Call]:
    found: dict[CallKey, list[tuple[float, float, float]]] = {}
    for account in accounts:
        for row in account.calls:
            told = (row.count / account.steps, row.ns / account.steps, row.p50_ns)
            found.setdefault((row.api, row.on, row.waits), []).append(told)
    return {
        key: Call(
            count=sum(count for count, _, _ in rows) / len(accounts),
            ns=sum(ns for _, ns, _ in rows) / len(accounts),
            p50_ns=median(length for _, _, length in rows),
        )
        for key, rows in found.items()
    }
