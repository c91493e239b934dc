from __future__ import annotations

import pytest

from tests.judged import Judged, judge
from tests.simulate import Graph, Machine, nodes

GRAPH = Graph(3, nodes("attn", "mlp") * 20)
US = 1_000


def handed_over(lags_us: list[float], *, launches_too: bool = False) -> Judged:
    """A thread that goes on some time after the wait of another one has ended; the lags take turns."""
    machine = Machine(jitter=0)
    host, other = machine.host(), machine.host(thread=2)
    for number in range(24):
        host.work(20)
        host.replay(GRAPH)
        event = host.record()
        other.not_before(host.now + 5 * US)
        if launches_too:
            other.kernel("tail", 3)
            event = other.record()
        other.wait_for(event)
        host.not_before(other.now + round(lags_us[number % len(lags_us)] * US))
    return judge(machine.trace())


def held_up(judged: Judged) -> int:
    return sum(
        thread != launcher and drained for thread, launcher, drained in judged.waits("thread", "launcher", "drained")
    )


@pytest.mark.parametrize("launches_too", [False, True])
@pytest.mark.parametrize("lag_us", [30, 250, 900])
def test_a_steady_order_tells_who_waits_for_whom(lag_us: float, *, launches_too: bool) -> None:
    assert held_up(handed_over([lag_us], launches_too=launches_too)) >= 22


def test_a_thread_that_goes_on_at_any_time_waits_for_nobody() -> None:
    assert held_up(handed_over([150, 900, 2_400, 400, 5_000, 1_300])) == 0
