from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.judged import judge
from tests.simulate import Graph, Machine, nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from bubblefinder.causes.step_parts import QueueFacts
    from tests.simulate import Host

GRAPH = Graph(3, nodes("attn", "mlp") * 20)
US = 1_000


def queues(between: Callable[[Host], object]) -> tuple[QueueFacts, ...]:
    machine = Machine(jitter=0)
    host = machine.host()
    events = []
    for number in range(12):
        host.work(20)
        host.replay(GRAPH)
        between(host)
        host.kernel("sample", 12)
        events.append(host.record(number))
        if number > 1:
            host.wait_for(events[number - 2])
    return judge(machine.trace()).facts.steps[0].queues


def held(host: Host, api: str) -> None:
    host.call(api, 3, stream=7)
    host.occupy(host.queued_until() + 150 * US)


@pytest.mark.parametrize(
    ("api", "reason"),
    [
        ("cudaLaunchHostFunc_v10000", "host function"),
        ("cudaStreamAddCallback_v5000", "host function"),
        ("cudaStreamWaitEvent_v3020", "event wait"),
        ("cudaEventQuery_v3020", None),
    ],
)
def test_what_lies_between_two_launches_holds_the_second_back(api: str, reason: str | None) -> None:
    (queue,) = queues(lambda host: held(host, api))
    assert (queue.reason, queue.api) == (reason, api.split("_v", maxsplit=1)[0] if reason else None)
    assert queue.idle_p50_ns == pytest.approx(150 * US, rel=0.03)
    assert queue.per_step_count == 1


def test_work_that_starts_at_once_is_held_back_by_nothing() -> None:
    assert queues(lambda host: host.call("cudaLaunchHostFunc_v10000", 3)) == ()
