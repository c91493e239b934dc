"""What became of the idle time outside replays."""

from __future__ import annotations

from math import fsum
from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.delta.outside import changed_idle
from bubblefinder.compare.delta.side import Side, side_of
from tests.unit.compare.delta.accounts import US, a_call, an_account, an_idle

if TYPE_CHECKING:
    from bubblefinder.report.account import CallAccount, IdleAccount

READ = "cudaMemcpyAsync DtoH in resolve"


def side(*idle: IdleAccount, calls: tuple[CallAccount, ...] = ()) -> Side:
    return side_of([an_account(idle=idle, calls=calls)])


def kinds(base: Side, head: Side) -> dict[str, str | None]:
    leaves = [leaf for leaf in changed_idle(base, head) if (leaf.head_ns - leaf.base_ns)]
    assert fsum((leaf.head_ns - leaf.base_ns) for leaf in leaves) == pytest.approx(head.mean_ns - base.mean_ns)
    return {leaf.kind: leaf.name for leaf in leaves}


def work(us: float) -> CallAccount:
    return a_call("host work", us, on="prepare")


def test_host_work_that_takes_longer() -> None:
    base, head = side(an_idle(100), calls=(work(100),)), side(an_idle(400), calls=(work(400),))
    assert kinds(base, head) == {"host work": "prepare"}
    assert kinds(head, base) == {"host work": "prepare"}


def test_host_work_that_only_shows_is_not_longer() -> None:
    base, head = side(calls=(work(400),)), side(an_idle(300), calls=(work(400),))
    assert kinds(base, head) == {"exposed": "prepare"}
    assert kinds(head, base) == {"exposed": "prepare"}


def test_a_wait_that_only_one_side_makes() -> None:
    reads = a_call("cudaMemcpyAsync", 50, waits=True)
    base, head = side(calls=(work(100),)), side(an_idle(80, wait=READ), calls=(work(100), reads))
    assert kinds(base, head) == {"new wait": READ}
    assert kinds(head, base) == {"gone wait": READ}


def test_a_wait_that_both_make_and_one_is_charged_for_is_not_new() -> None:
    reads = a_call("cudaMemcpyAsync", 50, waits=True)
    base, head = side(calls=(work(100), reads)), side(an_idle(80, wait=READ), calls=(work(200), reads))
    assert kinds(base, head) == {"host work": "prepare"}


def test_longer_work_behind_a_wait_of_both() -> None:
    reads = a_call("cudaMemcpyAsync", 50, waits=True)
    base = side(an_idle(80, wait=READ), calls=(work(80), reads))
    head = side(an_idle(200, wait=READ), calls=(work(200), reads))
    assert kinds(base, head) == {"behind a wait": "prepare"}


def test_a_call_that_only_one_side_makes_however_seldom() -> None:
    alloc = a_call("cudaHostAlloc", 9_000, count=0.1)
    base, head = side(), side(an_idle(900, during="cudaHostAlloc", half_steps=1, p50_ns=0.0), calls=(alloc,))
    assert kinds(base, head) == {"new call": "cudaHostAlloc"}
    assert kinds(head, base) == {"gone call": "cudaHostAlloc"}


def test_a_call_that_takes_longer() -> None:
    base = side(an_idle(40, during="cudaGraphLaunch"), calls=(a_call("cudaGraphLaunch", 40),))
    head = side(an_idle(90, during="cudaGraphLaunch"), calls=(a_call("cudaGraphLaunch", 90),))
    assert kinds(base, head) == {"call": "cudaGraphLaunch"}


def test_pauses_in_few_steps() -> None:
    pause = an_idle(1_000, p50_ns=10.0 * US, half_steps=1)
    base, head = side(an_idle(10), calls=(work(10),)), side(pause, calls=(work(1_000),))
    assert kinds(base, head) == {"pause": "prepare"}


def test_what_no_call_explains() -> None:
    queued = an_idle(5, gap_class="queued", during=None, place=None)
    unknown = an_idle(7, gap_class="unattributed", during=None, place=None, before=None)
    assert kinds(side(), side(queued, unknown)) == {"queued": None, "not told": None}
    assert [leaf.what for leaf in changed_idle(side(), side(unknown))] == ["unattributed"]


def test_idle_time_under_another_cause_changed_only_by_the_difference() -> None:
    reads = a_call("cudaStreamSynchronize", 50, waits=True)
    charged = an_idle(300, wait="cudaStreamSynchronize in resolve")
    base, head = side(charged, calls=(work(400), reads)), side(an_idle(290), calls=(work(400),))
    (leaf,) = changed_idle(base, head)
    assert (leaf.kind, leaf.name, round(leaf.head_ns - leaf.base_ns)) == (
        "gone wait",
        "cudaStreamSynchronize in resolve",
        -10 * US,
    )
    (back,) = changed_idle(head, base)
    assert (back.kind, round(back.head_ns - back.base_ns)) == ("new wait", 10 * US)


def test_longer_work_of_the_host_is_its_own_though_a_wait_came_too() -> None:
    reads = a_call("cudaMemcpyAsync", 50, waits=True)
    base, head = side(an_idle(10), calls=(work(100),)), side(an_idle(310, wait=READ), calls=(work(400), reads))
    assert kinds(base, head) == {"host work": "prepare"}


def test_longer_work_accounts_for_idle_time_once() -> None:
    """Of 190 us behind the reads the host took 90 longer for its work: that is in one of them, not in each."""
    reads = a_call("cudaMemcpyAsync", 50, waits=True)
    idle = [an_idle(100, wait=READ, before="HtoD copy"), an_idle(90, wait=READ, before="DtoH copy")]
    base, head = side(calls=(work(400),)), side(*idle, calls=(work(490), reads))
    assert kinds(base, head) == {"new wait": READ}
    assert kinds(head, base) == {"gone wait": READ}
    assert kinds(base, side(idle[0], calls=(work(490), reads))) == {"host work": "prepare"}


def test_a_host_that_is_slower_at_everything_does_no_more() -> None:
    apis = ("cudaGraphLaunch", "cudaEventRecord", "cudaMemsetAsync")
    reads = a_call("cudaMemcpyAsync", 50, waits=True)
    base = side(calls=(work(1_000), *(a_call(api, 5) for api in apis)))
    slower = (work(1_300), *(a_call(api, 6.5) for api in apis))
    head = side(an_idle(300, wait=READ), calls=(*slower, reads))
    assert kinds(base, head) == {"new wait": READ}
    assert kinds(base, side(an_idle(300), calls=slower)) == {"exposed": "prepare"}
