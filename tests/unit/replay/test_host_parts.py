"""What would shorten a slow host's step: each part gives what it holds, since nothing else bounds the step."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from bubblefinder.timeline.rank import Rank
from tests.judged import judge
from tests.simulate import Graph, Machine, nodes
from tests.unit.causes.test_host_time import slow_host

if TYPE_CHECKING:
    from bubblefinder.replay.host_parts import Shortening


def parts_of(machine: Machine) -> tuple[Shortening, ...]:
    analysis = judge(machine.trace())
    (step,) = analysis.facts.steps
    return analysis.recoverable.shorter.get(Rank(step.gpu, step.process), ())


def test_half_of_a_part_gives_half_of_it() -> None:
    first, second, *_ = parts_of(slow_host())
    assert {first.name, second.name} == {"draft-extend to draft", "build_metadata"}
    by_name = {part.name: part for part in (first, second)}
    assert by_name["draft-extend to draft"].then.recoverable_ns == pytest.approx(550_000, rel=0.02)
    assert by_name["build_metadata"].then.recoverable_ns == pytest.approx(520_000, rel=0.02)
    assert by_name["build_metadata"].work_ns == pytest.approx(1_040_000, rel=0.05)


def test_calls_of_one_kind_go_altogether() -> None:
    machine = Machine(jitter=0)
    host = machine.host()
    for _ in range(20):
        for number in range(40):
            host.work(30)
            host.kernel(f"k{number}", 2, call_us=9)
        host.read()
    named = {part.name: part for part in parts_of(machine)}
    assert named["cudaLaunchKernel"].taken == 1
    assert named["cudaLaunchKernel"].then.recoverable_ns == pytest.approx(40 * 9_000, rel=0.1)


def test_a_host_that_is_ahead_has_nothing_to_shorten() -> None:
    machine = Machine(jitter=0)
    host = machine.host()
    for _ in range(20):
        host.work(50)
        host.replay(Graph(6, nodes(*("attn", "mlp") * 40)))
    assert parts_of(machine) == ()


def test_findings_say_it_in_words() -> None:
    analysis = judge(slow_host().trace())
    (step,) = analysis.recoverable.fill(analysis.facts).steps
    half = "half the work in draft-extend to draft (1.10 ms now)"
    assert step.host_shorten[0] == f"{half}: 550 us (489 us to 629 us) a step"
    (step,) = replace(analysis.recoverable, untold_ns=200_000).fill(analysis.facts).steps
    assert step.host_shorten[0] == f"{half}: between 289 us and 629 us a step"


def test_the_work_said_is_that_of_the_tables() -> None:
    analysis = judge(slow_host().trace())
    (step,) = analysis.facts.steps
    assert step.host
    parts = {(part.kind, part.name): part for part in parts_of(slow_host())}
    phases = {("phase", f"{one.after_role} to {one.before_role}"): one.work_ns for one in step.host.phases}
    ranges = {("range", one.nvtx): one.calls_p50_ns + one.between_p50_ns for one in step.host.ranges}
    calls = {("call", one.api): one.p50_ns for one in step.host.calls if not one.waits}
    listed = phases | ranges | calls
    assert parts.keys() <= listed.keys()
    assert all(part.work_ns == listed[key] for key, part in parts.items())


def test_names_of_ranges_that_count_are_found_in_the_tables() -> None:
    machine = Machine(jitter=0)
    host = machine.host()
    for step in range(20):
        with host.range(f"batch {step}"):
            host.work(500 if step % 4 else 1500)
        for number in range(10):
            host.kernel(f"k{number}", 2)
        host.read()
    (part,) = (part for part in parts_of(machine) if part.kind == "range")
    assert part.work_ns == pytest.approx(500_000, rel=0.1)
