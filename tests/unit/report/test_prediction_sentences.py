from __future__ import annotations

from dataclasses import replace

from bubblefinder.report.found import Joint
from bubblefinder.report.prediction_sentences import between_words, gain_words, in_turn_words, to_recover_words
from bubblefinder.report.verdict import verdict
from tests.unit.report.sample import finding, sample_report


def test_a_gain_has_its_range_beside_it_unless_that_is_the_same() -> None:
    told = finding(recoverable_ns=1_650_000, recoverable_range_ns=[1_400_000, 1_800_000])
    assert gain_words(told) == "1.65 ms (1.40 ms to 1.80 ms)"
    assert gain_words(replace(told, recoverable_range_ns=[1_650_000, 1_650_100])) == "1.65 ms"
    assert gain_words(replace(told, recoverable_ns=None)) == "1.40 ms to 1.80 ms"
    assert gain_words(replace(told, recoverable_ns=None, recoverable_range_ns=None)) == ""


def test_a_range_that_is_not_known_is_not_told() -> None:
    assert between_words(None) == ""


def test_the_verdict_tells_the_range_of_the_first_gain_and_of_all_together() -> None:
    told = finding(recoverable_ns=1_650_000, recoverable_range_ns=[1_400_000, 1_800_000])
    joint = Joint(findings=2, step_ns=7_100_000, recoverable_ns=1_800_000, range_ns=[7_100_000, 7_570_000])
    judged = verdict(replace(sample_report(findings=[told]), joint=joint))
    assert "would give about 1.65 ms (1.40 ms to 1.80 ms) a step" in judged.gain
    assert "to 7.10 ms (7.10 ms to 7.57 ms) a step" in judged.gain


def test_a_wait_that_hands_on_leads_with_what_all_give_and_with_its_turn() -> None:
    alone, turn = [0, 285_000], [296_000, 712_000]
    held = finding(recoverable_ns=0, recoverable_range_ns=alone, in_turn_ns=712_000, in_turn_range_ns=turn)
    joint = Joint(findings=2, step_ns=7_100_000, recoverable_ns=1_800_000, range_ns=[7_100_000, 7_570_000])
    gain = verdict(replace(sample_report(findings=[held]), joint=joint)).gain
    assert gain.startswith("All 2 waits and pauses together: ")
    assert "Removing the first would give 712 us (296 us to 712 us) a step once" in gain
    assert "once the waits before it are gone; alone 0 ns (0 ns to 285 us), since another wait takes its place." in gain
    assert to_recover_words(held).endswith(" once the waits before it are gone, alone 0 ns (0 ns to 285 us)")
    hardly = replace(held, recoverable_ns=700_000, recoverable_range_ns=[300_000, 710_000])
    assert to_recover_words(hardly) == "about 700 us (300 us to 710 us) a step to recover"
    untold = replace(held, recoverable_ns=None, in_turn_ns=None, in_turn_range_ns=[0, 712_000])
    assert to_recover_words(untold) == (
        "0 ns to 712 us a step to recover once the waits before it are gone, alone 0 ns to 285 us"
    )


def test_a_wait_whose_gain_alone_is_unknown_shows_its_turn_alone() -> None:
    rare = finding(recoverable_ns=None, recoverable_range_ns=None, in_turn_range_ns=[10_000, 200_000])
    assert in_turn_words(rare) == " once the waits before it are gone"
