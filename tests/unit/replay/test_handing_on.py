"""Which wait takes the place of another, and what the host does behind the first, of loops that are simulated."""

from __future__ import annotations

import pytest

from bubblefinder.replay.fixes import find_fixes
from bubblefinder.report.build import report_of
from tests.unit.replay.test_wait_chains import EVERY, INDICES, LENGTHS, chain_of, engine

PREPARING_NS = (700 + 175 + 700 + 175) * 1_000


def test_a_wait_that_goes_alone_moves_to_the_next() -> None:
    chain = chain_of(engine(*EVERY))
    assert chain is not None
    assert chain.links[0].moves_to == 1


def test_the_host_prepares_from_the_first_waits_return_on_and_the_gpu_idles_for_a_part_of_it() -> None:
    chain = chain_of(engine(LENGTHS, INDICES))
    assert chain is not None
    assert chain.preparing_ns == pytest.approx(PREPARING_NS, rel=0.25)
    assert 0 < chain.idle_ns < chain.preparing_ns


def test_the_chain_is_a_fix_of_its_own_and_each_wait_says_where_it_moves() -> None:
    judged = engine(*EVERY)
    fixes = {fix.name: fix for fix in find_fixes(judged.causes, judged.facts, judged.recoverable)}
    notes = [fix.note for fix in fixes.values() if fix.note]
    assert notes
    assert all(note.startswith("taken away alone, the wait moves to ") for note in notes)
    assert len(fixes["the chain of waits"].subjects) == len(EVERY)
    assert fixes["the chain of waits"].note == ""


def test_the_report_says_it_in_the_finding_and_together() -> None:
    judged = engine(*EVERY)
    report = report_of(judged)
    (told,) = report.wait_chains
    assert told.links[0].moves_to == 1
    assert told.preparing_ns is not None
    assert told.idle_ns is not None
    first = next(finding for finding in report.findings if finding.site.bytes == 72)
    assert "Taken away alone, the wait moves to number 2" in first.message
    assert "The host starts preparing only when it returns" in first.message
    assert report.joint is not None
    assert report.joint.step_ns == pytest.approx(told.joint.step_after_ns, rel=0.01)
