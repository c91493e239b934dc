"""Where the launching thread's step goes, in loops whose every part is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.judged import judge
from tests.simulate import Graph, Machine, nodes

if TYPE_CHECKING:
    from bubblefinder.causes.facts import StepFacts
    from bubblefinder.causes.host_record import HostTime

DRAFT = Graph(5, nodes("embed", *("draft_attn", "draft_mlp") * 3, us=4))
VERIFY = Graph(6, nodes(*("attn", "mlp", "moe") * 12, us=4))
EXTEND = Graph(7, nodes(*("extend_attn", "extend_mlp") * 2, us=4))
STEPS = 30


def slow_host(*, ranges: bool = True, reads: bool = False) -> Machine:
    """A host whose own work takes 1,340 us a step (1,100 of it between launching draft-extend and the next draft)."""
    machine = Machine(jitter=0)
    host = machine.host()
    for _ in range(STEPS):
        with host.range("build_metadata" if ranges else None):
            host.work(690)
            for _ in range(10):
                host.kernel("metadata", 2, call_us=5)
                host.work(30)
        with host.range("prepare" if ranges else None):
            host.work(40)
        host.replay(DRAFT, call_us=20)
        host.work(20)
        host.replay(VERIFY, call_us=50)
        host.work(150)
        if reads:
            host.read()
        host.replay(EXTEND, call_us=20)
    return machine


def step_of(machine: Machine) -> StepFacts:
    (facts,) = judge(machine.trace()).facts.steps
    return facts


def host_of(machine: Machine) -> HostTime:
    found = step_of(machine).host
    assert found is not None
    return found


def test_a_range_counts_in_the_step_in_which_it_opens() -> None:
    """Metadata is built around the first launch of a step: its range opens in the step before."""
    counts = {item.nvtx: item.per_step_count for item in host_of(slow_host()).ranges if item.nvtx}
    assert counts == {"build_metadata": 1, "prepare": 1}


def test_the_step_is_taken_apart_from_role_to_role() -> None:
    host = host_of(slow_host())
    assert host.step_p50_ns == pytest.approx(1_340_000, rel=0.001)
    phases = {(phase.after_role, phase.before_role): phase for phase in host.phases}
    assert list(phases) == [("draft", "verify"), ("verify", "draft-extend"), ("draft-extend", "draft")]
    metadata = phases["draft-extend", "draft"]
    assert metadata.p50_ns == pytest.approx(1_100_000, rel=0.001)
    assert metadata.calls_p50_ns == pytest.approx(70_000, rel=0.001)
    assert metadata.between_p50_ns == pytest.approx(1_030_000, rel=0.001)
    assert (metadata.launches, metadata.copies, metadata.waiting_p50_ns) == (11, 0, 0)


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("ranges", [False, True])
def test_every_table_sums_to_the_step(ranges: bool, reads: bool) -> None:
    host = host_of(slow_host(ranges=ranges, reads=reads))
    whole = host.waiting_p50_ns + host.calls_p50_ns + host.between_p50_ns
    assert whole == pytest.approx(host.step_p50_ns, abs=10)
    assert sum(phase.p50_ns for phase in host.phases) == pytest.approx(host.step_p50_ns, abs=10)
    assert sum(call.p50_ns for call in host.calls) == pytest.approx(host.waiting_p50_ns + host.calls_p50_ns, abs=10)
    assert sum(item.p50_ns for item in host.ranges) == pytest.approx(host.step_p50_ns if ranges else 0, abs=10)


def test_a_range_has_its_own_time_in_calls_and_between_them() -> None:
    ranges = {item.nvtx: item for item in host_of(slow_host()).ranges}
    assert list(ranges) == ["build_metadata", None, "prepare"]
    assert ranges["build_metadata"].calls_p50_ns == pytest.approx(50_000, rel=0.001)
    assert ranges["build_metadata"].between_p50_ns == pytest.approx(990_000, rel=0.001)
    assert ranges["prepare"].per_step_count == pytest.approx(1, abs=0.1)


def test_time_in_a_wait_is_no_work() -> None:
    host = host_of(slow_host(reads=True))
    waits = [call for call in host.calls if call.waits]
    assert sum(call.p50_ns for call in waits) == pytest.approx(host.waiting_p50_ns, abs=10)
    assert host.waiting_p50_ns > 0
    launches = next(call for call in host.calls if call.api == "cudaLaunchKernel")
    assert (launches.per_step_count, launches.call_p50_ns, launches.waits) == (10, 5_000, False)


def test_the_longest_parts_are_told_in_words() -> None:
    facts = step_of(slow_host())
    assert facts.host_work_p50_ns == pytest.approx(1_340_000, rel=0.001)
    told = "draft-extend to draft 1.10 ms (70.0 us of it in CUDA calls, with 11 launches and 0 copies)"
    assert facts.host_longest[0] == told
