from __future__ import annotations

from bubblefinder.overhead.model import Overhead
from bubblefinder.report.overhead_sentences import overhead_sentences
from bubblefinder.timeline.shares import BubbleShare

MS = 1_000_000


def told(overhead: Overhead) -> str:
    return " ".join(overhead_sentences(overhead))


def test_without_a_correction_only_the_reason_is_given() -> None:
    assert told(Overhead(message="Raw numbers only: who knows.")) == "Raw numbers only: who knows."
    assert told(Overhead()) == ""


def test_ranges_shares_and_costs_are_told() -> None:
    said = told(
        Overhead(
            method="assumed",
            message="The profiler added 0.3 ms.",
            range_ns=(6 * MS, 7 * MS),
            corrected_bubble_share=BubbleShare(intra_graph=0.09, inter_graph=0.01, total=0.1),
            corrected_bubble_share_range={"intra_graph": (0.06, 0.11), "inter_graph": (0.01, 0.02), "total": None},
            parameters={"kernel_node_ns": {"value": 132, "low": 56, "high": 277}, "from": "somewhere"},
        )
    )
    assert "between 6.00 ms and 7.00 ms" in said
    assert "inside graphs 9.0 % (6.0 % to 11.0 %), outside graphs 1.0 % (1.0 % to 2.0 %)" in said
    assert "a kernel node 132 ns (56 ns to 277 ns)" in said
    assert "unexplained" not in said


def test_a_withheld_share_shows_its_range_and_a_rest_is_called_unexplained() -> None:
    said = told(
        Overhead(
            method="untraced_step",
            message="m",
            range_ns=(7 * MS, 7 * MS),
            unexplained_ns=-40_000,
            corrected_bubble_share=BubbleShare(intra_graph=None, inter_graph=0.3, total=None),
            corrected_bubble_share_range={"intra_graph": (0.0, 0.2), "inter_graph": (0.3, 0.3)},
        )
    )
    assert "inside graphs anywhere in 0.0 % to 20.0 %" in said
    assert "-40.0 us a step has no place in the model" in said
    assert "outside graphs 30.0 %." in said
    assert "lies between" not in said


def test_a_range_too_narrow_to_be_read_is_not_told() -> None:
    said = told(Overhead(method="assumed", message="m", range_ns=(8_409_000, 8_411_000)))
    assert said == "m"
