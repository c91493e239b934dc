"""Idle time by what the host did meanwhile, and the calls it made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.report.detail import host_account
from bubblefinder.report.detail.account import accounts
from tests.simulate import Graph, Machine, nodes
from tests.unit.report.detail.analysed import Analysed

if TYPE_CHECKING:
    from bubblefinder.report.account import Account, IdleAccount

GRAPH = Graph(3, nodes("attn", "mlp") * 12)
US = 1_000


def loop(*, pause_every: int = 0, sleep_us: float = 0, read: bool = True, steps: int = 20) -> Account:
    machine = Machine(jitter=0)
    host = machine.host()
    for number in range(steps):
        with host.range(f"prepare {number}"):
            host.work(250 if read else 20)
            if sleep_us:
                host.os_call("poll", sleep_us)
            if pause_every and number % pause_every == 3:
                host.work(5_000)
        host.upload()
        host.replay(GRAPH)
        if read:
            with host.range("result"):
                host.read()
        else:
            host.wait_for(host.record())
    one = Analysed(machine.trace())
    (account,) = accounts(one.timeline, one.steps, one.causes)
    return account


def row(account: Account, **told: str | None) -> IdleAccount:
    return next(i for i in account.idle if all(getattr(i, name) == value for name, value in told.items()))


def test_idle_time_behind_a_read_says_what_the_host_did_meanwhile() -> None:
    account = loop()
    prepare = row(account, during="host work", place="prepare #")
    assert prepare.gap_class == "host_late"
    assert prepare.wait == "cudaMemcpyAsync DtoH in result"
    assert prepare.before == "HtoD copy"
    assert prepare.p50_ns == 250 * US
    assert (prepare.steps, prepare.half_steps) == (account.steps, 0)
    assert row(account, during="cudaMemcpyAsync", place="result").ns > 0


def test_the_operating_system_is_named_where_it_was_recorded() -> None:
    poll = row(loop(sleep_us=300), during="poll")
    assert poll.p50_ns == 300 * US
    assert poll.place == "prepare #"


def test_pauses_lie_in_few_steps() -> None:
    account = loop(pause_every=7, steps=40)
    pause = row(account, during="host work", place="prepare #", wait=None)
    assert pause.half_steps <= 4
    assert (pause.p50_ns, pause.ns) == (0, 6 * 5_250 * US)
    assert row(account, during="host work", place="prepare #", wait="cudaMemcpyAsync DtoH in result").p50_ns == 250 * US


def test_rows_beyond_the_longest_are_one_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = loop()
    monkeypatch.setattr(host_account, "MOST_IDLE", 1)
    cut = loop()
    assert sum(i.ns for i in cut.idle) == sum(i.ns for i in whole.idle)
    assert len({i.gap_class for i in cut.idle[1:]}) == len(cut.idle) - 1


def test_calls_are_told_by_what_they_do() -> None:
    account = loop()
    calls = {(c.api, c.on): c for c in account.calls}
    assert calls["cudaGraphLaunch", "decode"].count == pytest.approx(account.steps, abs=1)
    assert calls["cudaGraphLaunch", "decode"].p50_ns == 40 * US
    assert calls["cudaMemcpyAsync", "DtoH"].waits
    assert not calls["cudaMemcpyAsync", "HtoD"].waits
