"""Waits that hand on: the answer is simulated, by running the same loop without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from bubblefinder.report.build import report_of
from bubblefinder.timeline.rank import Rank
from tests.judged import judge
from tests.simulate import Graph, Machine, nodes

if TYPE_CHECKING:
    from bubblefinder.replay.wait_chains import WaitChain
    from tests.judged import Judged

DRAFT = Graph(5, nodes("embed", *("draft_attn", "draft_mlp") * 10, us=20))
VERIFY = Graph(6, nodes(*("attn", "mlp", "moe") * 40, us=20))
EXTEND = Graph(7, nodes(*("extend_attn", "extend_mlp") * 5, us=20))
SIDE = 21
LENGTHS, INDICES, PLAN = "lengths", "indices", "plan"
EVERY = (LENGTHS, INDICES, PLAN)


def engine(*waits: str, work_us: float = 700, steps: int = 30) -> Judged:
    """Draft, verify and draft-extend, with three seams of host work and up to three waits.

    The lengths are ready behind verify and waited for while draft-extend runs; the indices and the plan's arrays are
    read back once the draft's and the verify's metadata have been made.
    """
    machine = Machine(jitter=0.002)
    host = machine.host()
    behind_verify = None
    for _ in range(steps):
        with host.range("decode_step"):
            if LENGTHS in waits and behind_verify:
                host.stream_wait(behind_verify, stream=SIDE)
                done = host.download(72, stream=SIDE)
                host.call("cudaStreamSynchronize_v3020", until=done + 2_000, stream=SIDE)
            host.work(work_us)
            host.kernel("draft_indices", 3)
            if INDICES in waits:
                host.read(24)
            host.work(work_us / 4)
            host.replay(DRAFT)
            host.work(work_us)
            host.kernel("verify_indices", 3)
            if PLAN in waits:
                for _ in range(3):
                    host.read(8)
            host.work(work_us / 4)
            host.replay(VERIFY)
            behind_verify = host.record()
            host.work(work_us)
            host.replay(EXTEND)
    return judge(machine.trace())


def step_ns(analysis: Judged) -> float:
    """The median step by a kernel that runs once a step, whatever steps the analysis finds."""
    names, operations = analysis.trace.names, analysis.trace.operations
    (number,) = (number for number, text in names.items() if text == "draft_indices")
    starts = operations.filter(operations["name"] == number)["start_ns"].sort().to_numpy()
    return float(np.median(np.diff(starts)))


def chain_of(analysis: Judged) -> WaitChain | None:
    (step,) = analysis.facts.steps
    return analysis.recoverable.chains.get(Rank(step.gpu, step.process))


def test_all_together_give_what_the_loop_without_them_takes() -> None:
    chain = chain_of(engine(*EVERY))
    assert chain is not None
    assert [link.site.bytes for link in chain.links] == [72, 24, 8]
    assert chain.joint.step_ns == pytest.approx(step_ns(engine()), rel=0.03)
    assert sum(link.in_turn.recoverable_ns for link in chain.links) == chain.joint.recoverable_ns


def test_one_alone_hands_the_wait_on_to_the_next() -> None:
    before = engine(*EVERY)
    chain = chain_of(before)
    assert chain is not None
    for link, wait in zip(chain.links, EVERY, strict=True):
        without = step_ns(engine(*(other for other in EVERY if other != wait)))
        assert link.alone.step_ns == pytest.approx(without, rel=0.06), wait
        assert link.alone.recoverable_ns < chain.joint.recoverable_ns


def test_half_the_hosts_work_is_another_question() -> None:
    chain = chain_of(engine(*EVERY))
    assert chain is not None
    assert chain.half_work.step_ns == pytest.approx(step_ns(engine(*EVERY, work_us=350)), rel=0.05)
    assert chain.both.step_ns == pytest.approx(step_ns(engine(work_us=350)), rel=0.05)


def test_a_wait_that_no_gap_is_charged_to_is_listed_all_the_same() -> None:
    report = report_of(engine(*EVERY))
    (told,) = report.wait_chains
    assert sum(link.in_turn_ns or 0 for link in told.links) == told.joint.recoverable_ns
    assert {link.rule for link in told.links if link.rule} <= {finding.rule for finding in report.findings}
    lengths = next(finding for finding in report.findings if finding.site.bytes == 72)
    assert lengths.in_turn_ns == told.links[0].in_turn_ns
    assert "number 1 of 3 waits in a row" in lengths.message


@pytest.mark.parametrize("waits", [(), (LENGTHS,)])
def test_a_loop_whose_host_is_ahead_has_no_chain(waits: tuple[str, ...]) -> None:
    """One wait is none, and waits under a GPU that stays fed cost nothing."""
    assert chain_of(engine(*waits, work_us=100)) is None
