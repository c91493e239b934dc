"""In which ranges of the program the idle lies."""

from __future__ import annotations

import pytest

from tests.judged import judge
from tests.simulate import Graph, Host, Machine, nodes

GRAPH = Graph(3, nodes("flux", "jacobi", us=10) * 40)


def loop(*parts: tuple[str | None, float], read: str | None = None) -> Machine:
    """Steps whose read is followed by host work in these ranges, each `(name, us)`."""
    machine = Machine(jitter=0)
    host: Host = machine.host()
    for number in range(12):
        host.work(20)
        host.replay(GRAPH)
        with host.range(read):
            host.read()
            for name, us in parts:
                with host.range(name and f"{name} {number}"):
                    host.work(us)
    return machine


@pytest.mark.parametrize(
    ("parts", "told"),
    [
        ([("update halo", 500)], ("update halo 0 (95 %)",)),
        ([("pack", 300), ("norms", 200), (None, 100)], ("pack 0 (47 %)", "norms 0 (32 %)")),
        ([("pack", 15), (None, 500)], ()),
        ([(None, 500)], ()),
    ],
)
def test_the_idle_behind_a_wait_is_told_by_the_ranges_it_lies_in(
    parts: list[tuple[str | None, float]], told: tuple[str, ...]
) -> None:
    (site,) = judge(loop(*parts).trace()).facts.sites
    near = [(text.rpartition("(")[0], float(text.rpartition("(")[2].removesuffix(" %)"))) for text in site.idle_in]
    wanted = [(text.rpartition("(")[0], float(text.rpartition("(")[2].removesuffix(" %)"))) for text in told]
    assert [name for name, _ in near] == [name for name, _ in wanted]
    assert [part for _, part in near] == pytest.approx([part for _, part in wanted], abs=4)


def test_a_late_hosts_idle_is_told_by_its_ranges_too() -> None:
    machine = Machine(jitter=0)
    host = machine.host()
    for _ in range(12):
        with host.range("time_step"):
            with host.range("limiter"):
                host.work(2_000)
            host.replay(GRAPH)
    (step,) = judge(machine.trace()).facts.steps
    assert step.idle_in[0].startswith("limiter (")
