"""Accounts from a few numbers, for tests of what is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bubblefinder.report.account import Account, CallAccount, EagerAccount, IdleAccount, RoleAccount, Shapes

if TYPE_CHECKING:
    from collections.abc import Sequence

STEPS = 10
US = 1_000


def a_role(
    names: Sequence[int], *, role: str = "verify", us: float = 8, early_us: float = 0, **more: Any
) -> RoleAccount:
    """Nodes of one length, once a step."""
    own = [round((us - early_us) * US) * STEPS] * len(names)
    fields: dict[str, Any] = {
        "role": role,
        "replays": STEPS,
        "names": list(names),
        "counts": [STEPS] * len(names),
        "own_ns": own,
        "gap_ns": [0] * len(names),
        "ran_ns": [round(us * US) * STEPS] * len(names),
        "early_ns": [round(early_us * US) * STEPS] * len(names),
    }
    return RoleAccount(**(fields | more))


def shapes(grid: str, count: int, *, registers: int | None = 32) -> Shapes:
    """One shape for all nodes."""
    return Shapes(
        grid=[grid] * count,
        block=["128"] * count,
        registers=[registers] * count,
        shared_bytes=[0] * count,
        local_bytes=[0] * count,
    )


def an_idle(us: float, *, during: str | None = "host work", place: str | None = "prepare", **more: Any) -> IdleAccount:
    """Idle time in every step."""
    fields: dict[str, Any] = {
        "gap_class": "host_late",
        "wait": None,
        "during": during,
        "place": place,
        "before": "draft",
        "ns": round(us * US) * STEPS,
        "steps": STEPS,
        "p50_ns": us * US,
        "half_steps": STEPS // 2,
    }
    return IdleAccount(**(fields | more))


def a_call(api: str, us: float, *, on: str | None = None, waits: bool = False, count: float = 1) -> CallAccount:
    """So many calls a step."""
    return CallAccount(
        api=api, on=on, waits=waits, count=round(count * STEPS), ns=round(us * US * count * STEPS), p50_ns=us * US
    )


def an_account(
    roles: Sequence[RoleAccount] = (),
    *,
    names: Sequence[str] = ("norm", "qkv", "gate", "up"),
    idle: Sequence[IdleAccount] = (),
    eager: Sequence[EagerAccount] = (),
    calls: Sequence[CallAccount] = (),
) -> Account:
    """An account whose parts sum."""
    total = sum(sum(role.own_ns) + sum(role.gap_ns) for role in roles)
    total += sum(one.ns for one in idle) + sum(one.own_ns + one.gap_ns for one in eager)
    return Account(
        gpu=0, pid=100, steps=STEPS, duration_ns=total, names=list(names), roles=list(roles), idle=list(idle),
        eager=list(eager), calls=list(calls),
    )  # fmt: skip


def an_eager(name: int, us: float, *, count: int = 1, shape: str | None = None) -> EagerAccount:
    """Work outside replays in every step."""
    ns = round(us * US) * STEPS
    return EagerAccount(name=name, count=count * STEPS, own_ns=ns, gap_ns=0, ran_ns=ns, shape=shape)
