"""How fast the host and the GPU were."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bubblefinder.compare.delta.side import Side, side_of
from bubblefinder.compare.delta.speed import speed_of
from tests.unit.compare.delta.accounts import a_call, a_role, an_account, an_eager
from tests.unit.compare.delta.parts import NO_DELAY

if TYPE_CHECKING:
    from bubblefinder.compare.delta.model import Speed

NAMES = ("norm", "qkv", "gate", "up", "down", "ncclDevKernel_AllReduce")
APIS = ("cudaGraphLaunch", "cudaMemcpyAsync", "cudaEventRecord", "cudaEventSynchronize")


def speed(base: Side, head: Side) -> Speed:
    return speed_of(base, head, NO_DELAY)


def host(us: float, *, waits_us: float = 100, launch: float = 1.0) -> Side:
    calls = [a_call(api, us * (launch if api == APIS[0] else 1.0)) for api in APIS[:3]]
    return side_of([an_account(calls=[*calls, a_call(APIS[3], waits_us, waits=True), a_call("host work", 9 * us)])])


def gpu(*us: float) -> Side:
    roles = [a_role([0, 1, 2, 3, 4], own_ns=[round(v * 10_000) for v in us], ran_ns=[round(v * 10_000) for v in us])]
    return side_of([an_account(roles, names=NAMES)])


def test_a_host_whose_calls_all_take_longer_is_slower() -> None:
    assert speed(host(5), host(9.5)).host == pytest.approx(1.9)
    assert speed(host(5), host(5, waits_us=900)).host == pytest.approx(1)


def test_one_call_that_takes_longer_is_no_slower_host() -> None:
    assert speed(host(5), host(5, launch=3)).host == pytest.approx(1)


def test_too_few_calls_tell_nothing() -> None:
    few = side_of([an_account(calls=[a_call(api, 5) for api in APIS[:2]])])
    assert speed(few, few).host is None


def test_what_the_host_takes_of_a_step_is_no_more_than_the_step() -> None:
    step = side_of([an_account([a_role([0], us=20)], calls=[a_call("cudaMemcpyAsync", 5), a_call("host work", 400)])])
    assert speed(step, step).head_host_ns == step.mean_ns


def test_a_gpu_on_which_all_kernels_take_longer_alike_is_slower() -> None:
    assert speed(gpu(4, 8, 2, 9, 6), gpu(4.4, 8.8, 2.2, 9.9, 6.6)).gpu == pytest.approx(1.1)


def test_one_kernel_that_takes_longer_is_no_slower_gpu() -> None:
    assert speed(gpu(4, 8, 2, 90, 6), gpu(4, 8, 2, 120, 6)).gpu is None
    assert speed(gpu(4, 8, 2, 9, 6), gpu(4, 8, 2, 12, 6)).gpu == pytest.approx(1)


def test_one_kernel_alone_tells_nothing() -> None:
    names = ("mega",)
    base, head = (side_of([an_account([a_role([0, 0, 0], us=us)], names=names)]) for us in (8, 9))
    assert speed(base, head).gpu is None


def test_work_outside_replays_tells_the_speed_as_well() -> None:
    base, head = (
        side_of([an_account(eager=[an_eager(n, us * (n + 1)) for n in range(5)], names=NAMES)]) for us in (2, 3)
    )
    assert speed(base, head).gpu == pytest.approx(1.5)
