from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.judged import judge
from tests.simulate import Graph, Machine, nodes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulate import Host

GRAPH = Graph(3, nodes("attn", "mlp") * 20)
US = 1_000


def pauses(prepare: Callable[[Host, int], None]) -> list[tuple[str | None, str | None, int]]:
    """The pauses of a loop that reads back after each step: reason, detail, length in us."""
    machine = Machine(jitter=0)
    host = machine.host()
    for number in range(16):
        prepare(host, number)
        host.upload()
        host.replay(GRAPH)
        host.read()
    found = judge(machine.trace()).causes.pauses
    length = (found["end_ns"] - found["start_ns"]) // US
    return list(zip(found["reason"], found["detail"], length, strict=True))


def test_a_regular_call_of_the_operating_system_is_a_pause() -> None:
    found = pauses(lambda host, _: host.os_call("poll", 300))
    assert set(found) == {("os call", "poll", 300)}
    assert len(found) == 15


@pytest.mark.parametrize("us", [2, 15])
def test_a_short_one_is_not(us: float) -> None:
    assert pauses(lambda host, _: host.os_call("read", us)) == []


def test_a_collection_is_named_by_its_range_before_the_call_inside_it() -> None:
    def prepare(host: Host, number: int) -> None:
        host.work(40)
        if number in {5, 9}:
            with host.range("gc.collect"):
                host.os_call("madvise", 2_000)
                host.work(500)

    assert pauses(prepare) == [("gc", "gc.collect", 2_540)] * 2


def test_regular_work_is_no_pause_and_silence_is_one() -> None:
    def prepare(host: Host, number: int) -> None:
        host.work(400 if number != 7 else 4_000)

    assert pauses(prepare) == [(None, None, 4_000)]
