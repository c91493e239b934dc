"""Names carried from a capture with call chains to a light one, and never guessed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bubblefinder.causes.carried_names import aligned_places
from bubblefinder.errors import CannotAnswerError
from bubblefinder.pipeline import Analysis, with_names_of
from bubblefinder.report.build import report_of
from bubblefinder.report.verdict import verdict
from tests.simulate import Graph, Machine, nodes

if TYPE_CHECKING:
    from bubblefinder.causes.facts import SiteFacts
    from bubblefinder.trace.model import QualityNote
    from tests.simulate import Host

DRAFT = Graph(5, nodes("embed", *("draft_attn", "draft_mlp") * 3))
VERIFY = Graph(6, nodes(*("attn", "mlp", "moe") * 30))
EXTEND = Graph(7, nodes(*("extend_attn", "extend_mlp") * 2))
READ = ("c10::cuda::memcpy_and_sync", "THPVariable_to", "_PyEval_EvalFrameDefault")
PLAN = ("flashinfer::PrefillPlan", "_PyEval_EvalFrameDefault")
Seam = Callable[["Host", bool], None]


def loop(seam: Seam, *, chains: bool, slow: float = 1, steps: int = 12) -> Analysis:
    """Draft, verify and draft-extend, and between the last two whatever `seam` does; `chains`: with call chains."""
    machine = Machine(jitter=0)
    host = machine.host()
    for _ in range(steps):
        host.work(200 * slow)
        host.replay(DRAFT)
        host.replay(VERIFY)
        seam(host, chains)
        host.work(300 * slow)
        host.replay(EXTEND)
    return Analysis(machine.trace("chains" if chains else "light"))


def plan(host: Host, chains: bool) -> None:
    for chain in (READ, PLAN):
        host.chain = chain if chains else ()
        host.read()
    host.chain = ()


def plan_and_more(host: Host, chains: bool) -> None:
    host.kernel("new_kernel", 3)
    plan(host, chains)


def blind(host: Host, _: bool) -> None:
    host.read()
    host.read()


def once(host: Host, _: bool) -> None:
    host.read()


def note_of(analysis: Analysis) -> QualityNote:
    return next(note for note in analysis.trace.notes if note.code == "names-carried")


def site_of(analysis: Analysis) -> SiteFacts:
    (site,) = analysis.facts.sites
    return site


def test_each_call_gets_the_chain_of_the_call_at_its_place() -> None:
    light, chains = loop(plan, chains=False), loop(plan, chains=True, slow=3)
    assert {member.frames for member in site_of(light).members} == {()}
    named = with_names_of(light, chains.trace)
    assert [member.frames for member in site_of(named).members] == [READ, PLAN]
    assert site_of(named).bubble_p50_ns == pytest.approx(site_of(light).bubble_p50_ns)
    assert note_of(named).count == 2 * 12
    assert note_of(named).message.startswith("24 of 59 calls have the names of their counterparts in chains")


def test_a_capture_that_walked_every_stack_names_causes_and_prices_none() -> None:
    def walked(host: Host, chains: bool) -> None:
        plan(host, chains)
        host.chain = PLAN if chains else ()

    chains = loop(walked, chains=True)
    assert chains.timeline.walked
    report = report_of(chains)
    assert [finding.severity for finding in report.findings] == ["info"]
    (named,) = report.findings
    assert named.site.frame in {"flashinfer::PrefillPlan", "THPVariable_to"}
    assert (named.recoverable_ns, named.bubble_ns.p50, named.host_blocked_ns.p50) == (None, None, None)
    assert named.message.endswith("can't say what it costs.")
    assert verdict(report).number == ""
    with pytest.raises(CannotAnswerError, match="walked the stack"):
        _ = chains.study
    light = with_names_of(loop(walked, chains=False), chains.trace)
    assert not light.timeline.walked
    assert report_of(light).findings[0].recoverable_ns


def test_a_call_that_the_other_capture_lacks_stays_without_a_name() -> None:
    light, chains = loop(plan_and_more, chains=False), loop(plan, chains=True)
    named = with_names_of(light, chains.trace)
    assert [member.frames for member in site_of(named).members] == [READ, PLAN]
    assert note_of(named).count == 2 * 12


def test_calls_that_can_not_be_told_apart_get_no_name() -> None:
    """One read of two is missing: which of the two remained, nothing shows."""
    light, chains = loop(once, chains=False), loop(plan, chains=True)
    assert note_of(with_names_of(light, chains.trace)).count == 0


def test_names_that_change_from_step_to_step_are_not_carried() -> None:
    turns = iter(range(100))

    def changing(host: Host, chains: bool) -> None:
        host.chain = (f"Request{next(turns)}::read",) if chains else ()
        host.read()
        host.chain = ()

    light, chains = loop(changing, chains=False), loop(changing, chains=True)
    assert note_of(with_names_of(light, chains.trace)).count == 0


def test_another_program_names_nothing() -> None:
    machine = Machine(jitter=0)
    host = machine.host()
    host.chain = READ
    for _ in range(20):
        host.work(100)
        host.kernel("elsewhere", 5)
        host.read()
    named = with_names_of(loop(plan, chains=False), machine.trace("other"))
    assert note_of(named).count == 0


def test_a_call_with_a_chain_of_its_own_keeps_it() -> None:
    mine = loop(plan, chains=True)
    named = with_names_of(mine, loop(blind, chains=False).trace)
    assert [member.frames for member in site_of(named).members] == [READ, PLAN]


@pytest.mark.parametrize(
    ("tokens", "other", "places"),
    [
        ("abc", "abc", [0, 1, 2]),
        ("ac", "abc", [0, 2]),
        ("abbc", "abc", [0, None, None, 2]),
        ("abxc", "abc", [0, 1, None, 2]),
        ("xyz", "abc", [None, None, None]),
        ("aa", "aaa", [None, None]),
        ("", "abc", []),
    ],
)
def test_only_what_both_alignments_agree_on_is_placed(tokens: str, other: str, places: list[int | None]) -> None:
    assert aligned_places(tokens, other) == places


@given(st.text("ab", max_size=12), st.text("ab", max_size=12))
def test_placed_tokens_are_equal_and_in_order(tokens: str, other: str) -> None:
    placed = [(a, b) for a, b in enumerate(aligned_places(tokens, other)) if b is not None]
    assert all(tokens[a] == other[b] for a, b in placed)
    assert [b for _, b in placed] == sorted({b for _, b in placed})


@given(st.text("abcde", max_size=15))
def test_a_sequence_is_its_own_counterpart(tokens: str) -> None:
    assert aligned_places(tokens, tokens) == list(range(len(tokens)))
