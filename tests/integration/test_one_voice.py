"""What one finding says holds together: its numbers are of the same steps, and no part is more than its whole."""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING, Final

import pytest

from bubblefinder.pipeline import Analysis
from bubblefinder.report.build import report_of
from bubblefinder.rules.packs import load_packs
from tests import samples
from tests.laws import broken
from tests.simulate import Graph, Host, Machine, nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bubblefinder.causes.facts import Facts
    from bubblefinder.trace.model import Trace

    Fault = Callable[[Host, float], object]

GRAPH: Final = Graph(3, nodes("attn", "mlp", "router", us=9) * 8)
LAWFUL: Final = {
    ("hole_p50_ns", "idle_p50_ns"),
    ("step_span_p50_ns", "idle_p50_ns"),
}
"""The wholes and parts that messages may name, each the median of the same steps."""


def eager(host: Host, us: float) -> None:
    for number in range(24):
        host.work(us / 60)
        host.kernel(f"glue_{number % 5}", 3)


def host_function(host: Host, us: float) -> None:
    host.call("cudaLaunchHostFunc_v10000", 6)
    host.occupy(host.queued_until() + round(us * 900))


FAULTS: Final[list[Fault]] = [
    lambda host, _: host.read(),
    lambda host, _: host.synchronize(),
    lambda host, us: host.os_call("poll", us),
    lambda host, us: host.os_call("futex", us / 30),
    lambda host, us: host.work(us),
    lambda host, us: host.call("cudaHostAlloc_v3020", us),
    lambda host, us: host.call("cudaMalloc_v3020", us / 4),
    lambda host, us: host.call("cudaFree_v3020", 9, until=host.queued_until(-1) + round(us * 100)),
    lambda host, us: host.call("cudaGraphInstantiate_v12000", us),
    host_function,
    eager,
]


def troubled(seed: int) -> Trace:
    """A loop that waits for the result of the step before, with some faults, each in some steps, at its place."""
    random = Random(seed)
    machine = Machine(seed, jitter=random.choice([0.01, 0.2]))
    host = machine.host()
    chosen = [
        (fault, random.choice([1, 1, 3, 9]), random.choice([30, 200, 1_500]), random.random() < 0.5)
        for fault in random.sample(FAULTS, random.randint(1, 4))
    ]
    awaited = host.record(0)
    for step in range(random.choice([14, 30])):
        for early in (True, False):
            for fault, every, us, first in chosen:
                if first == early and step % every == every - 1:
                    fault(host, us * random.choice([0.3, 1, 1, 4]))
            if early:
                host.upload()
                host.replay(GRAPH)
        host.wait_for(awaited)
        host.download()
        awaited = host.record(step + 1)
    return machine.trace()


def contradictions(facts: Facts) -> Iterator[str]:
    """The parts that are longer than their wholes."""
    calls = [site for site in facts.sites if not site.awaits]
    roles = [role for step in facts.steps for role in step.roles if role.eager]
    for step in facts.steps:
        inside = [role.idle_p50_ns or 0 for role in step.roles]
        if step.step_p50_ns and max(inside, default=0) > step.step_p50_ns:
            yield f"{max(inside)} of a step of {step.step_p50_ns} lies idle inside a role"
    holes = [hole for step in facts.steps for hole in step.holes]
    pairs = [
        *((site.api, site.blocked_p50_ns, site.bubble_p50_ns) for site in calls),
        *((role.role, role.step_span_p50_ns, role.idle_p50_ns) for role in roles),
        *((hole.reason, hole.hole_p50_ns, hole.idle_p50_ns) for hole in holes),
    ]
    yield from (f"{name}: {part} of {whole}" for name, whole, part in pairs if part and whole and part > whole)
    for site in facts.sites:
        if site.bubble_share and site.steps_share and not site.bubble_p50_ns:
            yield f"{site.api} costs {site.bubble_share:%} of the time and nothing in its steps"


@pytest.mark.parametrize("seed", range(16))
def test_no_finding_contradicts_itself(seed: int) -> None:
    trace = troubled(seed)
    analysis = Analysis(trace)
    assert list(contradictions(analysis.facts)) == []
    assert broken(report_of(analysis), trace) == []


@pytest.mark.parametrize("name", ["hard_before.graph", "torch_eager", "sglang/fi.graph", "sglang/fi_functions.graph"])
def test_no_finding_about_a_sample_contradicts_itself(name: str) -> None:
    analysis = samples.analysis(name)
    assert list(contradictions(analysis.facts)) == []
    assert broken(samples.report(name), analysis.trace) == []


def test_messages_name_only_parts_of_wholes_that_are_measured_together() -> None:
    pair = re.compile(r"\{(\w+_ns)\}(?:[^{]|\{(?!\w+_ns\})\w+\})*\{(\w+_ns)\} of that")
    told = {found for rule in load_packs().rules for found in pair.findall(rule.says)}
    assert not any(" of it idle" in rule.says for rule in load_packs().rules)
    assert told == LAWFUL


def test_a_wait_in_few_steps_is_told_as_one() -> None:
    machine = Machine()
    host = machine.host()
    awaited = host.record(0)
    for step in range(30):
        host.work(100)
        if step in {9, 17}:
            host.read()
            host.work(3_000)
        host.upload()
        host.replay(GRAPH)
        host.wait_for(awaited)
        host.download()
        awaited = host.record(step + 1)
    messages = [finding.message for finding in report_of(Analysis(machine.trace())).findings]
    assert any("It costs that in 2 of 30 steps, and nothing in the others." in message for message in messages)


def test_a_replay_of_several_steps_leaves_no_step_more_idle_than_it_is_long() -> None:
    machine = Machine()
    host = machine.host()
    for _ in range(12):
        host.work(150)
        host.replay(Graph(3, nodes("attn", "mlp", us=4) * 40, passes=8))
        host.synchronize()
    assert list(contradictions(Analysis(machine.trace()).facts)) == []
